package faults

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kick-dev/kick/api/v1alpha1"
)

// gitOpsKinds is where the stand-ins for the kinds of Argo CD and Flux are.
const gitOpsKinds = "../integration/testdata/gitops"

// The kinds of the GitOps tools that own workloads, and what one of Argo CD's belongs to.
var (
	applications   = schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Application"}
	projects       = schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "AppProject"}
	kustomizations = schema.GroupVersionKind{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization"}
	helmReleases   = schema.GroupVersionKind{Group: "helm.toolkit.fluxcd.io", Version: "v2", Kind: "HelmRelease"}
)

type object = map[string]any

// installGitOps makes the kinds known for one test.
func installGitOps(t *testing.T) {
	t.Helper()
	output, err := bed.Kubectl(t.Context(), "apply", "-f", gitOpsKinds)
	if err == nil {
		output, err = bed.Kubectl(t.Context(), "wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
	}
	if err != nil {
		t.Fatal(err, output)
	}
	t.Cleanup(func() {
		if output, err := bed.Kubectl(context.Background(), "delete", "--ignore-not-found", "-f", gitOpsKinds); err != nil {
			t.Error(err, output)
		}
	})
}

// newObject creates an object of a GitOps tool and writes its status.
func newObject(t *testing.T, kind schema.GroupVersionKind, namespace, name string, spec, status object) {
	t.Helper()
	o := &unstructured.Unstructured{Object: object{"spec": spec}}
	o.SetGroupVersionKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	if kind.Group == applications.Group { // Its status is no subresource.
		o.Object["status"] = status
		must(t, create(t.Context(), o))
		return
	}
	must(t, create(t.Context(), o))
	o.Object["status"] = status
	must(t, k8s.Status().Update(t.Context(), o))
}

// newArgoCDFleet is a fleet that an Application in sync owns, which the policy asks for.
func newArgoCDFleet(t *testing.T) *fleet {
	t.Helper()
	namespace := newNamespace(t)
	destination := object{"server": "https://kubernetes.default.svc", "namespace": namespace}
	source := object{"repoURL": "https://git.example/shop", "path": ".", "targetRevision": "main"}
	newObject(t, projects, namespace, "default", object{"sourceNamespaces": []any{"*"}}, nil)
	newObject(t, applications, namespace, "shop", object{"project": "default", "destination": destination, "source": source}, object{
		"controllerNamespace": namespace,
		"sync":                object{"status": "Synced", "comparedTo": object{"destination": destination, "source": source}},
		"operationState":      object{"phase": "Succeeded"},
		"resources": []any{object{
			"group": "apps", "version": "v1", "kind": "Deployment", "namespace": namespace, "name": "w0", "status": "Synced",
		}},
	})
	return startFleet(t, namespace, 1, func(i int) consumer { return mixed(namespace, i) }, asking(v1alpha1.ProviderArgoCD))
}

// newFluxFleet is a fleet of two, of which a Kustomization owns one and a HelmRelease the other.
func newFluxFleet(t *testing.T) *fleet {
	t.Helper()
	namespace := newNamespace(t)
	for i, kind := range []schema.GroupVersionKind{kustomizations, helmReleases} {
		newObject(t, kind, namespace, "shop", object{"interval": "1m"}, object{
			"observedGeneration": int64(1), "lastAttemptedGeneration": int64(1),
			"conditions": []any{object{
				"type": "Ready", "status": "True", "reason": "ReconciliationSucceeded", "observedGeneration": int64(1),
				"lastTransitionTime": "2026-01-01T00:00:00Z", "message": "played by a test",
			}},
			"inventory": object{"entries": []any{object{"id": fmt.Sprintf("%s_w%d_apps_Deployment", namespace, i), "v": "v1"}}},
		})
	}
	return startFleet(t, namespace, 2, func(i int) consumer {
		return reading(namespace, fmt.Sprint("w", i), fmt.Sprint("w", i))
	}, asking(v1alpha1.ProviderFlux))
}

// asking makes a policy ask a GitOps tool.
func asking(provider v1alpha1.GitOpsProvider) func(*v1alpha1.KickPolicy) {
	return func(policy *v1alpha1.KickPolicy) { policy.Spec.GitOps.Provider = provider }
}
