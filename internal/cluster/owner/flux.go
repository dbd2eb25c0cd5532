package owner

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/gitops"
)

// requestedAtAnnotation asks Flux for a reconciliation (fluxcd/pkg, apis/meta).
const requestedAtAnnotation = "reconcile.fluxcd.io/requestedAt"

// fluxObject are the fields of a Kustomization or HelmRelease that are read (fluxcd/kustomize-controller and
// fluxcd/helm-controller, api).
type fluxObject struct {
	Spec struct {
		Suspend bool `json:"suspend"`
	} `json:"spec"`
	Status struct {
		ObservedGeneration      int64           `json:"observedGeneration"`
		LastAttemptedGeneration int64           `json:"lastAttemptedGeneration"`
		LastHandledReconcileAt  string          `json:"lastHandledReconcileAt"`
		Conditions              []fluxCondition `json:"conditions"`
		Inventory               *struct {
			Entries []struct {
				ID string `json:"id"`
			} `json:"entries"`
		} `json:"inventory"`
		History []struct {
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		} `json:"history"`
	} `json:"status"`
}

type fluxCondition struct {
	Type               string `json:"type"`
	Status             string `json:"status"`
	Reason             string `json:"reason"`
	ObservedGeneration int64  `json:"observedGeneration"`
}

func parseKustomization(_ Options, object *unstructured.Unstructured) any {
	return parseFlux(gitops.Kustomization, object)
}

func parseHelmRelease(_ Options, object *unstructured.Unstructured) any {
	return parseFlux(gitops.HelmRelease, object)
}

func parseFlux(kind string, object *unstructured.Unstructured) any {
	var read fluxObject
	decode(object, &read)
	o := &gitops.FluxObject{
		Kind: kind, Namespace: object.GetNamespace(), Name: object.GetName(),
		Deleting: object.GetDeletionTimestamp() != nil, Suspended: read.Spec.Suspend,
		Remote:      present(object, "spec", "kubeConfig"),
		RequestedAt: object.GetAnnotations()[requestedAtAnnotation], HandledAt: read.Status.LastHandledReconcileAt,
		Generation: object.GetGeneration(), ObservedGeneration: read.Status.ObservedGeneration,
		AttemptedGeneration: read.Status.LastAttemptedGeneration,
		HasInventory:        read.Status.Inventory != nil,
	}
	for _, c := range read.Status.Conditions {
		condition := gitops.Condition{Status: c.Status, Reason: c.Reason, ObservedGeneration: c.ObservedGeneration}
		switch c.Type {
		case v1alpha1.ConditionReady:
			o.Ready = condition
		case v1alpha1.ConditionReconciling:
			o.Reconciling = condition
		case v1alpha1.ConditionStalled:
			o.Stalled = condition
		}
	}
	if o.HasInventory {
		for _, entry := range read.Status.Inventory.Entries {
			if id, isWorkload := gitops.ParseInventoryID(entry.ID); isWorkload {
				o.Inventory = append(o.Inventory, id)
			}
		}
	}
	if len(read.Status.History) > 0 {
		o.ReleaseName, o.ReleaseNamespace = read.Status.History[0].Name, read.Status.History[0].Namespace
	}
	return o
}

// flux gathers what Flux says about a workload.
func (r *Reader) flux(w *gitops.Workload) gitops.Flux {
	facts := gitops.Flux{Availability: r.watches.availability(v1alpha1.ProviderFlux)}
	if facts.Presence != gitops.Readable {
		return facts
	}
	var found []*entry
	for _, kind := range []string{gitops.Kustomization, gitops.HelmRelease} {
		found = append(found, r.watches.indexed(kind, workloadIndex, idKey(w.ID()))...)
	}
	for _, claim := range gitops.FluxClaims(*w) {
		found = append(found, r.watches.named(claim.Kind, claim.Namespace, claim.Name)...)
	}
	known := map[string]bool{}
	for _, e := range found {
		if o, ok := e.facts.(*gitops.FluxObject); ok && !known[o.String()] {
			known[o.String()] = true
			facts.Objects = append(facts.Objects, *o)
		}
	}
	return facts
}
