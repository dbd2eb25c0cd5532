// Package chart renders charts/kick with Helm's own engine and checks what comes out, without a cluster.
//
// It is a module of its own because of Helm's many dependencies. The chart lies outside the module, so
// go test does not see it change: run with -count=1.
package chart

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	v2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

const chartDir = "../../charts/kick"

// loaded is the chart, read once: rendering does not change it.
var loaded = sync.OnceValues(func() (*v2.Chart, error) { return loader.Load(chartDir) })

// release is one `helm install` of the chart.
type release struct {
	name, namespace string
	values          string // YAML, as in a values file
	noCertManager   bool
	lives           string // the namespace that KICK lives in, if it is not the release's
}

func (r release) home() string { return cmp.Or(r.lives, r.namespace) }

// watches are the namespaces of the value watchNamespaces.
func (r release) watches(t *testing.T) []string {
	t.Helper()
	var values struct{ WatchNamespaces []string }
	if err := yaml.Unmarshal([]byte(r.values), &values); err != nil {
		t.Fatal(err)
	}
	return values.WatchNamespaces
}

// manifests are the rendered objects: typed where Kubernetes has the type, and then checked for unknown fields.
type manifests []runtime.Object

func (r release) render(t *testing.T) (manifests, error) {
	t.Helper()
	chart, err := loaded()
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.Unmarshal([]byte(r.values), &values); err != nil {
		t.Fatal(err)
	}
	capabilities := common.DefaultCapabilities.Copy()
	if !r.noCertManager {
		capabilities.APIVersions = append(slices.Clone(capabilities.APIVersions), "cert-manager.io/v1")
	}
	options := common.ReleaseOptions{Name: r.name, Namespace: r.namespace, Revision: 1, IsInstall: true}
	top, err := util.ToRenderValues(chart, values, options, capabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(chart, top)
	if err != nil {
		return nil, err
	}
	var all manifests
	for name, text := range files {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		for part := range strings.SplitSeq("\n"+text, "\n---") {
			if strings.TrimSpace(part) != "" {
				all = append(all, decode(t, name, part))
			}
		}
	}
	return all, nil
}

func (r release) mustRender(t *testing.T) manifests {
	t.Helper()
	all, err := r.render(t)
	if err != nil {
		t.Fatalf("render: %v", err)
	}
	return all
}

// strict decodes what Kubernetes has a type for.
var strict = sync.OnceValue(func() runtime.Decoder {
	types := runtime.NewScheme()
	utilruntime.Must(scheme.AddToScheme(types))
	utilruntime.Must(apiextensionsv1.AddToScheme(types))
	return serializer.NewCodecFactory(types, serializer.EnableStrict).UniversalDeserializer()
})

func decode(t *testing.T, file, text string) runtime.Object {
	t.Helper()
	o, _, err := strict().Decode([]byte(text), nil, nil)
	if runtime.IsNotRegisteredError(err) {
		u := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict([]byte(text), &u.Object); err != nil {
			t.Fatalf("%s: %v in\n%s", file, err, text)
		}
		return u
	}
	if err != nil {
		t.Fatalf("%s: %v in\n%s", file, err, text)
	}
	return o
}

// only returns the one object of type T that matches.
func only[T any](t *testing.T, all manifests, match func(T) bool) T {
	t.Helper()
	var found []T
	for _, o := range all {
		if typed, ok := o.(T); ok && match(typed) {
			found = append(found, typed)
		}
	}
	if len(found) != 1 {
		var none T
		t.Fatalf("%d objects of type %T match, want exactly one", len(found), none)
	}
	return found[0]
}

func anyOf[T any](T) bool { return true }

// named returns the one object of a kind that Kubernetes does not know whose name ends like this.
func named(t *testing.T, all manifests, kind, suffix string) *unstructured.Unstructured {
	t.Helper()
	return only(t, all, func(u *unstructured.Unstructured) bool {
		return u.GetKind() == kind && strings.HasSuffix(u.GetName(), suffix)
	})
}

func field(t *testing.T, u *unstructured.Unstructured, path ...string) string {
	t.Helper()
	value, found, err := unstructured.NestedString(u.Object, path...)
	if err != nil || !found {
		t.Fatalf("%s %s: no text at %s: %v", u.GetKind(), u.GetName(), strings.Join(path, "."), err)
	}
	return value
}

func metaOf(t *testing.T, o runtime.Object) metav1.Object {
	t.Helper()
	m, ok := o.(metav1.Object)
	if !ok {
		t.Fatalf("%T has no metadata", o)
	}
	return m
}
