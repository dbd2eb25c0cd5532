package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

const header = `{{- /* Generated from config/ by "make chart"; DO NOT EDIT. */ -}}` + "\n"

// object is a Kubernetes object as controller-gen wrote it.
type object = map[string]any

// document is one Kubernetes object of a template. Name, namespace, annotation values, metadata and body are template
// text: what is taken from config/ is escaped by marshal, actions are written by the converters.
type document struct {
	apiVersion, kind, name string
	namespace              string // empty for what is in none
	annotations            map[string]string
	metadata               string // whatever else is in metadata
	when                   string // condition under which the object is rendered; empty means always
	each                   string // list for each of whose values, $each, the object is rendered; empty means once
	body                   string

	// define makes the body a template of this name instead of an object.
	define string
}

func (d document) render() (string, error) {
	if d.define != "" {
		return fmt.Sprintf("{{- define %q -}}\n%s{{- end }}\n", d.define, d.body), nil
	}
	if d.apiVersion == "" || d.kind == "" || d.name == "" {
		return "", fmt.Errorf("object without apiVersion, kind or name: %q, %q, %q", d.apiVersion, d.kind, d.name)
	}
	var b strings.Builder
	if d.when != "" {
		fmt.Fprintf(&b, "{{- if %s }}\n", d.when)
	}
	if d.each != "" {
		fmt.Fprintf(&b, "{{- range $each := %s }}\n{{- with $ }}\n", d.each)
	}
	fmt.Fprintf(&b, "---\napiVersion: %s\nkind: %s\nmetadata:\n  name: %s\n", d.apiVersion, d.kind, d.name)
	if d.namespace != "" {
		fmt.Fprintf(&b, "  namespace: %s\n", d.namespace)
	}
	b.WriteString("  labels:\n    {{- include \"kick.labels\" . | nindent 4 }}\n")
	if len(d.annotations) > 0 {
		b.WriteString("  annotations:\n")
		for _, key := range slices.Sorted(maps.Keys(d.annotations)) {
			fmt.Fprintf(&b, "    %s: %s\n", key, d.annotations[key])
		}
	}
	b.WriteString(d.metadata)
	b.WriteString(d.body)
	if d.each != "" {
		b.WriteString("{{- end }}\n{{- end }}\n")
	}
	if d.when != "" {
		b.WriteString("{{- end }}\n")
	}
	return b.String(), nil
}

// load reads every object of the files that match the pattern, in the order of their names. No file is an
// error: a chart without its CRDs or rules would install and not work.
func load(pattern string) ([]object, error) {
	files, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no file matches %s: run controller-gen first", pattern)
	}
	var objects []object
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for part := range bytes.SplitSeq(append([]byte("\n"), data...), []byte("\n---")) {
			var o object
			if err := yaml.Unmarshal(part, &o, exactNumbers); err != nil {
				return nil, fmt.Errorf("parse %s: %w", file, err)
			}
			if len(o) > 0 {
				objects = append(objects, o)
			}
		}
	}
	return objects, nil
}

// exactNumbers keeps the digits of numbers, which a float64 would round past 2^53.
func exactNumbers(d *json.Decoder) *json.Decoder {
	d.UseNumber()
	return d
}

// marshal writes a value as YAML and as template text: "{{" in a description is no action.
func marshal(o object) (string, error) {
	text, err := yaml.Marshal(o)
	if err != nil {
		return "", err
	}
	return strings.ReplaceAll(string(text), "{{", `{{ "{{" }}`), nil
}

// indent moves a block two columns to the right.
func indent(block string) string {
	return "  " + strings.ReplaceAll(strings.TrimSuffix(block, "\n"), "\n", "\n  ") + "\n"
}

// dig returns the value at a path of keys, or the zero value when it is absent or of another type.
func dig[T any](o object, path ...string) T {
	var value any = o
	for _, key := range path {
		parent, _ := value.(object)
		value = parent[key]
	}
	found, _ := value.(T)
	return found
}
