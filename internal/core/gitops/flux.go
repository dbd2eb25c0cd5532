package gitops

import (
	"slices"
	"strings"

	"github.com/kick-dev/kick/api/v1alpha1"
)

// The kinds of Flux that own workloads.
const (
	Kustomization = "Kustomization"
	HelmRelease   = "HelmRelease"
)

// Labels by which the controllers of Flux name the owner of an object: its name and, under the other key, its namespace.
const (
	kustomizationName      = "kustomize.toolkit.fluxcd.io/name"
	kustomizationNamespace = "kustomize.toolkit.fluxcd.io/namespace"
	helmReleaseName        = "helm.toolkit.fluxcd.io/name"
	helmReleaseNamespace   = "helm.toolkit.fluxcd.io/namespace"
	resourceSetName        = "resourceset.fluxcd.controlplane.io/name"
)

// Annotations that Helm writes on the objects of a release.
const (
	releaseName      = "meta.helm.sh/release-name"
	releaseNamespace = "meta.helm.sh/release-namespace"
)

// The reasons of conditions of Flux that matter (fluxcd/pkg, apis/meta/conditions.go).
const (
	healthCheckFailed    = "HealthCheckFailed"
	progressingWithRetry = "ProgressingWithRetry"
)

// Flux is what Flux says about one workload.
type Flux struct {
	Availability
	// Objects that list the workload, or that its labels name.
	Objects []FluxObject
}

// FluxObject is a Kustomization or HelmRelease.
type FluxObject struct {
	Kind      string
	Namespace string
	Name      string

	Deleting  bool
	Suspended bool
	// Remote is true for an object that deploys to another cluster.
	Remote bool

	// RequestedAt is the annotation that asks for a reconciliation, HandledAt the last such request that was met.
	RequestedAt, HandledAt string
	// Generation of the spec, ObservedGeneration and AttemptedGeneration as the status has them. AttemptedGeneration is
	// that of HelmReleases alone.
	Generation, ObservedGeneration, AttemptedGeneration int64
	Ready, Reconciling, Stalled                         Condition

	// Inventory has the workloads it applied. HasInventory is false for helm-controller before 1.5, which keeps none.
	Inventory    []ID
	HasInventory bool
	// ReleaseName and ReleaseNamespace are those of the latest Helm release.
	ReleaseName, ReleaseNamespace string
}

// Condition is a condition of a Flux object; its zero value is one that is absent.
type Condition struct {
	Status             string
	Reason             string
	ObservedGeneration int64
}

func (c Condition) isTrue() bool { return c.Status == "True" }

func (o *FluxObject) String() string { return o.Kind + " " + o.Namespace + "/" + o.Name }

// lists tells whether the object has applied the workload.
func (o *FluxObject) lists(w Workload) bool {
	if o.HasInventory || o.Kind != HelmRelease {
		return slices.Contains(o.Inventory, w.ID())
	}
	return w.Labels[helmReleaseName] == o.Name && w.Labels[helmReleaseNamespace] == o.Namespace &&
		o.ReleaseName != "" && w.Annotations[releaseName] == o.ReleaseName && w.Annotations[releaseNamespace] == o.ReleaseNamespace
}

// disown says why an object that may claim the workload does not own it, empty if it does.
func (o *FluxObject) disown(w Workload) string {
	switch {
	case !o.lists(w):
		return o.String() + " does not have the workload in its inventory"
	case o.Remote:
		return o.String() + " deploys to another cluster"
	default:
		return ""
	}
}

// active holds while the status of the object means nothing.
func (o *FluxObject) active() *Hold {
	switch {
	case o.Deleting:
		return hold(v1alpha1.ReasonOwnerDeleting, o.String()+" is being deleted")
	case o.Suspended:
		return hold(v1alpha1.ReasonOwnerSuspended, o.String()+" is suspended")
	default:
		return nil
	}
}

// synced holds until the object has applied its present spec and source and rests. Ready alone does not say that: a
// HelmRelease stays Ready while it looks for work. A Kustomization whose health checks fail has applied everything, and
// its unhealthy workload may be the very one that needs its restart.
func (o *FluxObject) synced() *Hold {
	switch {
	case o.RequestedAt != "" && o.RequestedAt != o.HandledAt:
		return hold(v1alpha1.ReasonSyncInProgress, o.String()+" was asked to reconcile and has not yet")
	case o.Stalled.isTrue():
		return hold(v1alpha1.ReasonOutOfSync, o.String()+" is stalled: "+o.Stalled.Reason)
	case o.failed() && o.Kind == Kustomization && o.Ready.Reason == healthCheckFailed:
		return nil
	case o.failed():
		return hold(v1alpha1.ReasonOutOfSync, o.String()+" is not ready: "+o.Ready.Reason)
	case o.ObservedGeneration != o.Generation,
		o.Kind == HelmRelease && o.AttemptedGeneration != o.Generation:
		return hold(v1alpha1.ReasonSyncInProgress, o.String()+" has changed and has not been reconciled since")
	case o.Reconciling.isTrue(), o.Ready.Status == "", o.Ready.Status == "Unknown":
		return hold(v1alpha1.ReasonSyncInProgress, o.String()+" is being reconciled")
	case !o.Ready.isTrue():
		return hold(v1alpha1.ReasonOutOfSync, o.String()+" is not ready: "+o.Ready.Reason)
	default:
		return nil
	}
}

// failed tells whether the last reconciliation of the present spec failed and none runs. While the next try is only due,
// Reconciling stays True.
func (o *FluxObject) failed() bool {
	return o.Ready.Status == "False" && o.Ready.ObservedGeneration == o.Generation &&
		(!o.Reconciling.isTrue() || o.Reconciling.Reason == progressingWithRetry)
}

// ParseInventoryID parses the id of an entry of an inventory, <namespace>_<name>_<group>_<kind>, and returns false for
// objects that are no workloads (fluxcd/pkg, ssa).
func ParseInventoryID(value string) (ID, bool) {
	parts := strings.Split(value, "_")
	if len(parts) != 4 {
		return ID{}, false
	}
	return IDOf(parts[2], parts[3], parts[0], parts[1])
}

// FluxName names a Flux object.
type FluxName struct{ Kind, Namespace, Name string }

// FluxClaims are the objects that the labels of a workload name as its owners.
func FluxClaims(w Workload) []FluxName {
	var claims []FluxName
	if name := w.Labels[kustomizationName]; name != "" {
		claims = append(claims, FluxName{Kustomization, w.Labels[kustomizationNamespace], name})
	}
	if name := w.Labels[helmReleaseName]; name != "" {
		claims = append(claims, FluxName{HelmRelease, w.Labels[helmReleaseNamespace], name})
	}
	return claims
}
