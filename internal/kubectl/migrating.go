package kubectl

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/workload"
	"github.com/kick-dev/kick/internal/core/deps"
	"github.com/kick-dev/kick/internal/kubectl/migrate"
)

func newMigrate(c *connection) *cobra.Command {
	var everywhere bool
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Print the policies that replace annotations of Reloader and Wave",
		Long: "Reads the annotations of Stakater Reloader and of Wave on workloads and prints the KickPolicies that take their\n" +
			"place, as YAML that kubectl apply takes. Comments name what has no equivalent. Nothing is changed.",
		Example: "  kubectl kick migrate -n shop > policies.yaml\n  kubectl kick migrate -A",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := c.open()
			if err != nil {
				return err
			}
			workloads, err := s.annotatedWorkloads(cmd.Context(), everywhere)
			if err != nil {
				return err
			}
			sources, err := s.annotatedSources(cmd.Context(), everywhere)
			if err != nil {
				return err
			}
			return migrate.WriteYAML(c.streams.Out, migrate.Plans(workloads, sources))
		},
	}
	cmd.Flags().BoolVarP(&everywhere, "all-namespaces", "A", false, "Look at all namespaces")
	return cmd
}

// annotatedWorkloads lists the workloads, and what else the other tools restart.
func (s *session) annotatedWorkloads(ctx context.Context, everywhere bool) ([]migrate.Workload, error) {
	list, err := (&workload.Client{Cache: s.client}).InNamespace(ctx, string(s.in(everywhere)))
	if err != nil {
		return nil, err
	}
	var workloads []migrate.Workload
	for _, w := range list {
		found := migrate.Workload{
			Namespace: w.Key.Namespace, Kind: string(w.Key.Kind), Name: w.Key.Name, Labels: w.Labels(),
			Annotations: w.Object().GetAnnotations(), TemplateAnnotations: w.TemplateAnnotations(),
		}
		for _, reference := range w.References() {
			found.Consumes = append(found.Consumes, reference.Source)
		}
		workloads = append(workloads, found)
	}
	var jobs batchv1.CronJobList
	err = s.client.List(ctx, &jobs, s.in(everywhere))
	if apierrors.IsForbidden(err) {
		return workloads, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list CronJobs: %w", err)
	}
	for i := range jobs.Items {
		workloads = append(workloads, migrate.Workload{
			Namespace: jobs.Items[i].Namespace, Kind: "CronJob", Name: jobs.Items[i].Name,
			Annotations: jobs.Items[i].Annotations,
		})
	}
	return workloads, nil
}

// annotatedSources lists the annotations of Secrets and ConfigMaps, without their content.
func (s *session) annotatedSources(ctx context.Context, everywhere bool) ([]migrate.Source, error) {
	var sources []migrate.Source
	for _, kind := range []v1alpha1.SourceKind{v1alpha1.Secret, v1alpha1.ConfigMap} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: string(kind) + "List"})
		err := s.client.List(ctx, list, s.in(everywhere))
		if apierrors.IsForbidden(err) {
			s.remark("Not seen: annotations of %ss, which you may not list.", kind)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list the metadata of %ss: %w", kind, err)
		}
		for i := range list.Items {
			sources = append(sources, migrate.Source{
				Namespace: list.Items[i].Namespace, Source: deps.Source{Kind: kind, Name: list.Items[i].Name},
				Annotations: list.Items[i].Annotations,
			})
		}
	}
	return sources, nil
}
