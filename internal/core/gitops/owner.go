package gitops

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kick-dev/kick/api/v1alpha1"
)

// Owner is the one object that deploys a workload.
type Owner struct {
	facts       *Facts
	application *Application
	flux        *FluxObject
}

// Owner returns the owner of the workload that the provider knows, or why it cannot be told. Auto asks both tools and
// prefers neither.
func (f *Facts) Owner(provider v1alpha1.GitOpsProvider) (Owner, *Hold) {
	if blocked := f.unavailable(provider); blocked != nil {
		return Owner{}, blocked
	}
	owners := f.Owners(provider)
	switch len(owners) {
	case 1:
		return owners[0], nil
	case 0:
		return Owner{}, hold(v1alpha1.ReasonOwnerUnknown, f.unknown(provider))
	default:
		names := make([]string, len(owners))
		for i, owner := range owners {
			names[i] = owner.String()
		}
		slices.Sort(names)
		return Owner{}, hold(v1alpha1.ReasonMultipleOwners,
			"the workload has to have one owner and is listed by several: "+strings.Join(names, ", "))
	}
}

// Owners returns every object of the provider that proves to own the workload.
func (f *Facts) Owners(provider v1alpha1.GitOpsProvider) []Owner {
	var owners []Owner
	if asks(provider, v1alpha1.ProviderArgoCD) && f.ArgoCD.Presence == Readable {
		for i := range f.ArgoCD.Applications {
			if a := &f.ArgoCD.Applications[i]; f.ArgoCD.disown(a, f.Workload) == "" {
				owners = append(owners, Owner{facts: f, application: a})
			}
		}
	}
	if asks(provider, v1alpha1.ProviderFlux) && f.Flux.Presence == Readable {
		for i := range f.Flux.Objects {
			if o := &f.Flux.Objects[i]; o.disown(f.Workload) == "" {
				owners = append(owners, Owner{facts: f, flux: o})
			}
		}
	}
	return owners
}

// asks tells whether a provider includes the tool.
func asks(provider, tool v1alpha1.GitOpsProvider) bool {
	return provider == tool || provider == v1alpha1.ProviderAuto
}

// unavailable holds where a tool that is asked cannot answer. With Auto a tool that is not installed owns nothing.
func (f *Facts) unavailable(provider v1alpha1.GitOpsProvider) *Hold {
	for _, tool := range []struct {
		provider v1alpha1.GitOpsProvider
		Availability
	}{{v1alpha1.ProviderArgoCD, f.ArgoCD.Availability}, {v1alpha1.ProviderFlux, f.Flux.Availability}} {
		switch {
		case !asks(provider, tool.provider):
		case tool.Presence == Absent && provider == tool.provider:
			return hold(v1alpha1.ReasonProviderUnavailable, NotInstalled(tool.provider))
		case tool.Presence == Unreadable:
			return hold(v1alpha1.ReasonProviderUnavailable,
				fmt.Sprintf("the objects of %s cannot be read: %s", tool.provider, tool.Message))
		}
	}
	return nil
}

// NotInstalled says that the API server does not serve the kinds of a tool.
func NotInstalled(provider v1alpha1.GitOpsProvider) string {
	return fmt.Sprintf("%s is not installed in this cluster: the API server does not serve its kinds", provider)
}

// unknown says what was seen of owners that are none.
func (f *Facts) unknown(provider v1alpha1.GitOpsProvider) string {
	var seen []string
	if asks(provider, v1alpha1.ProviderArgoCD) {
		seen = append(seen, f.argoClaims()...)
	}
	if asks(provider, v1alpha1.ProviderFlux) {
		seen = append(seen, f.fluxClaims()...)
	}
	if provider != v1alpha1.ProviderFlux && f.ArgoCD.Presence == Absent {
		seen = append(seen, NotInstalled(v1alpha1.ProviderArgoCD))
	}
	if provider != v1alpha1.ProviderArgoCD && f.Flux.Presence == Absent {
		seen = append(seen, NotInstalled(v1alpha1.ProviderFlux))
	}
	seen = append(seen, f.otherClaims(provider)...)
	if len(seen) == 0 {
		seen = []string{"nothing claims it"}
	}
	return "the workload has no owner that could be asked: " + strings.Join(seen, "; ")
}

// argoClaims explains why the Applications that claim the workload do not own it.
func (f *Facts) argoClaims() []string {
	var seen []string
	for i := range f.ArgoCD.Applications {
		if why := f.ArgoCD.disown(&f.ArgoCD.Applications[i], f.Workload); why != "" {
			seen = append(seen, why)
		}
	}
	value, tracked := f.Workload.Annotations[TrackingAnnotation]
	if !tracked {
		return seen
	}
	id, parsed := ParseTrackingID(value)
	switch {
	case !parsed:
		seen = append(seen, "its annotation tracking-id cannot be parsed")
	case !id.of(f.Workload):
		seen = append(seen, "its annotation tracking-id is that of another object")
	case len(seen) == 0:
		seen = append(seen, fmt.Sprintf("its annotation tracking-id names the Application %s, which is not in this cluster", id.App))
	}
	return seen
}

// fluxClaims explains why the Flux objects that claim the workload do not own it.
func (f *Facts) fluxClaims() []string {
	var seen []string
	for i := range f.Flux.Objects {
		if why := f.Flux.Objects[i].disown(f.Workload); why != "" {
			seen = append(seen, why)
		}
	}
	for _, claim := range FluxClaims(f.Workload) {
		known := slices.ContainsFunc(f.Flux.Objects, func(o FluxObject) bool {
			return FluxName{o.Kind, o.Namespace, o.Name} == claim
		})
		if !known {
			seen = append(seen, fmt.Sprintf("its labels name %s %s/%s, which is not in this cluster",
				claim.Kind, claim.Namespace, claim.Name))
		}
	}
	return seen
}

// otherClaims names tools that cannot be asked, or that the policy does not ask.
func (f *Facts) otherClaims(provider v1alpha1.GitOpsProvider) []string {
	var seen []string
	_, tracked := f.Workload.Annotations[TrackingAnnotation]
	claims := FluxClaims(f.Workload)
	switch {
	case provider == v1alpha1.ProviderFlux && tracked:
		seen = append(seen, "it carries the marks of Argo CD, which the policy does not ask")
	case provider == v1alpha1.ProviderArgoCD && len(claims) > 0:
		seen = append(seen, "it carries the marks of Flux, which the policy does not ask")
	}
	if name := f.Workload.Labels[resourceSetName]; name != "" {
		seen = append(seen, "it is applied by the ResourceSet "+name+" of Flux Operator, which cannot be asked")
	}
	if f.Workload.Labels["app.kubernetes.io/managed-by"] == "Helm" && len(claims) == 0 && !tracked {
		seen = append(seen, "it was installed by Helm alone")
	}
	return seen
}

// String is the kind, namespace and name.
func (o Owner) String() string {
	if o.application != nil {
		return o.application.String()
	}
	return o.flux.String()
}

// Status is the owner as a request shows it.
func (o Owner) Status() *v1alpha1.Owner {
	if a := o.application; a != nil {
		return &v1alpha1.Owner{
			Provider: v1alpha1.ProviderArgoCD, Kind: "Application", Namespace: a.Namespace, Name: a.Name, Project: a.ProjectName(),
		}
	}
	return &v1alpha1.Owner{
		Provider: v1alpha1.ProviderFlux, Kind: o.flux.Kind, Namespace: o.flux.Namespace, Name: o.flux.Name,
	}
}

// Active holds while the owner is being deleted or suspended.
func (o Owner) Active() *Hold {
	if o.application != nil {
		return o.application.active()
	}
	return o.flux.active()
}

// Windows holds while the sync windows of the owner are closed, by the rules of Argo CD; Flux has none. Manual tells a
// restart that a person asked for, which a window may admit where it refuses others.
func (o Owner) Windows(now time.Time, manual bool) *Hold {
	if o.application == nil {
		return nil
	}
	return o.facts.ArgoCD.windows(o.application, now, manual)
}

// Synced holds while the owner is not in sync, or works on it.
func (o Owner) Synced() *Hold {
	if o.application != nil {
		return o.application.synced(o.facts.Workload)
	}
	return o.flux.synced()
}
