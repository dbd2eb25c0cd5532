package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const sampleSchema = `{
  "type": "object",
  "properties": {
    "global": {"type": "object"},
    "name": {"description": "A name | or none.", "type": "string", "default": ""},
    "box": {
      "description": "A group.",
      "properties": {
        "level": {"description": "A word or a number.", "oneOf": [{"type": "string"}, {"type": "integer"}], "default": "info"},
        "limits": {"description": "Amounts.", "type": "object", "default": {"cpu": "50m", "memory": {"max": 1}}, "properties": {}},
        "more": {"description": "A list.", "type": "array", "default": []}
      }
    }
  }
}`

const sampleValues = valuesHeader + `
# A name | or none.
name: ""

# A group.
box:
  # A word or a number.
  level: info
  # Amounts.
  limits:
    cpu: 50m
    memory:
      max: 1
  # A list.
  more: []
`

const sampleTable = "| Value | Type | Default | Meaning |\n|---|---|---|---|\n" +
	"| `name` | string | `\"\"` | A name \\| or none. |\n" +
	"| `box.level` | string or integer | `info` | A word or a number. |\n" +
	"| `box.limits` | object | `{cpu: 50m, memory: {max: 1}}` | Amounts. |\n" +
	"| `box.more` | array | `[]` | A list. |\n"

// chartOf makes a chart of a schema and a README.
func chartOf(t *testing.T, schema, readme string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string]string{"values.schema.json": schema, "README.md": readme} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func TestValuesAndTheirTableFollowTheSchema(t *testing.T) {
	chart := chartOf(t, sampleSchema, "before\n"+tableBegin+"a former table\n"+tableEnd+"after\n")
	if err := writeValues(chart); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"values.yaml": sampleValues,
		"README.md":   "before\n" + tableBegin + sampleTable + tableEnd + "after\n",
	} {
		got, err := os.ReadFile(filepath.Join(chart, name))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("%s is\n%s\nwant\n%s", name, got, want)
		}
	}
}

func TestALongDescriptionIsWrapped(t *testing.T) {
	if got, want := wrap("one two three", len("# one two")), "# one two\n# three\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestASchemaThatDocumentsTooLittleIsAnError(t *testing.T) {
	marks := tableBegin + tableEnd
	for name, test := range map[string]struct{ schema, readme, want string }{
		"no description":            {strings.Replace(sampleSchema, "A list.", "", 1), marks, "box.more has no description"},
		"no default":                {strings.Replace(sampleSchema, `, "default": ""`, "", 1), marks, "name has neither a default nor properties"},
		"no JSON":                   {"{", marks, "values.schema.json"},
		"nothing":                   {"", marks, "values.schema.json: is empty"},
		"no beginning of the table": {sampleSchema, tableEnd, "README.md: has no place for the table"},
		"no end of the table":       {sampleSchema, tableBegin, "README.md: has no place for the table"},
	} {
		t.Run(name, func(t *testing.T) {
			err := writeValues(chartOf(t, test.schema, test.readme))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want one that says %s", err, test.want)
			}
		})
	}
}
