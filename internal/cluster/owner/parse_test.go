package owner

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/gitops"
)

// read parses a manifest as an object of a kind.
func read(t *testing.T, kind, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	encoded, err := yaml.YAMLToJSON([]byte("apiVersion: x/v1\nkind: " + kind + "\n" + text))
	if err != nil {
		t.Fatal(err)
	}
	if err := object.UnmarshalJSON(encoded); err != nil {
		t.Fatal(err)
	}
	return object
}

var compareSelectors = cmp.Comparer(func(a, b labels.Selector) bool { return a.String() == b.String() })

func TestParse(t *testing.T) {
	options := Options{ArgoCDNamespaces: []string{"argocd"}}
	web := gitops.ID{Kind: v1alpha1.Deployment, Namespace: "shop", Name: "web"}
	for name, tc := range map[string]struct {
		kind, text string
		want       any
	}{
		"an Application in sync": {applicationKind, `
metadata: {namespace: team, name: shop, generation: 4}
spec:
  project: p
  destination: {server: https://kubernetes.default.svc, namespace: shop}
  source: {repoURL: r, path: a, chart: c, targetRevision: main, helm: {parameters: [{name: password, value: secret}]}}
  syncPolicy: {automated: {prune: true}}
status:
  controllerNamespace: plane
  reconciledAt: "2026-08-06T12:00:00Z"
  operationState: {phase: Failed, message: m}
  conditions: [{type: SharedResourceWarning, message: x}]
  sync:
    status: Synced
    comparedTo: {destination: {server: https://kubernetes.default.svc, namespace: shop}, source: {repoURL: r, path: a, chart: c, targetRevision: main}}
  resources:
  - {group: apps, version: v1, kind: Deployment, namespace: shop, name: web, status: Synced, health: {status: Healthy}}
  - {group: apps, kind: Deployment, namespace: shop, name: hook, status: Synced, hook: true}
  - {group: apps, kind: Deployment, namespace: shop, name: ignored}
  - {group: "", kind: ConfigMap, namespace: shop, name: c, status: OutOfSync}
`, &gitops.Application{
			Namespace: "team", Name: "shop", Project: "p", AutoSync: true, ControllerNamespace: "plane",
			Destination:    gitops.Destination{Server: "https://kubernetes.default.svc", Namespace: "shop"},
			Sources:        []gitops.Source{{RepoURL: "r", Path: "a", Chart: "c", TargetRevision: "main"}},
			Operation:      &gitops.Operation{Phase: "Failed", Message: "m"},
			ConditionTypes: []string{"SharedResourceWarning"},
			Sync: gitops.Sync{
				Status: "Synced", ComparedSources: []gitops.Source{{RepoURL: "r", Path: "a", Chart: "c", TargetRevision: "main"}},
				ComparedDestination: gitops.Destination{Server: "https://kubernetes.default.svc", Namespace: "shop"},
			},
			Workloads: []gitops.ListedWorkload{{ID: web, Status: "Synced"}},
			Differing: 1,
		}},
		"an Application at work, of many sources": {applicationKind, `
metadata:
  namespace: argocd
  name: shop
  deletionTimestamp: "2026-08-06T12:00:00Z"
  annotations: {argocd.argoproj.io/skip-reconcile: "TRUE", argocd.argoproj.io/refresh: hard}
operation: {sync: {}}
spec:
  destination: {name: in-cluster}
  sources: [{repoURL: a}, {repoURL: b}]
  sourceHydrator: {drySource: {}}
  syncPolicy: {automated: {enabled: false}}
status:
  sync: {comparedTo: {source: {repoURL: ""}, sources: [{repoURL: a}, {repoURL: b}]}}
`, &gitops.Application{
			Namespace: "argocd", Name: "shop", ControllerNamespace: "argocd", Deleting: true, SkipReconcile: true, RefreshRequested: true,
			OperationRequested: true, Hydrated: true, Destination: gitops.Destination{Name: "in-cluster"},
			Sources: []gitops.Source{{RepoURL: "a"}, {RepoURL: "b"}},
			Sync:    gitops.Sync{ComparedSources: []gitops.Source{{RepoURL: "a"}, {RepoURL: "b"}}},
		}},
		"an Application of another namespace that was never compared": {applicationKind, `
metadata: {namespace: team, name: shop, annotations: {argocd.argoproj.io/skip-reconcile: maybe}}
`, &gitops.Application{Namespace: "team", Name: "shop", ControllerNamespace: "argocd"}},
		"an AppProject": {projectKind, `
metadata: {namespace: argocd, name: p, labels: {env: prod}}
spec:
  sourceNamespaces: [team-*]
  syncWindows:
  - {kind: deny, schedule: "0 2 * * *", duration: 1h, timeZone: Europe/Berlin, applications: [a], namespaces: [b], clusters: [c], andOperator: true, manualSync: true, syncOverrun: true}
`, &gitops.Project{
			Name: "p", Labels: map[string]string{"env": "prod"}, SourceNamespaces: []string{"team-*"},
			Windows: []gitops.SyncWindow{{
				Kind: "deny", Schedule: "0 2 * * *", Duration: "1h", TimeZone: "Europe/Berlin",
				Applications: []string{"a"}, Namespaces: []string{"b"}, Clusters: []string{"c"}, AndOperator: true, ManualSync: true,
			}},
		}},
		"settings": {settingsKind, `
metadata: {namespace: argocd, name: argocd-cm}
data:
  installationID: one
  globalProjects: |
    - {labelSelector: {matchLabels: {env: prod}}, projectName: freeze}
    - {labelSelector: {matchExpressions: [{key: env, operator: Exists}]}, projectName: other}
`, &gitops.Plane{InstallationID: "one", Globals: []gitops.GlobalProject{
			{Selector: selector("env=prod"), Project: "freeze"}, {Selector: selector("env"), Project: "other"},
		}}},
		"settings without any of these": {settingsKind, "metadata: {name: argocd-cm}\n", &gitops.Plane{}},
		"settings that are no list":     {settingsKind, "data: {globalProjects: \"x: y\"}\n", &gitops.Plane{GlobalsFault: "it is no list of projects with label selectors"}},
		"settings with a bad selector": {settingsKind, "data: {globalProjects: \"[{labelSelector: {matchExpressions: [{key: a, operator: Near}]}}]\"}\n",
			&gitops.Plane{GlobalsFault: "the label selector of entry 0 is invalid"}},
		"a Kustomization": {gitops.Kustomization, `
metadata: {namespace: flux-system, name: shop, generation: 3, annotations: {reconcile.fluxcd.io/requestedAt: now}}
spec: {suspend: true, kubeConfig: {secretRef: {name: far}}}
status:
  observedGeneration: 2
  lastHandledReconcileAt: then
  history: [{digest: x, totalReconciliations: 2}]
  conditions:
  - {type: Ready, status: "False", reason: BuildFailed, message: m, observedGeneration: 3}
  - {type: Reconciling, status: "True", reason: ProgressingWithRetry}
  - {type: Stalled, status: "True", reason: InvalidPath}
  - {type: Healthy, status: "True"}
  inventory: {entries: [{id: shop_web_apps_Deployment, v: v1}, {id: shop_c__ConfigMap, v: v1}]}
`, &gitops.FluxObject{
			Kind: gitops.Kustomization, Namespace: "flux-system", Name: "shop", Suspended: true, Remote: true,
			RequestedAt: "now", HandledAt: "then", Generation: 3, ObservedGeneration: 2,
			Ready:       gitops.Condition{Status: "False", Reason: "BuildFailed", ObservedGeneration: 3},
			Reconciling: gitops.Condition{Status: "True", Reason: "ProgressingWithRetry"},
			Stalled:     gitops.Condition{Status: "True", Reason: "InvalidPath"},
			Inventory:   []gitops.ID{web}, HasInventory: true,
		}},
		"a HelmRelease": {gitops.HelmRelease, `
metadata: {namespace: flux-system, name: shop, generation: 3, deletionTimestamp: "2026-08-06T12:00:00Z"}
status:
  lastAttemptedGeneration: 3
  history: [{name: new, namespace: shop}, {name: old, namespace: shop}]
`, &gitops.FluxObject{
			Kind: gitops.HelmRelease, Namespace: "flux-system", Name: "shop", Deleting: true, Generation: 3, AttemptedGeneration: 3,
			ReleaseName: "new", ReleaseNamespace: "shop",
		}},
		"a HelmRelease with fields of other types": {gitops.HelmRelease, `
metadata: {namespace: flux-system, name: shop}
spec: {suspend: sometimes}
status: {conditions: none}
`, &gitops.FluxObject{Kind: gitops.HelmRelease, Namespace: "flux-system", Name: "shop"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := kinds[tc.kind].parse(options, read(t, tc.kind, tc.text))
			if diff := cmp.Diff(tc.want, got, compareSelectors); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func selector(text string) labels.Selector {
	parsed, err := labels.Parse(text)
	if err != nil {
		panic(err)
	}
	return parsed
}
