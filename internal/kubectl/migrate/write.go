package migrate

import (
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kick-dev/kick/internal/kubectl/text"
)

// WriteYAML writes the policies as YAML, ready to be applied, with everything else in comments.
func WriteYAML(out io.Writer, plans []Plan) error {
	w := text.NewWriter(out)
	if len(plans) == 0 {
		w.Line("# No workload carries annotations of Reloader or Wave.")
	}
	for _, plan := range plans {
		w.Line("# Namespace %s", plan.Namespace)
		for _, gap := range plan.Gaps {
			comment(w, "- ", gap)
		}
		if len(plan.Labels) > 0 {
			w.Line("#")
			w.Line("# To be run before:")
			for _, command := range plan.Labels {
				w.Line("#   %s", command)
			}
		}
		for _, made := range plan.Policies {
			encoded, err := encode(made)
			if err != nil {
				return err
			}
			w.Line("---")
			comment(w, "", "Takes the place of the annotations on "+strings.Join(made.Covers, ", "))
			w.Line("%s", strings.TrimSuffix(encoded, "\n"))
		}
		w.Line("")
	}
	return w.Err()
}

// encode writes a policy without the fields that are empty, or KICK's own.
func encode(made Policy) (string, error) {
	spec := map[string]any{"discovery": map[string]any{"workloadSelector": made.Object.Spec.Discovery.WorkloadSelector}}
	if interval := made.Object.Spec.Restart.MinInterval; interval != nil {
		spec["restart"] = map[string]any{"minInterval": interval.Duration.String()}
	}
	encoded, err := yaml.Marshal(map[string]any{
		"apiVersion": made.Object.APIVersion, "kind": made.Object.Kind,
		"metadata": map[string]any{"name": made.Object.Name, "namespace": made.Object.Namespace}, "spec": spec,
	})
	if err != nil {
		return "", fmt.Errorf("encode the policy %s: %w", made.Object.Name, err)
	}
	return string(encoded), nil
}

// comment writes a text in lines of a readable length.
func comment(w *text.Writer, first, content string) {
	const width = 116
	line := first
	for word := range strings.FieldsSeq(content) {
		if len(line)+len(word) > width {
			w.Line("# %s", strings.TrimRight(line, " "))
			line = strings.Repeat(" ", len(first))
		}
		line += word + " "
	}
	w.Line("# %s", strings.TrimRight(line, " "))
}
