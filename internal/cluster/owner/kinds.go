package owner

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/gitops"
)

// The kinds that are read.
const (
	applicationKind = "Application"
	projectKind     = "AppProject"
	settingsKind    = "ConfigMap"
)

// What KICK reads of Argo CD and Flux. It writes none of them. The settings of Argo CD, ConfigMaps named argocd-cm, need
// no right beside that on ConfigMaps.
//
// +kubebuilder:rbac:groups=argoproj.io,resources=applications;appprojects,verbs=get;list;watch
// +kubebuilder:rbac:groups=kustomize.toolkit.fluxcd.io,resources=kustomizations,verbs=get;list;watch
// +kubebuilder:rbac:groups=helm.toolkit.fluxcd.io,resources=helmreleases,verbs=get;list;watch

// kind is a kind of object that is read.
type kind struct {
	name     string
	provider v1alpha1.GitOpsProvider
	resource schema.GroupVersionResource
	// parse reads an object into the facts that are kept of it.
	parse func(Options, *unstructured.Unstructured) any
	// object is the only name that is read, empty for all.
	object string
	// of is the kind without which this one is not read.
	of string
}

var kinds = map[string]*kind{
	applicationKind: {
		name: applicationKind, provider: v1alpha1.ProviderArgoCD, parse: parseApplication,
		resource: schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "applications"},
	},
	projectKind: {
		name: projectKind, provider: v1alpha1.ProviderArgoCD, parse: parseProject, of: applicationKind,
		resource: schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "appprojects"},
	},
	settingsKind: {
		name: settingsKind, provider: v1alpha1.ProviderArgoCD, parse: parseSettings, of: applicationKind, object: settingsName,
		resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
	},
	gitops.Kustomization: {
		name: gitops.Kustomization, provider: v1alpha1.ProviderFlux, parse: parseKustomization,
		resource: schema.GroupVersionResource{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations"},
	},
	gitops.HelmRelease: {
		name: gitops.HelmRelease, provider: v1alpha1.ProviderFlux, parse: parseHelmRelease,
		resource: schema.GroupVersionResource{Group: "helm.toolkit.fluxcd.io", Version: "v2", Resource: "helmreleases"},
	},
}

// kindsOf lists the kinds of a provider, those first that others depend on.
func kindsOf(providers []v1alpha1.GitOpsProvider) []*kind {
	var list []*kind
	for _, name := range []string{applicationKind, projectKind, settingsKind, gitops.Kustomization, gitops.HelmRelease} {
		k := kinds[name]
		if slices.Contains(providers, k.provider) || slices.Contains(providers, v1alpha1.ProviderAuto) {
			list = append(list, k)
		}
	}
	return list
}

// entry is what the cache keeps of an object: its name and the facts. The specs of Applications and HelmReleases may hold
// passwords, and their statuses grow large; neither is kept.
type entry struct {
	metav1.ObjectMeta

	facts any
}

var _ runtime.Object = (*entry)(nil)

// GetObjectKind implements runtime.Object. Which kind an entry is of, its facts tell.
func (*entry) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object. An entry is never modified.
func (e *entry) DeepCopyObject() runtime.Object { return e }

// parse reads an object into an entry.
func (r *Reader) parse(k *kind, object *unstructured.Unstructured) *entry {
	return &entry{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(),
		},
		facts: k.parse(r.options, object),
	}
}

// decode reads the fields of an object that a struct names. A field of another type than expected ends it: what follows
// stays zero, and zero facts permit nothing.
func decode(object *unstructured.Unstructured, into any) {
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into)
}
