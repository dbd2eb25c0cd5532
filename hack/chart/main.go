// Command chart turns what controller-gen wrote into config/ into templates of the Helm chart.
//
// The CRDs, the manager's rules and the webhook registration have one source, the markers in the Go
// code; what the chart adds is what depends on a release: names, namespace, labels, the CA annotation.
// The names themselves are defined in the chart's _helpers.tpl; this program only refers to them.
//
// It also writes what repeats values.schema.json: values.yaml, and the table of values in the chart's README.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	config := flag.String("config", "config", "folder with crd/bases, rbac and webhook")
	chart := flag.String("chart", "charts/kick", "folder of the chart; its templates/generated holds nothing else")
	flag.Parse()
	err := run(*config, filepath.Join(*chart, "templates", "generated"))
	if err == nil {
		err = writeValues(*chart)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

func run(config, out string) error {
	templates, err := generate(config)
	if err != nil {
		return err
	}
	return write(out, templates)
}

// generate returns the text of every template by file name.
func generate(config string) (map[string]string, error) {
	templates := map[string]string{}
	for _, source := range []struct {
		pattern string
		convert func(object) (file string, documents []document, err error)
	}{
		{"crd/bases/*.yaml", crd},
		{"rbac/role.yaml", role},
		{"webhook/manifests.yaml", webhook},
	} {
		objects, err := load(filepath.Join(config, filepath.FromSlash(source.pattern)))
		if err != nil {
			return nil, err
		}
		for _, o := range objects {
			file, documents, err := source.convert(o)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", source.pattern, err)
			}
			for _, d := range documents {
				text, err := d.render()
				if err != nil {
					return nil, fmt.Errorf("render %s: %w", file, err)
				}
				templates[file] += text
			}
		}
	}
	for file, text := range templates {
		templates[file] = header + text
	}
	return templates, nil
}

// write makes folder hold exactly the given files.
func write(folder string, files map[string]string) error {
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
