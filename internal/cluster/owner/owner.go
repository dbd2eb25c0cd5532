// Package owner reads the objects of Argo CD and Flux into facts. It depends on neither of the two: their kinds are looked
// for while KICK runs, watched as soon as the API server serves them and dropped when it no longer does. It gives no
// verdict.
package owner

import (
	"context"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/workload"
	"github.com/kick-dev/kick/internal/core/gitops"
)

// Options of the reader.
type Options struct {
	// Namespaces are where KICK manages workloads; empty for the whole cluster. Then nothing is asked of the cluster as a
	// whole, but of each of these and of ArgoCDNamespaces.
	Namespaces []string
	// ArgoCDNamespaces are those of the control planes of Argo CD.
	ArgoCDNamespaces []string
	// LocalDestinations are names and URLs under which Argo CD knows this cluster, beside its own.
	LocalDestinations []string
}

// liveTimeout bounds the reads of one live look.
const liveTimeout = 10 * time.Second

// Reader reads GitOps objects, from its own caches and live. Its callbacks have to be set before it starts.
type Reader struct {
	// Wanted says which providers policies name now. What nobody wants is not looked for.
	Wanted func(context.Context) ([]v1alpha1.GitOpsProvider, error)
	// Changed is called with the workloads that an object lists or listed when something about it changed that facts
	// show.
	Changed func(context.Context, []workload.Key)
	// ChangedUnlisted is called when an object changed that keeps no list of its workloads.
	ChangedUnlisted func(context.Context)
	// Turned is called when a tool has become readable, or no longer is.
	Turned func(context.Context)

	options   Options
	dynamic   dynamic.Interface
	discovery discovery.DiscoveryInterface
	watches   watches
	nudges    chan struct{}
}

// New returns a reader for the cluster of the configuration.
func New(config *rest.Config, transport *http.Client, options Options) (*Reader, error) {
	client, err := dynamic.NewForConfigAndClient(config, transport)
	if err != nil {
		return nil, fmt.Errorf("make a client of GitOps objects: %w", err)
	}
	kinds, err := discovery.NewDiscoveryClientForConfigAndClient(config, transport)
	if err != nil {
		return nil, fmt.Errorf("make a client of the API server's kinds: %w", err)
	}
	return newReader(client, kinds, options), nil
}

func newReader(client dynamic.Interface, kinds discovery.DiscoveryInterface, options Options) *Reader {
	r := &Reader{options: options, dynamic: client, discovery: kinds, nudges: make(chan struct{}, 1)}
	r.watches.init()
	return r
}

// Facts returns what the caches know about the owners of a workload. Right after the start it waits a while for them.
func (r *Reader) Facts(ctx context.Context, w *workload.Workload, providers []v1alpha1.GitOpsProvider) gitops.Facts {
	r.settle(ctx, providers)
	facts := gitops.Facts{Workload: gitops.Workload{
		Kind: w.Key.Kind, Namespace: w.Key.Namespace, Name: w.Key.Name, Labels: w.Labels(), Annotations: w.Object().GetAnnotations(),
	}}
	facts.ArgoCD = r.argoCD(&facts.Workload)
	facts.Flux = r.flux(&facts.Workload)
	return facts
}

// Presence of a tool, as far as it was looked for.
func (r *Reader) Presence(ctx context.Context, provider v1alpha1.GitOpsProvider) gitops.Presence {
	r.settle(ctx, []v1alpha1.GitOpsProvider{provider})
	return r.watches.availability(provider).Presence
}

// Live reads the owners of a workload anew from the API server. The caches of different kinds are not in step: a change
// that the owner made to a source may be seen before the state in which the owner made it.
func (r *Reader) Live(ctx context.Context, facts gitops.Facts) (gitops.Facts, error) {
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	owners := facts.Owners(v1alpha1.ProviderAuto)
	for i := range owners {
		shown := owners[i].Status()
		kind := kinds[shown.Kind]
		live, err := r.dynamic.Resource(kind.resource).Namespace(shown.Namespace).Get(ctx, shown.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			facts = without(facts, shown)
		case apierrors.IsForbidden(err):
			facts = unreadable(facts, shown.Provider, err.Error())
		case err != nil:
			return gitops.Facts{}, fmt.Errorf("read %s %s/%s: %w", shown.Kind, shown.Namespace, shown.Name, err)
		default:
			facts = with(without(facts, shown), r.parse(kind, live).facts)
		}
	}
	return facts, nil
}

// without returns the facts without an object.
func without(facts gitops.Facts, gone *v1alpha1.Owner) gitops.Facts {
	var applications []gitops.Application
	for _, a := range facts.ArgoCD.Applications {
		if gone.Kind != applicationKind || a.Namespace != gone.Namespace || a.Name != gone.Name {
			applications = append(applications, a)
		}
	}
	var objects []gitops.FluxObject
	for _, o := range facts.Flux.Objects {
		if gone.Kind != o.Kind || o.Namespace != gone.Namespace || o.Name != gone.Name {
			objects = append(objects, o)
		}
	}
	facts.ArgoCD.Applications, facts.Flux.Objects = applications, objects
	return facts
}

// with returns the facts with an object.
func with(facts gitops.Facts, object any) gitops.Facts {
	switch o := object.(type) {
	case *gitops.Application:
		facts.ArgoCD.Applications = append(facts.ArgoCD.Applications, *o)
	case *gitops.FluxObject:
		facts.Flux.Objects = append(facts.Flux.Objects, *o)
	}
	return facts
}

func unreadable(facts gitops.Facts, provider v1alpha1.GitOpsProvider, message string) gitops.Facts {
	now := gitops.Availability{Presence: gitops.Unreadable, Message: message}
	if provider == v1alpha1.ProviderArgoCD {
		facts.ArgoCD.Availability = now
	} else {
		facts.Flux.Availability = now
	}
	return facts
}
