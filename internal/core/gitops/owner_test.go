package gitops_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/gitops"
)

// annotated is web with annotations, key by value.
func annotated(pairs ...string) gitops.Workload {
	w := web
	w.Annotations = map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		w.Annotations[pairs[i]] = pairs[i+1]
	}
	return w
}

func labelled(pairs ...string) gitops.Workload {
	w := annotated(pairs...)
	w.Labels, w.Annotations = w.Annotations, nil
	return w
}

func TestAnApplicationOwnsWhatItListsInThisCluster(t *testing.T) {
	const tracking, installation = gitops.TrackingAnnotation, gitops.InstallationAnnotation
	other := func(name string) func(*gitops.Application) { return func(a *gitops.Application) { a.Name = name } }
	lists := func(listed ...gitops.ID) func(*gitops.Application) {
		return func(a *gitops.Application) {
			a.Workloads = nil
			for _, id := range listed {
				a.Workloads = append(a.Workloads, gitops.ListedWorkload{ID: id, Status: "Synced"})
			}
		}
	}
	to := func(d gitops.Destination) func(*gitops.Application) {
		return func(a *gitops.Application) { a.Destination = d }
	}
	for name, tc := range map[string]struct {
		facts    gitops.Facts
		workload gitops.Workload
		plane    gitops.Plane
		want     string // the owner, or the reason and a part of the message
	}{
		"tracked and listed":           {facts: argo(application()), workload: annotated(tracking, "shop:apps/Deployment:shop/web"), want: "argocd/shop"},
		"listed without any mark":      {facts: argo(application()), workload: web, want: "argocd/shop"},
		"labelled by its Helm release": {facts: argo(application()), workload: labelled("app.kubernetes.io/instance", "other"), want: "argocd/shop"},
		"of an Application in a namespace of its own": {
			facts:    argo(application(func(a *gitops.Application) { a.Namespace = "team" })),
			workload: annotated(tracking, "team_shop:apps/Deployment:shop/web"), want: "team/shop",
		},
		"two Applications list it": {
			facts: argo(application(), application(other("shop2"))), workload: web,
			want: "MultipleOwners: Application argocd/shop, Application argocd/shop2",
		},
		"nothing claims it": {facts: argo(), workload: web, want: "OwnerUnknown: nothing claims it"},
		"the Application is not here": {
			facts: argo(), workload: annotated(tracking, "shop:apps/Deployment:shop/web"),
			want: "OwnerUnknown: names the Application shop, which is not in this cluster",
		},
		"the Application does not list it": {
			facts: argo(application(lists())), workload: annotated(tracking, "shop:apps/Deployment:shop/web"),
			want: "OwnerUnknown: Application argocd/shop does not list the workload",
		},
		"the Application lists a namesake of another kind": {
			facts:    argo(application(lists(gitops.ID{Kind: v1alpha1.StatefulSet, Namespace: "shop", Name: "web"}))),
			workload: annotated(tracking, "shop:apps/Deployment:shop/web"), want: "OwnerUnknown: does not list",
		},
		"the tracking id was copied from another object": {
			facts:    argo(application(lists(gitops.ID{Kind: v1alpha1.Deployment, Namespace: "shop", Name: "api"}))),
			workload: annotated(tracking, "shop:apps/Deployment:shop/api"),
			want:     "OwnerUnknown: its annotation tracking-id is that of another object",
		},
		"the tracking id is broken": {
			facts: argo(), workload: annotated(tracking, "shop"), want: "OwnerUnknown: cannot be parsed",
		},
		"the Application deploys to another cluster": {
			facts: argo(application(to(gitops.Destination{Server: "https://10.0.0.1", Namespace: "shop"}))), workload: web,
			want: "OwnerUnknown: Application argocd/shop deploys to another cluster",
		},
		"the Application deploys nowhere": {
			facts: argo(application(to(gitops.Destination{}))), workload: web, want: "OwnerUnknown: another cluster",
		},
		"this cluster by the name in-cluster": {
			facts: argo(application(to(gitops.Destination{Name: "in-cluster"}))), workload: web, want: "argocd/shop",
		},
		"this cluster by a name of the settings": {
			facts: argo(application(to(gitops.Destination{Name: "production"}))), workload: web, want: "argocd/shop",
		},
		"this cluster by a URL of the settings": {
			facts: argo(application(to(gitops.Destination{Server: "https://10.1.1.1"}))), workload: web, want: "argocd/shop",
		},
		"the installation ids agree": {
			facts: argo(application()), plane: gitops.Plane{InstallationID: "a"},
			workload: annotated(tracking, "shop:apps/Deployment:shop/web", installation, "a"), want: "argocd/shop",
		},
		"the installation ids differ": {
			facts: argo(application()), plane: gitops.Plane{InstallationID: "a"},
			workload: annotated(tracking, "shop:apps/Deployment:shop/web", installation, "b"), want: "OwnerUnknown: installation id",
		},
		"only the workload has an installation id": {
			facts:    argo(application()),
			workload: annotated(tracking, "shop:apps/Deployment:shop/web", installation, "b"), want: "OwnerUnknown: installation id",
		},
		"only Argo CD has an installation id": {
			facts: argo(application()), plane: gitops.Plane{InstallationID: "a"},
			workload: annotated(tracking, "shop:apps/Deployment:shop/web"), want: "OwnerUnknown: installation id",
		},
		"it is labelled only, and Argo CD has an installation id": {
			facts: argo(application()), plane: gitops.Plane{InstallationID: "a"}, workload: web, want: "argocd/shop",
		},
		"it has the labels of Flux": {
			facts: argo(), workload: labelled("kustomize.toolkit.fluxcd.io/name", "shop"), want: "OwnerUnknown: the marks of Flux",
		},
		"plain Helm": {
			facts: argo(), workload: labelled("app.kubernetes.io/managed-by", "Helm"), want: "OwnerUnknown: installed by Helm alone",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.facts.Workload = tc.workload
			tc.facts.ArgoCD.Planes["argocd"] = tc.plane
			tc.facts.ArgoCD.LocalDestinations = []string{"production", "https://10.1.1.1"}
			checkOwner(t, &tc.facts, v1alpha1.ProviderArgoCD, tc.want)
		})
	}
}

// checkOwner wants the "namespace/name" of an owner, or "Reason: part of the message".
func checkOwner(t *testing.T, facts *gitops.Facts, provider v1alpha1.GitOpsProvider, want string) {
	t.Helper()
	owner, hold := facts.Owner(provider)
	reason, part, blocked := strings.Cut(want, ": ")
	switch {
	case hold != nil && !blocked:
		t.Errorf("no owner: %s: %s", hold.Reason, hold.Message)
	case hold == nil && blocked:
		t.Errorf("owner %s, want %s", owner, want)
	case hold == nil:
		if status := owner.Status(); status.Namespace+"/"+status.Name != want {
			t.Errorf("owner %s, want %s", owner, want)
		}
	case hold.Reason != reason || !strings.Contains(hold.Message, part):
		t.Errorf("%s: %s, want %s", hold.Reason, hold.Message, want)
	}
}

func TestAFluxObjectOwnsWhatItsInventoryHasInThisCluster(t *testing.T) {
	empty := func(o *gitops.FluxObject) { o.Inventory = nil }
	remote := func(o *gitops.FluxObject) { o.Remote = true }
	old := func(o *gitops.FluxObject) {
		o.Inventory, o.HasInventory = nil, false
		o.ReleaseName, o.ReleaseNamespace = "web", "shop"
	}
	helm := labelled("helm.toolkit.fluxcd.io/name", "shop", "helm.toolkit.fluxcd.io/namespace", "flux-system")
	released := helm
	released.Annotations = map[string]string{"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "shop"}
	moved := released
	moved.Annotations = map[string]string{"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "other"}
	kustomize := labelled("kustomize.toolkit.fluxcd.io/name", "shop", "kustomize.toolkit.fluxcd.io/namespace", "flux-system")
	for name, tc := range map[string]struct {
		objects  []gitops.FluxObject
		workload gitops.Workload
		want     string
	}{
		"a Kustomization":     {[]gitops.FluxObject{fluxObject("Kustomization")}, kustomize, "flux-system/shop"},
		"a HelmRelease":       {[]gitops.FluxObject{fluxObject("HelmRelease")}, helm, "flux-system/shop"},
		"no label but listed": {[]gitops.FluxObject{fluxObject("Kustomization")}, web, "flux-system/shop"},
		"a label but not listed": {
			[]gitops.FluxObject{fluxObject("Kustomization", empty)}, kustomize,
			"OwnerUnknown: Kustomization flux-system/shop does not have the workload in its inventory",
		},
		"labels of a Kustomization that is not here": {
			nil, kustomize, "OwnerUnknown: its labels name Kustomization flux-system/shop, which is not in this cluster",
		},
		"labels of both, listed by the HelmRelease alone": {
			[]gitops.FluxObject{fluxObject("Kustomization", empty), fluxObject("HelmRelease")}, helm, "flux-system/shop",
		},
		"listed by both": {
			[]gitops.FluxObject{fluxObject("Kustomization"), fluxObject("HelmRelease")}, helm,
			"MultipleOwners: HelmRelease flux-system/shop, Kustomization flux-system/shop",
		},
		"it deploys to another cluster": {
			[]gitops.FluxObject{fluxObject("Kustomization", remote)}, kustomize, "OwnerUnknown: deploys to another cluster",
		},
		"a HelmRelease without inventory, of this release":    {[]gitops.FluxObject{fluxObject("HelmRelease", old)}, released, "flux-system/shop"},
		"a HelmRelease without inventory, of another release": {[]gitops.FluxObject{fluxObject("HelmRelease", old)}, moved, "OwnerUnknown: inventory"},
		"a HelmRelease without inventory, by its label alone": {[]gitops.FluxObject{fluxObject("HelmRelease", old)}, helm, "OwnerUnknown: inventory"},
		"a Kustomization without inventory": {
			[]gitops.FluxObject{fluxObject("Kustomization", old)}, kustomize, "OwnerUnknown: inventory",
		},
		"the marks of Argo CD": {nil, annotated(gitops.TrackingAnnotation, "shop:apps/Deployment:shop/web"), "OwnerUnknown: the marks of Argo CD"},
		"a ResourceSet":        {nil, labelled("resourceset.fluxcd.controlplane.io/name", "set"), "OwnerUnknown: ResourceSet set"},
	} {
		t.Run(name, func(t *testing.T) {
			facts := flux(tc.objects...)
			facts.Workload = tc.workload
			checkOwner(t, &facts, v1alpha1.ProviderFlux, tc.want)
		})
	}
}

func TestAutoAsksBothToolsAndPrefersNeither(t *testing.T) {
	is := func(p gitops.Presence) gitops.Availability {
		return gitops.Availability{Presence: p, Message: "forbidden"}
	}
	applications, objects := []gitops.Application{application()}, []gitops.FluxObject{fluxObject("Kustomization")}
	for name, tc := range map[string]struct {
		argo, flux   gitops.Presence
		applications []gitops.Application
		objects      []gitops.FluxObject
		provider     v1alpha1.GitOpsProvider
		want         string
	}{
		"an Application":                      {gitops.Readable, gitops.Readable, applications, nil, v1alpha1.ProviderAuto, "argocd/shop"},
		"a Kustomization":                     {gitops.Readable, gitops.Readable, nil, objects, v1alpha1.ProviderAuto, "flux-system/shop"},
		"both":                                {gitops.Readable, gitops.Readable, applications, objects, v1alpha1.ProviderAuto, "MultipleOwners: "},
		"both, and Argo CD is named":          {gitops.Readable, gitops.Readable, applications, objects, v1alpha1.ProviderArgoCD, "argocd/shop"},
		"none":                                {gitops.Readable, gitops.Readable, nil, nil, v1alpha1.ProviderAuto, "OwnerUnknown: nothing claims it"},
		"Flux is not installed":               {gitops.Readable, gitops.Absent, applications, nil, v1alpha1.ProviderAuto, "argocd/shop"},
		"Argo CD is not installed":            {gitops.Absent, gitops.Readable, nil, objects, v1alpha1.ProviderAuto, "flux-system/shop"},
		"neither is installed":                {gitops.Absent, gitops.Absent, nil, nil, v1alpha1.ProviderAuto, "OwnerUnknown: ArgoCD is not installed"},
		"Argo CD is named and not installed":  {gitops.Absent, gitops.Readable, nil, objects, v1alpha1.ProviderArgoCD, "ProviderUnavailable: ArgoCD is not installed"},
		"Flux is named and not installed":     {gitops.Readable, gitops.Absent, applications, nil, v1alpha1.ProviderFlux, "ProviderUnavailable: Flux is not installed"},
		"Flux cannot be read":                 {gitops.Readable, gitops.Unreadable, applications, nil, v1alpha1.ProviderAuto, "ProviderUnavailable: Flux cannot be read: forbidden"},
		"Flux cannot be read nor is it asked": {gitops.Readable, gitops.Unreadable, applications, nil, v1alpha1.ProviderArgoCD, "argocd/shop"},
	} {
		t.Run(name, func(t *testing.T) {
			facts := argo(tc.applications...)
			facts.ArgoCD.Availability = is(tc.argo)
			facts.Flux = gitops.Flux{Availability: is(tc.flux), Objects: tc.objects}
			checkOwner(t, &facts, tc.provider, tc.want)
		})
	}
	t.Run("nobody gathered anything", func(t *testing.T) {
		checkOwner(t, &gitops.Facts{}, v1alpha1.ProviderAuto, "ProviderUnavailable: ArgoCD cannot be read")
	})
}

func TestParseTrackingID(t *testing.T) {
	for value, want := range map[string]*gitops.TrackingID{
		"web:apps/Deployment:prod/web": {App: "web", Group: "apps", Kind: "Deployment", ObjectNamespace: "prod", ObjectName: "web"},
		"web:/Secret:prod/x":           {App: "web", Kind: "Secret", ObjectNamespace: "prod", ObjectName: "x"},
		"team_web:apps/Deployment:prod/web": {
			AppNamespace: "team", App: "web", Group: "apps", Kind: "Deployment", ObjectNamespace: "prod", ObjectName: "web",
		},
		"a_b_c:apps/Deployment:p/w": {AppNamespace: "a", App: "b_c", Group: "apps", Kind: "Deployment", ObjectNamespace: "p", ObjectName: "w"},
		"web:rbac.authorization.k8s.io/ClusterRole:prod/system:reader": {
			App: "web", Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", ObjectNamespace: "prod", ObjectName: "system:reader",
		},
		"":                                   nil,
		"web":                                nil,
		"web:apps/Deployment":                nil,
		"web:Deployment:prod/web":            nil,
		"web:apps/v1/Deployment:prod/web":    nil,
		"web:apps/Deployment:web":            nil,
		"web:apps/Deployment:prod/web/extra": nil,
	} {
		t.Run(value, func(t *testing.T) {
			got, ok := gitops.ParseTrackingID(value)
			if ok != (want != nil) {
				t.Fatalf("parsed: %t", ok)
			}
			if want != nil {
				if diff := cmp.Diff(*want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestParseInventoryID(t *testing.T) {
	for value, want := range map[string]gitops.ID{
		"prod_web_apps_Deployment":   {Kind: v1alpha1.Deployment, Namespace: "prod", Name: "web"},
		"prod_db_apps_StatefulSet":   {Kind: v1alpha1.StatefulSet, Namespace: "prod", Name: "db"},
		"prod_log_apps_DaemonSet":    {Kind: v1alpha1.DaemonSet, Namespace: "prod", Name: "log"},
		"prod_web_apps_ReplicaSet":   {},
		"prod_x__ConfigMap":          {},
		"prod_web_other_Deployment":  {},
		"prod_web_apps":              {},
		"prod_web_apps_Deployment_x": {},
	} {
		t.Run(value, func(t *testing.T) {
			if got, _ := gitops.ParseInventoryID(value); got != want {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}
