package kubectl

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/workload"
	"github.com/kick-dev/kick/internal/core/policy"
	"github.com/kick-dev/kick/internal/kubectl/preview"
	"github.com/kick-dev/kick/internal/kubectl/shape"
	"github.com/kick-dev/kick/webhooks"
)

func newPreview(c *connection) *cobra.Command {
	var (
		files   []string
		offline bool
		as      format
	)
	cmd := &cobra.Command{
		Use:   "preview -f POLICY.yaml",
		Short: "Show what a policy would do before it is stored",
		Long: "Checks KickPolicies as the API server and the webhook would, and shows what they would do: which workloads and\n" +
			"sources they would manage, which other policies select those, whose Pods are stale now, and when the schedule\n" +
			"opens. A malformed policy gets the errors of the webhook, and no cluster is needed for that. Nothing is stored.",
		Example: "  kubectl kick preview -f policy.yaml\n  kubectl kick preview --offline -f - < policies.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			policies, err := readPolicies(cmd.Context(), c.streams.In, files)
			if err != nil {
				return err
			}
			return c.preview(cmd.Context(), policies, offline, as)
		},
	}
	cmd.Flags().StringArrayVarP(&files, "filename", "f", nil, "File with KickPolicies, or - for standard input; may be repeated")
	cmd.Flags().BoolVar(&offline, "offline", false, "Only check, without a cluster")
	formatFlag(cmd, &as, formatText, formatJSON, formatYAML)
	if err := cmd.MarkFlagRequired("filename"); err != nil {
		panic(err) // Only a flag that does not exist can bring this about.
	}
	return cmd
}

// readPolicies reads and checks every KickPolicy of the files. All faults of all of them are reported together.
func readPolicies(ctx context.Context, in io.Reader, files []string) ([]*v1alpha1.KickPolicy, error) {
	checker, err := shape.Of("KickPolicy")
	if err != nil {
		return nil, err
	}
	var policies []*v1alpha1.KickPolicy
	var faults []error
	for _, file := range files {
		documents, err := readDocuments(in, file)
		if err != nil {
			return nil, err
		}
		for _, document := range documents {
			parsed, err := parsePolicy(ctx, checker, document)
			switch {
			case err != nil:
				faults = append(faults, fmt.Errorf("%s: %w", file, err))
			case parsed != nil:
				policies = append(policies, parsed)
			}
		}
	}
	if len(policies) == 0 && len(faults) == 0 {
		return nil, fmt.Errorf("no KickPolicy in %s", strings.Join(files, ", "))
	}
	return policies, errors.Join(faults...)
}

func readDocuments(in io.Reader, file string) ([][]byte, error) {
	if file != "-" {
		opened, err := os.Open(file) //nolint:gosec // the user names it
		if err != nil {
			return nil, err
		}
		defer opened.Close() //nolint:errcheck // read only
		in = opened
	}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(in))
	var documents [][]byte
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		documents = append(documents, document)
	}
}

// parsePolicy reads a document: nil if it holds no KickPolicy, and an error with the words of the API server and the webhook
// if it holds one that they refuse.
func parsePolicy(ctx context.Context, checker *shape.Schema, document []byte) (*v1alpha1.KickPolicy, error) {
	object := map[string]any{}
	if err := yaml.UnmarshalStrict(document, &object); err != nil {
		return nil, fmt.Errorf("is no YAML: %w", err)
	}
	if len(object) == 0 {
		return nil, nil //nolint:nilnil // documented: no policy, no error
	}
	if object["kind"] != "KickPolicy" || object["apiVersion"] != v1alpha1.GroupVersion.String() {
		return nil, nil //nolint:nilnil // documented: no policy, no error
	}
	metadata, _ := object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	if unknown := checker.Unknown(object); len(unknown) > 0 {
		slices.Sort(unknown)
		return nil, fmt.Errorf("KickPolicy %q has unknown fields, which the API server would drop: %s", name, strings.Join(unknown, ", "))
	}
	kind := schema.GroupKind{Group: v1alpha1.GroupVersion.Group, Kind: "KickPolicy"}
	if faults := checker.Check(ctx, object); len(faults) > 0 {
		return nil, apierrors.NewInvalid(kind, name, faults)
	}
	parsed := &v1alpha1.KickPolicy{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, parsed); err != nil {
		return nil, fmt.Errorf("KickPolicy %q: %w", name, err)
	}
	return parsed, webhooks.Refusal(parsed)
}

func (c *connection) preview(ctx context.Context, policies []*v1alpha1.KickPolicy, offline bool, as format) error {
	s := &session{connection: c}
	now := localNow()
	if !offline {
		opened, err := c.open()
		if err != nil {
			return err
		}
		s = opened
		now = s.now()
	}
	var reports []preview.Report
	for _, p := range policies {
		report, err := s.previewOf(ctx, p, offline)
		if err != nil {
			return err
		}
		reports = append(reports, report)
	}
	return write(c.streams.Out, as, reports, func(out io.Writer) error {
		for i, report := range reports {
			if i > 0 {
				fmt.Fprintln(out) //nolint:errcheck // the next write returns it
			}
			if err := report.WriteText(out, now); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *session) previewOf(ctx context.Context, p *v1alpha1.KickPolicy, offline bool) (preview.Report, error) {
	parsed, _ := policy.Parse(p)
	report := preview.Report{Namespace: p.Namespace, Policy: p.Name, Offline: offline, Force: "Acting"}
	switch {
	case parsed.Suspended:
		report.Force = "Suspended"
	case parsed.DryRun:
		report.Force = "DryRun"
	}
	if offline {
		report.Schedule = preview.ScheduleOf(parsed.Schedule, localNow())
		if p.Namespace == "" {
			report.Namespace = "default"
		}
		return report, nil
	}
	if p.Namespace == "" {
		p.Namespace, report.Namespace = s.namespace, s.namespace
	}
	report.Schedule = preview.ScheduleOf(parsed.Schedule, s.now())
	err := s.previewWorkloads(ctx, p, parsed, &report)
	return report, err
}

// previewWorkloads looks at the workloads as if the policy were stored.
func (s *session) previewWorkloads(ctx context.Context, p *v1alpha1.KickPolicy, parsed policy.Policy, report *preview.Report) error {
	inspector, err := s.inspect(ctx, p.Namespace)
	if err != nil {
		return err
	}
	tried := &trying{Reader: s.client, policy: p}
	inspector.policies, inspector.observe = tried, true
	report.Warnings = webhooks.Advice(ctx, tried, s.clock, s.kickNamespace, p)
	stored, err := inspector.stored(ctx, p.Namespace)
	if err != nil {
		return err
	}
	workloads, err := (&workload.Client{Cache: s.client}).InNamespace(ctx, p.Namespace)
	if err != nil {
		return err
	}
	slices.SortFunc(workloads, func(a, b *workload.Workload) int { return strings.Compare(a.Key.String(), b.Key.String()) })
	old, replaces := stored[p.Name]
	report.Replaces = replaces
	for _, w := range workloads {
		if replaces && old.SelectsWorkload(w.Labels()) && !parsed.SelectsWorkload(w.Labels()) {
			report.Released = append(report.Released, shown(w.Key.Kind, w.Key.Name))
		}
		if !parsed.SelectsWorkload(w.Labels()) {
			continue
		}
		of, err := inspector.reportOn(ctx, w)
		if err != nil {
			return err
		}
		report.Workloads = append(report.Workloads, preview.Workload{
			Name: shown(w.Key.Kind, w.Key.Name), Sources: of.Sources, Verdict: of.Verdict, Decision: of.Decision,
			Others: others(stored, p.Name, w),
		})
		report.Unseen = merged(report.Unseen, of.Unseen)
	}
	report.Unseen = merged(inspector.notes, report.Unseen)
	return nil
}

// stored are the policies of a namespace, by name.
func (i *inspector) stored(ctx context.Context, namespace string) (map[string]policy.Policy, error) {
	var list v1alpha1.KickPolicyList
	if err := i.client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list the policies of namespace %s: %w", namespace, err)
	}
	policies := map[string]policy.Policy{}
	for n := range list.Items {
		policies[list.Items[n].Name], _ = policy.Parse(&list.Items[n])
	}
	return policies, nil
}

// others are the other policies that select a workload.
func others(stored map[string]policy.Policy, name string, w *workload.Workload) []string {
	var names []string
	for other, p := range stored {
		if other != name && p.SelectsWorkload(w.Labels()) {
			names = append(names, other)
		}
	}
	slices.Sort(names)
	return names
}

func merged(lists ...[]string) []string {
	var all []string
	for _, list := range lists {
		for _, item := range list {
			if !slices.Contains(all, item) {
				all = append(all, item)
			}
		}
	}
	return all
}

// trying reads from the cluster, as if a policy were stored that is not.
type trying struct {
	client.Reader
	policy *v1alpha1.KickPolicy
}

// List implements client.Reader.
func (t *trying) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := t.Reader.List(ctx, list, options...); err != nil {
		return err
	}
	policies, ok := list.(*v1alpha1.KickPolicyList)
	if !ok {
		return nil
	}
	policies.Items = slices.DeleteFunc(policies.Items, func(p v1alpha1.KickPolicy) bool {
		return p.Namespace == t.policy.Namespace && p.Name == t.policy.Name
	})
	policies.Items = append(policies.Items, *t.policy)
	return nil
}
