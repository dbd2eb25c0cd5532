package owner

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	discoveryfake "k8s.io/client-go/discovery/fake"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/workload"
	"github.com/kick-dev/kick/internal/core/gitops"
)

// patience only ends a test that has failed.
const patience = 20 * time.Second

// bed is a Reader on a fake API server, with what it called back.
type bed struct {
	*Reader
	t       *testing.T
	client  *dynamicfake.FakeDynamicClient
	served  *clienttesting.Fake
	wanted  []v1alpha1.GitOpsProvider
	mu      sync.Mutex
	woken   []string
	turned  int
	refused map[string]bool
}

func newBed(t *testing.T, options Options, objects ...*unstructured.Unstructured) *bed {
	lists := map[schema.GroupVersionResource]string{}
	for _, k := range kinds {
		lists[k.resource] = k.name + "List"
	}
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists)
	for _, object := range objects {
		if err := client.Tracker().Create(kinds[object.GetKind()].resource, object, object.GetNamespace()); err != nil {
			t.Fatal(err)
		}
	}
	b := &bed{t: t, client: client, served: &clienttesting.Fake{}, wanted: []v1alpha1.GitOpsProvider{v1alpha1.ProviderAuto}, refused: map[string]bool{}}
	client.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.refused[action.GetResource().Resource] {
			return true, nil, apierrors.NewForbidden(action.GetResource().GroupResource(), "", errors.New("no right"))
		}
		return false, nil, nil
	})
	b.Reader = newReader(client, &discoveryfake.FakeDiscovery{Fake: b.served}, options)
	b.Wanted = func(context.Context) ([]v1alpha1.GitOpsProvider, error) { return b.wanted, nil }
	b.Changed = func(_ context.Context, keys []workload.Key) {
		for _, key := range keys {
			b.note(key.String())
		}
	}
	b.ChangedUnlisted = func(context.Context) { b.note("unlisted") }
	b.Turned = func(context.Context) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.turned++
	}
	return b
}

func (b *bed) note(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.woken = append(b.woken, what)
}

// serve has the API server serve the kinds with these names alone.
func (b *bed) serve(names ...string) {
	b.served.Lock()
	defer b.served.Unlock()
	versions := map[string]*metav1.APIResourceList{}
	for _, name := range names {
		version := kinds[name].resource.GroupVersion().String()
		if versions[version] == nil {
			versions[version] = &metav1.APIResourceList{GroupVersion: version}
		}
		versions[version].APIResources = append(versions[version].APIResources, metav1.APIResource{Name: kinds[name].resource.Resource})
	}
	b.served.Resources = nil
	for _, list := range versions {
		b.served.Resources = append(b.served.Resources, list)
	}
}

func (b *bed) looks() {
	b.t.Helper()
	if err := b.look(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) eventually(what string, holds func() bool) {
	b.t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatalf("never: %s", what)
		}
	}
}

// settles waits until a provider is of the presence.
func (b *bed) settles(provider v1alpha1.GitOpsProvider, presence gitops.Presence) {
	b.t.Helper()
	b.eventually("the presence is another", func() bool { return b.watches.availability(provider).Presence == presence })
}

// wakes waits until exactly these workloads were woken since the last call, in any order.
func (b *bed) wakes(want ...string) {
	b.t.Helper()
	slices.Sort(want)
	var got []string
	b.eventually("woken: "+strings.Join(want, " "), func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		got = slices.Clone(b.woken)
		slices.Sort(got)
		got = slices.Compact(got)
		return slices.Equal(got, want)
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	b.woken = nil
}

func (b *bed) update(object *unstructured.Unstructured) {
	b.t.Helper()
	if err := b.client.Tracker().Update(kinds[object.GetKind()].resource, object.DeepCopy(), object.GetNamespace()); err != nil {
		b.t.Fatal(err)
	}
}

func newApplication(namespace, name, project string, workloads ...string) *unstructured.Unstructured {
	var resources []any
	for _, w := range workloads {
		resources = append(resources, map[string]any{"group": "apps", "kind": "Deployment", "namespace": "shop", "name": w, "status": "Synced"})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
		"metadata": map[string]any{"namespace": namespace, "name": name},
		"spec":     map[string]any{"project": project, "destination": map[string]any{"name": "in-cluster"}},
		"status": map[string]any{
			"controllerNamespace": "argocd", "resources": resources, "sync": map[string]any{"status": "Synced"},
		},
	}}
}

func newProject(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
		"metadata": map[string]any{"namespace": "argocd", "name": name}, "spec": map[string]any{},
	}}
}

func newSettings(text string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "argocd", "name": "argocd-cm"},
		"data": map[string]any{"globalProjects": text},
	}}
}

func newHelmRelease(inventory any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
		"metadata": map[string]any{"namespace": "flux-system", "name": "shop"},
		"status":   map[string]any{"inventory": inventory},
	}}
}

func newWorkload(t *testing.T, name string, annotations map[string]string) *workload.Workload {
	t.Helper()
	w, ok := workload.Of(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Annotations: annotations}})
	if !ok {
		t.Fatal("no workload")
	}
	return w
}

func TestKindsAreWatchedWhileTheyAreServed(t *testing.T) {
	b := newBed(t, Options{}, newApplication("argocd", "shop", "", "web"))
	b.looks()
	b.settles(v1alpha1.ProviderArgoCD, gitops.Absent)
	b.settles(v1alpha1.ProviderFlux, gitops.Absent)

	b.serve(applicationKind, gitops.HelmRelease)
	b.looks()
	b.settles(v1alpha1.ProviderFlux, gitops.Readable) // without kustomize-controller
	b.wakes("shop/Deployment/web")
	if now := b.watches.availability(v1alpha1.ProviderArgoCD); now.Presence != gitops.Unreadable {
		t.Errorf("Argo CD without projects: %+v", now)
	}

	b.serve(applicationKind, projectKind, gitops.HelmRelease)
	b.looks()
	b.settles(v1alpha1.ProviderArgoCD, gitops.Readable)

	gone := b.watches.get(applicationKind)
	b.serve(gitops.HelmRelease)
	b.failed(t.Context(), gone, apierrors.NewNotFound(schema.GroupResource{}, ""))
	b.looks()
	b.settles(v1alpha1.ProviderArgoCD, gitops.Absent)
	b.eventually("its watch ends", gone.informers[0].IsStopped)
	if facts := b.argoCD(&gitops.Workload{Kind: v1alpha1.Deployment, Namespace: "shop", Name: "web"}); len(facts.Applications) > 0 {
		t.Errorf("objects of a kind that is gone: %+v", facts.Applications)
	}
}

func TestNothingIsAskedThatNobodyWants(t *testing.T) {
	b := newBed(t, Options{})
	b.serve(applicationKind, projectKind, gitops.Kustomization, gitops.HelmRelease)
	b.wanted = nil
	b.looks()
	if actions := append(b.served.Actions(), b.client.Actions()...); len(actions) > 0 {
		t.Errorf("asked: %v", actions)
	}
	b.wanted = []v1alpha1.GitOpsProvider{v1alpha1.ProviderFlux}
	b.looks()
	b.settles(v1alpha1.ProviderFlux, gitops.Readable)
	asked := len(b.served.Actions())
	b.looks()
	if again := len(b.served.Actions()); again != asked {
		t.Errorf("asked again for kinds that are watched: %d requests after %d", again, asked)
	}
	for _, action := range b.client.Actions() {
		if action.GetResource().Group == "argoproj.io" {
			t.Errorf("asked for %s", action.GetResource())
		}
	}
}

func TestWithNamespacesNothingIsAskedOfTheClusterAsAWhole(t *testing.T) {
	b := newBed(t, Options{Namespaces: []string{"shop", "argocd"}, ArgoCDNamespaces: []string{"argocd"}},
		newApplication("argocd", "shop", "", "web"), newApplication("other", "other", "", "api"))
	b.serve(applicationKind, projectKind)
	b.looks()
	b.settles(v1alpha1.ProviderArgoCD, gitops.Readable)
	b.wakes("shop/Deployment/web")
	namespaces := map[string]bool{}
	for _, action := range b.client.Actions() {
		namespaces[action.GetNamespace()] = true
	}
	if diff := cmp.Diff(map[string]bool{"shop": true, "argocd": true}, namespaces); diff != "" {
		t.Errorf("namespaces (-want +got):\n%s", diff)
	}
}

func TestAKindThatMayNotBeReadIsUnreadableUntilItMay(t *testing.T) {
	b := newBed(t, Options{})
	b.refused["appprojects"] = true
	b.serve(applicationKind, projectKind)
	b.looks()
	b.eventually("the missing right is named", func() bool {
		now := b.watches.availability(v1alpha1.ProviderArgoCD)
		return now.Presence == gitops.Unreadable && strings.Contains(now.Message, "may not list or watch appprojects.argoproj.io")
	})
	b.mu.Lock()
	b.refused["appprojects"] = false
	b.mu.Unlock()
	b.settles(v1alpha1.ProviderArgoCD, gitops.Readable)
}

func TestEventsWakeTheWorkloadsTheyConcern(t *testing.T) {
	shop, team := newApplication("argocd", "shop", "", "web"), newApplication("team", "team", "p", "api", "db")
	project := newProject("p")
	b := newBed(t, Options{}, shop, team, project, newProject("default"), newProject("global"))
	b.serve(applicationKind, projectKind, gitops.HelmRelease)
	b.looks()
	b.settles(v1alpha1.ProviderArgoCD, gitops.Readable)
	b.settles(v1alpha1.ProviderFlux, gitops.Readable)
	b.wakes("shop/Deployment/web", "shop/Deployment/api", "shop/Deployment/db")

	set := func(o *unstructured.Unstructured, value any, path ...string) {
		t.Helper()
		if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
			t.Fatal(err)
		}
		b.update(o)
	}
	set(shop, "now", "status", "reconciledAt") // Such writes wake nobody, which the next expectation shows.
	set(team, "OutOfSync", "status", "sync", "status")
	b.wakes("shop/Deployment/api", "shop/Deployment/db")

	moved := newApplication("argocd", "shop", "", "web2")
	b.update(moved)
	b.wakes("shop/Deployment/web", "shop/Deployment/web2")

	set(project, []any{map[string]any{"kind": "deny"}}, "spec", "syncWindows")
	b.wakes("shop/Deployment/api", "shop/Deployment/db")

	settings := newSettings("- projectName: global\n")
	if err := b.client.Tracker().Add(settings); err != nil {
		t.Fatal(err)
	}
	b.wakes("shop/Deployment/web2", "shop/Deployment/api", "shop/Deployment/db")
	global := newProject("global")
	set(global, []any{map[string]any{"kind": "deny"}}, "spec", "syncWindows")
	b.wakes("shop/Deployment/web2", "shop/Deployment/api", "shop/Deployment/db")

	if err := b.client.Tracker().Delete(kinds[applicationKind].resource, "argocd", "shop"); err != nil {
		t.Fatal(err)
	}
	b.wakes("shop/Deployment/web2")

	release := newHelmRelease(nil)
	if err := b.client.Tracker().Create(kinds[gitops.HelmRelease].resource, release, "flux-system"); err != nil {
		t.Fatal(err)
	}
	b.wakes("unlisted")
	b.update(newHelmRelease(map[string]any{"entries": []any{map[string]any{"id": "shop_web_apps_Deployment"}}}))
	b.wakes("shop/Deployment/web", "unlisted")
}

func TestFactsHoldWhatConcernsTheWorkload(t *testing.T) {
	named := newApplication("argocd", "named", "")
	b := newBed(t, Options{LocalDestinations: []string{"here"}},
		newApplication("argocd", "shop", "p", "web"), named, newApplication("team", "named", ""), newApplication("team", "other", "", "api"),
		newProject("p"), newProject("default"), newProject("global"), newProject("stranger"), newSettings("- projectName: global\n"))
	b.serve(applicationKind, projectKind)
	b.looks()
	b.settles(v1alpha1.ProviderArgoCD, gitops.Readable)
	facts := b.Facts(t.Context(), newWorkload(t, "web", map[string]string{gitops.TrackingAnnotation: "named:apps/Deployment:shop/web"}),
		[]v1alpha1.GitOpsProvider{v1alpha1.ProviderArgoCD})
	var applications, projects []string
	for _, a := range facts.ArgoCD.Applications {
		applications = append(applications, a.Namespace+"/"+a.Name)
	}
	for name := range facts.ArgoCD.Planes["argocd"].Projects {
		projects = append(projects, name)
	}
	slices.Sort(projects)
	want := [][]string{{"argocd/shop", "argocd/named"}, {"default", "global", "p"}, {"here"}}
	if diff := cmp.Diff(want, [][]string{applications, projects, facts.ArgoCD.LocalDestinations}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	facts = b.Facts(t.Context(), newWorkload(t, "x", map[string]string{gitops.TrackingAnnotation: "team_named:apps/Deployment:shop/x"}),
		[]v1alpha1.GitOpsProvider{v1alpha1.ProviderArgoCD})
	if len(facts.ArgoCD.Applications) != 1 || facts.ArgoCD.Applications[0].Namespace != "team" {
		t.Errorf("an Application of another namespace: %+v", facts.ArgoCD.Applications)
	}
}

func TestALiveLookSeesWhatTheCacheDoesNot(t *testing.T) {
	web := gitops.ID{Kind: v1alpha1.Deployment, Namespace: "shop", Name: "web"}
	cached := gitops.Facts{
		Workload: gitops.Workload{Kind: web.Kind, Namespace: web.Namespace, Name: web.Name},
		ArgoCD: gitops.ArgoCD{
			Availability: gitops.Availability{Presence: gitops.Readable},
			Applications: []gitops.Application{{
				Namespace: "argocd", Name: "shop", Destination: gitops.Destination{Name: "in-cluster"},
				Workloads: []gitops.ListedWorkload{{ID: web, Status: "Synced"}}, Sync: gitops.Sync{Status: "Synced"},
			}},
		},
		Flux: gitops.Flux{Availability: gitops.Availability{Presence: gitops.Readable}},
	}
	t.Run("an operation", func(t *testing.T) {
		live := newApplication("argocd", "shop", "", "web")
		live.Object["operation"] = map[string]any{"sync": map[string]any{}}
		facts, err := newBed(t, Options{}, live).Live(t.Context(), cached)
		if err != nil {
			t.Fatal(err)
		}
		if len(facts.ArgoCD.Applications) != 1 || !facts.ArgoCD.Applications[0].OperationRequested {
			t.Errorf("%+v", facts.ArgoCD.Applications)
		}
		if cached.ArgoCD.Applications[0].OperationRequested {
			t.Error("the cached facts were changed")
		}
	})
	t.Run("that the owner is gone", func(t *testing.T) {
		facts, err := newBed(t, Options{}).Live(t.Context(), cached)
		if err != nil || len(facts.ArgoCD.Applications) > 0 {
			t.Errorf("%v, %+v", err, facts.ArgoCD.Applications)
		}
	})
	t.Run("that a right is gone", func(t *testing.T) {
		b := newBed(t, Options{}, newApplication("argocd", "shop", "", "web"))
		b.refused["applications"] = true
		facts, err := b.Live(t.Context(), cached)
		if err != nil || facts.ArgoCD.Presence != gitops.Unreadable {
			t.Errorf("%v, %+v", err, facts.ArgoCD.Availability)
		}
	})
}

func TestFactsWaitForTheFirstLook(t *testing.T) {
	b := newBed(t, Options{}, newApplication("argocd", "shop", "", "web"))
	b.serve(applicationKind, projectKind)
	done := make(chan gitops.Facts)
	go func() { done <- b.Facts(t.Context(), newWorkload(t, "web", nil), b.wanted) }()
	<-b.nudges // It asks for a look.
	b.looks()
	if facts := <-done; facts.ArgoCD.Presence != gitops.Readable || len(facts.ArgoCD.Applications) != 1 {
		t.Errorf("%+v", facts.ArgoCD)
	}
}
