package gitops_test

import (
	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/gitops"
)

// web is the workload of the tests.
var web = gitops.Workload{Kind: v1alpha1.Deployment, Namespace: "shop", Name: "web"}

const here = "https://kubernetes.default.svc"

// application is an Application of this cluster that lists web and is in sync with its spec.
func application(edits ...func(*gitops.Application)) gitops.Application {
	source := gitops.Source{RepoURL: "https://git.example/shop", Path: "web", TargetRevision: "main"}
	to := gitops.Destination{Server: here, Namespace: "shop"}
	a := gitops.Application{
		Namespace: "argocd", Name: "shop", ControllerNamespace: "argocd",
		Destination: to, Sources: []gitops.Source{source}, AutoSync: true,
		Operation: &gitops.Operation{Phase: "Succeeded"},
		Sync: gitops.Sync{
			Status: "Synced", ComparedSources: []gitops.Source{source}, ComparedDestination: to,
		},
		Workloads: []gitops.ListedWorkload{{ID: web.ID(), Status: "Synced"}},
	}
	for _, edit := range edits {
		edit(&a)
	}
	return a
}

// argo are facts in which Argo CD alone is installed, with a project without windows.
func argo(applications ...gitops.Application) gitops.Facts {
	return gitops.Facts{
		Workload: web,
		ArgoCD: gitops.ArgoCD{
			Availability: gitops.Availability{Presence: gitops.Readable},
			Applications: applications,
			Planes: map[string]gitops.Plane{
				"argocd": {Projects: map[string]gitops.Project{"default": {Name: "default"}}},
			},
		},
		Flux: gitops.Flux{Availability: gitops.Availability{Presence: gitops.Absent}},
	}
}

// fluxObject is an object of this cluster that lists web and is reconciled.
func fluxObject(kind string, edits ...func(*gitops.FluxObject)) gitops.FluxObject {
	o := gitops.FluxObject{
		Kind: kind, Namespace: "flux-system", Name: "shop",
		Generation: 2, ObservedGeneration: 2, AttemptedGeneration: 2,
		Ready:     gitops.Condition{Status: "True", Reason: "ReconciliationSucceeded", ObservedGeneration: 2},
		Inventory: []gitops.ID{web.ID()}, HasInventory: true,
	}
	for _, edit := range edits {
		edit(&o)
	}
	return o
}

// flux are facts in which Flux alone is installed.
func flux(objects ...gitops.FluxObject) gitops.Facts {
	return gitops.Facts{
		Workload: web,
		ArgoCD:   gitops.ArgoCD{Availability: gitops.Availability{Presence: gitops.Absent}},
		Flux:     gitops.Flux{Availability: gitops.Availability{Presence: gitops.Readable}, Objects: objects},
	}
}

func reasonOf(hold *gitops.Hold) string {
	if hold == nil {
		return ""
	}
	return hold.Reason
}
