package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kick-dev/kick/api/v1alpha1"
)

// The specs play Argo CD and Flux: they write the objects of those as their controllers would, and KICK reads them.
var (
	applications   = schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Application"}
	projects       = schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "AppProject"}
	kustomizations = schema.GroupVersionKind{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization"}
	helmReleases   = schema.GroupVersionKind{Group: "helm.toolkit.fluxcd.io", Version: "v2", Kind: "HelmRelease"}
)

// gitOpsCRDs are the definitions of the kinds of the tools.
func gitOpsCRDs(tools ...string) []*unstructured.Unstructured {
	GinkgoHelper()
	var definitions []*unstructured.Unstructured
	for _, tool := range tools {
		text, err := os.ReadFile(filepath.Join("testdata", "gitops", tool+".yaml"))
		Expect(err).NotTo(HaveOccurred())
		definition := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal(text, &definition.Object)).To(Succeed())
		definitions = append(definitions, definition)
	}
	return definitions
}

var (
	argoKinds = []string{"applications", "appprojects"}
	fluxKinds = []string{"kustomizations", "helmreleases"}
)

// installGitOps has the kinds served, whether they were before or not.
func installGitOps(ctx context.Context, tools ...string) {
	GinkgoHelper()
	for _, definition := range gitOpsCRDs(tools...) {
		if err := k8s.Create(ctx, definition); !errors.IsAlreadyExists(err) {
			Expect(err).NotTo(HaveOccurred())
		}
		Eventually(func(g Gomega) {
			group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
			kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
			versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(schema.GroupVersionKind{
				Group: group, Version: versions[0].(map[string]any)["name"].(string), Kind: kind + "List",
			})
			g.Expect(k8s.List(ctx, list)).To(Succeed())
		}).WithContext(ctx).Should(Succeed())
	}
}

// removeGitOps has the kinds no longer served.
func removeGitOps(ctx context.Context, tools ...string) {
	GinkgoHelper()
	for _, definition := range gitOpsCRDs(tools...) {
		Expect(client.IgnoreNotFound(k8s.Delete(ctx, definition))).To(Succeed())
		Eventually(func() bool {
			return errors.IsNotFound(k8s.Get(ctx, client.ObjectKeyFromObject(definition), definition))
		}).WithContext(ctx).Should(BeTrue())
	}
}

// object is any part of an unstructured object.
type object = map[string]any

func newObject(kind schema.GroupVersionKind, namespace, name string, content object) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: content}
	o.SetGroupVersionKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// put sets a field of an object, and removes it if the value is nil.
func put(o *unstructured.Unstructured, value any, path ...string) {
	GinkgoHelper()
	if value == nil {
		unstructured.RemoveNestedField(o.Object, path...)
		return
	}
	Expect(unstructured.SetNestedField(o.Object, value, path...)).To(Succeed())
}

// having sets a field of an object, for change.
func having(value any, path ...string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) { put(o, value, path...) }
}

// report writes the status of an object, where that is a subresource.
func report(ctx context.Context, o *unstructured.Unstructured, edits ...func(*unstructured.Unstructured)) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
		for _, edit := range edits {
			edit(o)
		}
		g.Expect(k8s.Status().Update(ctx, o)).To(Succeed())
	}).WithContext(ctx).Should(Succeed())
}

// application is an Application of the control plane in a namespace, in sync, that lists workloads.
func application(plane, name string, workloads ...client.Object) *unstructured.Unstructured {
	destination := object{"server": "https://kubernetes.default.svc", "namespace": "default"}
	source := object{"repoURL": "https://git.example/" + name, "path": ".", "targetRevision": "main"}
	resources := []any{object{"version": "v1", "kind": "Service", "namespace": "default", "name": name, "status": "Synced"}}
	for _, w := range workloads {
		resources = append(resources, object{
			"group": "apps", "version": "v1", "kind": string(kindOf(w)), "namespace": w.GetNamespace(), "name": w.GetName(), "status": "Synced",
		})
	}
	return newObject(applications, plane, name, object{
		"spec": object{"project": "default", "destination": destination, "source": source, "syncPolicy": object{"automated": object{}}},
		"status": object{
			"controllerNamespace": plane,
			"sync":                object{"status": "Synced", "comparedTo": object{"destination": destination, "source": source}},
			"resources":           resources,
			"operationState":      object{"phase": "Succeeded", "message": "successfully synced"},
		},
	})
}

// project is an AppProject without windows.
func project(plane, name string) *unstructured.Unstructured {
	return newObject(projects, plane, name, object{"spec": object{"sourceNamespaces": []any{"*"}}})
}

// tracked marks a workload as Argo CD does.
func tracked[T client.Object](w T, instance string) T {
	w.SetAnnotations(map[string]string{
		"argocd.argoproj.io/tracking-id": fmt.Sprintf("%s:apps/%s:%s/%s", instance, kindOf(w), w.GetNamespace(), w.GetName()),
	})
	return w
}

// condition of a Flux object.
func condition(kind, status, reason string, generation int64) any {
	return object{
		"type": kind, "status": status, "reason": reason, "observedGeneration": generation,
		"lastTransitionTime": "2026-01-01T00:00:00Z", "message": "played by a test",
	}
}

// ready is the status of a Flux object that has reconciled its spec, with workloads in its inventory.
func ready(workloads ...client.Object) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) {
		var entries []any
		for _, w := range workloads {
			entries = append(entries, object{"id": fmt.Sprintf("%s_%s_apps_%s", w.GetNamespace(), w.GetName(), kindOf(w)), "v": "v1"})
		}
		put(o, object{
			"observedGeneration": o.GetGeneration(), "lastAttemptedGeneration": o.GetGeneration(),
			"conditions": []any{condition("Ready", "True", "ReconciliationSucceeded", o.GetGeneration())},
			"inventory":  object{"entries": entries},
		}, "status")
	}
}

// conditions replaces the conditions of a Flux object, and leaves the rest of its status.
func conditions(list ...any) func(*unstructured.Unstructured) {
	return having(list, "status", "conditions")
}

// fluxOwner creates a Flux object that owns workloads.
func fluxOwner(ctx context.Context, kind schema.GroupVersionKind, namespace string, workloads ...client.Object) *unstructured.Unstructured {
	GinkgoHelper()
	o := newObject(kind, namespace, "shop", object{"spec": object{"interval": "1m"}})
	create(ctx, o)
	report(ctx, o, ready(workloads...))
	return o
}

// gated is the policy everything that asks a provider.
func gated(namespace string, provider v1alpha1.GitOpsProvider) *v1alpha1.KickPolicy {
	p := everything(namespace)
	p.Spec.GitOps.Provider = provider
	return p
}

// waits waits until the request of a workload waits for the reason, and returns it.
func waits(ctx context.Context, w client.Object, phase v1alpha1.Phase, reason string) *v1alpha1.KickRequest {
	GinkgoHelper()
	var found *v1alpha1.KickRequest
	Eventually(func(g Gomega) {
		var err error
		found, err = requestOf(ctx, w)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found.Status.Gate).NotTo(BeNil(), "%+v", found.Status)
		g.Expect(found.Status.Gate.Reason).To(Equal(reason), found.Status.Gate.Message)
		g.Expect(found.Status.Phase).To(Equal(phase))
	}).WithContext(ctx).Should(Succeed())
	stalled := phase == v1alpha1.PhaseWaitingForOwner || reason == v1alpha1.ReasonConfigurationError
	Expect(meta.IsStatusConditionTrue(found.Status.Conditions, v1alpha1.ConditionStalled)).To(Equal(stalled), "Stalled")
	Expect(meta.IsStatusConditionTrue(found.Status.Conditions, v1alpha1.ConditionReconciling)).To(Equal(!stalled), "Reconciling")
	return found
}

// shop is a namespace with a Secret and a Deployment that consumes it, and one for the objects of a tool.
type shop struct {
	namespace, plane string
	source           *corev1.Secret
	web              client.Object
}

// newShop makes them, and the projects of a control plane of Argo CD.
func newShop(ctx context.Context) shop {
	GinkgoHelper()
	s := shop{namespace: newNamespace(ctx), plane: newNamespace(ctx)}
	s.source = secret(s.namespace, "db", "1")
	web := tracked(deployment(s.namespace, "web", envFromSecret("db")), "shop")
	s.web = web
	create(ctx, s.source, web, project(s.plane, "default"))
	rolledOut(ctx, web)
	return s
}

// adopt creates the policy, with an owner that permits restarts, and waits until KICK has settled.
func (s shop) adopt(ctx context.Context, provider v1alpha1.GitOpsProvider) {
	GinkgoHelper()
	create(ctx, gated(s.namespace, provider))
	reached(ctx, v1alpha1.PhaseNoLongerRequired, s.web)
}

// releasedInto checks that the workload is restarted, once.
func (s shop) restartedOnce(ctx context.Context) *v1alpha1.KickRequest {
	GinkgoHelper()
	reached(ctx, v1alpha1.PhaseSucceeded, s.web)
	restarted(ctx, 1, s.web)
	found, err := requestOf(ctx, s.web)
	Expect(err).NotTo(HaveOccurred())
	return found
}

// remove deletes an object for good, whatever holds it.
func remove(ctx context.Context, o client.Object) {
	GinkgoHelper()
	Expect(client.IgnoreNotFound(k8s.Delete(ctx, o))).To(Succeed())
}

// finalizer keeps an object while it is being deleted.
var finalizer = []string{"resources-finalizer.argocd.argoproj.io"}

func conditionOf(found *v1alpha1.KickRequest, kind string) *metav1.Condition {
	GinkgoHelper()
	present := meta.FindStatusCondition(found.Status.Conditions, kind)
	Expect(present).NotTo(BeNil())
	return present
}
