package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// commentWidth is how wide a line of a comment in values.yaml may be.
const commentWidth = 110

const valuesHeader = `# Generated from values.schema.json by "make chart"; DO NOT EDIT.
#
# Every value is checked against the schema: a misspelt key or a value of the wrong type fails the install before
# anything is changed.
`

// The table of the README stands between these two lines.
const (
	tableBegin = "<!-- The table is generated from values.schema.json by \"make chart\"; DO NOT EDIT. -->\n"
	tableEnd   = "<!-- End of the table. -->\n"
)

// value is a value of the chart, or a group of them, as the schema describes it.
type value struct {
	key, description, kind string
	fallback               *yaml.Node // nil for a group
	group                  []value
}

// writeValues writes values.yaml and the table in the README of a chart from its values.schema.json.
func writeValues(chart string) error {
	text, err := os.ReadFile(filepath.Join(chart, "values.schema.json"))
	if err != nil {
		return err
	}
	values, err := parseSchema(text)
	if err != nil {
		return fmt.Errorf("values.schema.json: %w", err)
	}
	yamlText, err := valuesFile(values)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(chart, "values.yaml"), []byte(yamlText), 0o644); err != nil {
		return err
	}
	readme := filepath.Join(chart, "README.md")
	before, err := os.ReadFile(readme)
	if err != nil {
		return err
	}
	table, err := valuesTable(values)
	if err != nil {
		return err
	}
	after, err := between(string(before), table)
	if err != nil {
		return fmt.Errorf("README.md: %w", err)
	}
	return os.WriteFile(readme, []byte(after), 0o644)
}

// parseSchema reads the values in the order of the schema. JSON is read as the YAML that it is, for the order's sake.
func parseSchema(text []byte) ([]value, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, err
	}
	if len(root.Content) == 0 {
		return nil, errors.New("is empty")
	}
	return valuesOf(root.Content[0], "")
}

func valuesOf(schema *yaml.Node, path string) ([]value, error) {
	var values []value
	properties := member(schema, "properties")
	if properties == nil {
		return nil, fmt.Errorf("%s has neither a default nor properties", cmp.Or(strings.TrimSuffix(path, "."), "the schema"))
	}
	for i := 0; i+1 < len(properties.Content); i += 2 {
		key, described := properties.Content[i].Value, properties.Content[i+1]
		if path == "" && key == "global" {
			continue // Helm's own.
		}
		v := value{key: key, description: text(described, "description"), kind: kindOf(described), fallback: member(described, "default")}
		if v.description == "" {
			return nil, fmt.Errorf("%s%s has no description", path, key)
		}
		if v.fallback == nil {
			group, err := valuesOf(described, path+key+".")
			if err != nil {
				return nil, err
			}
			v.group = group
		}
		values = append(values, v)
	}
	return values, nil
}

// member is the value of a key of a mapping, nil if there is none.
func member(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

func text(mapping *yaml.Node, key string) string {
	if found := member(mapping, key); found != nil {
		return found.Value
	}
	return ""
}

// kindOf names the types that a value may have.
func kindOf(schema *yaml.Node) string {
	var kinds []string
	if kind := text(schema, "type"); kind != "" {
		kinds = append(kinds, kind)
	}
	if alternatives := member(schema, "oneOf"); alternatives != nil {
		for _, alternative := range alternatives.Content {
			kinds = append(kinds, text(alternative, "type"))
		}
	}
	return strings.Join(kinds, " or ")
}

// valuesFile is the text of values.yaml.
func valuesFile(values []value) (string, error) {
	var b strings.Builder
	b.WriteString(valuesHeader)
	for _, v := range values {
		one, err := v.yaml()
		if err != nil {
			return "", err
		}
		b.WriteString("\n" + one)
	}
	return b.String(), nil
}

// yaml is the value with its description above it.
func (v value) yaml() (string, error) {
	comment := wrap(v.description, commentWidth)
	if v.fallback != nil {
		set, err := encode(map[string]*yaml.Node{v.key: plain(v.fallback)})
		return comment + set, err
	}
	var b strings.Builder
	b.WriteString(comment + v.key + ":\n")
	for _, inner := range v.group {
		one, err := inner.yaml()
		if err != nil {
			return "", err
		}
		b.WriteString(indent(one))
	}
	return b.String(), nil
}

func encode(what any) (string, error) {
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode(what); err != nil {
		return "", err
	}
	return b.String(), encoder.Close()
}

// plain is a node without the quotes and braces of JSON.
func plain(node *yaml.Node) *yaml.Node {
	bare := *node
	bare.Style = 0
	bare.Content = nil
	for _, inner := range node.Content {
		bare.Content = append(bare.Content, plain(inner))
	}
	return &bare
}

// wrap makes a comment of a text.
func wrap(text string, width int) string {
	var b strings.Builder
	line := "#"
	for word := range strings.FieldsSeq(text) {
		if len(line)+1+len(word) > width {
			b.WriteString(line + "\n")
			line = "#"
		}
		line += " " + word
	}
	return b.String() + line + "\n"
}

// valuesTable is the table of all values for the README.
func valuesTable(values []value) (string, error) {
	var b strings.Builder
	b.WriteString("| Value | Type | Default | Meaning |\n|---|---|---|---|\n")
	for _, v := range values {
		if err := v.rows(&b, ""); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}

func (v value) rows(b *strings.Builder, path string) error {
	path += v.key
	for _, inner := range v.group {
		if err := inner.rows(b, path+"."); err != nil {
			return err
		}
	}
	if v.fallback == nil {
		return nil
	}
	flow := *plain(v.fallback)
	flow.Style = yaml.FlowStyle
	fallback, err := encode(&flow)
	if err != nil {
		return err
	}
	cells := []string{"`" + path + "`", v.kind, "`" + strings.TrimSpace(fallback) + "`", v.description}
	for i, cell := range cells {
		cells[i] = strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(cell)
	}
	fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
	return nil
}

// between puts a new table between the two marks of a text.
func between(before, table string) (string, error) {
	head, rest, begins := strings.Cut(before, tableBegin)
	_, tail, ends := strings.Cut(rest, tableEnd)
	if !begins || !ends {
		return "", fmt.Errorf("has no place for the table: want a line %q and below it a line %q", tableBegin, tableEnd)
	}
	return head + tableBegin + table + tableEnd + tail, nil
}
