package kubectl

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/internal/cluster/owner"
)

// managerLabels are those of KICK's own Deployment, as the chart sets them.
var managerLabels = client.MatchingLabels{"app.kubernetes.io/name": "kick"}

// installation is what the arguments of the manager say. Its zero value stands for the defaults of the manager.
type installation struct {
	deployment *appsv1.Deployment
	arguments  map[string]string
}

// installation reads the Deployment of the manager. Without one it returns nil.
func (s *session) installation(ctx context.Context) (*installation, error) {
	var list appsv1.DeploymentList
	if err := s.client.List(ctx, &list, client.InNamespace(s.kickNamespace), managerLabels); err != nil {
		return nil, fmt.Errorf("look for KICK in namespace %s: %w", s.kickNamespace, err)
	}
	if len(list.Items) == 0 {
		return nil, nil //nolint:nilnil // documented: no Deployment, no error
	}
	return installationOf(&list.Items[0]), nil
}

func installationOf(deployment *appsv1.Deployment) *installation {
	found := &installation{deployment: deployment, arguments: map[string]string{}}
	for _, container := range deployment.Spec.Template.Spec.Containers {
		for _, argument := range container.Args {
			if name, value, ok := strings.Cut(strings.TrimLeft(argument, "-"), "="); ok {
				found.arguments[name] = value
			}
		}
	}
	return found
}

// runs tells whether a replica of KICK is ready.
func (i *installation) runs() bool { return i != nil && i.deployment.Status.ReadyReplicas > 0 }

func (i *installation) list(name string) []string {
	if i == nil || i.arguments[name] == "" {
		return nil
	}
	return strings.Split(i.arguments[name], ",")
}

// watched are the namespaces KICK works in, nil for all.
func (i *installation) watched() []string { return i.list("watch-namespaces") }

// watches tells whether KICK works in a namespace.
func (i *installation) watches(namespace string) bool {
	watched := i.watched()
	return watched == nil || slices.Contains(watched, namespace)
}

// maxConcurrent is how many workloads of the cluster may restart at the same time, as in the manager's options.
func (i *installation) maxConcurrent() int {
	const byDefault = 50
	if i == nil {
		return byDefault
	}
	limit, err := strconv.Atoi(i.arguments["max-concurrent-restarts"])
	if err != nil {
		return byDefault
	}
	return limit
}

// gitOps says where the objects of Argo CD and Flux are.
func (i *installation) gitOps() owner.Options {
	planes := i.list("argocd-namespaces")
	if planes == nil {
		planes = []string{"argocd"} // as in the manager's options
	}
	return owner.Options{
		Namespaces: i.watched(), ArgoCDNamespaces: planes, LocalDestinations: i.list("argocd-local-destinations"),
	}
}
