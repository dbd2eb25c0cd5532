package kubectl

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// format of an output.
type format string

// The formats.
const (
	formatText format = "text"
	formatWide format = "wide"
	formatJSON format = "json"
	formatYAML format = "yaml"
	formatSVG  format = "svg"
	formatHTML format = "html"
)

// formatFlag adds -o with the formats that a command knows; the first is the default.
func formatFlag(cmd *cobra.Command, into *format, known ...format) {
	*into = known[0]
	cmd.Flags().VarP(&formatValue{into, known}, "output", "o", "Output format")
}

type formatValue struct {
	chosen *format
	known  []format
}

// String implements pflag.Value.
func (v *formatValue) String() string { return string(*v.chosen) }

// Type implements pflag.Value.
func (v *formatValue) Type() string { return strings.Join(v.names(), "|") }

// Set implements pflag.Value.
func (v *formatValue) Set(text string) error {
	if !slices.Contains(v.known, format(text)) {
		return fmt.Errorf("must be one of %s", strings.Join(v.names(), ", "))
	}
	*v.chosen = format(text)
	return nil
}

func (v *formatValue) names() []string {
	names := make([]string, len(v.known))
	for i, known := range v.known {
		names[i] = string(known)
	}
	return names
}

// write an object as JSON or YAML, or as text.
func write(out io.Writer, as format, object any, text func(io.Writer) error) error {
	switch as {
	case formatJSON:
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		return encoder.Encode(object)
	case formatYAML:
		encoded, err := yaml.Marshal(object)
		if err != nil {
			return err
		}
		_, err = out.Write(encoded)
		return err
	default:
		return text(out)
	}
}
