package migrate_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/deps"
	"github.com/kick-dev/kick/internal/core/policy"
	"github.com/kick-dev/kick/internal/kubectl/migrate"
	"github.com/kick-dev/kick/internal/testing/golden"
)

func workload(kind, name string, annotations map[string]string, edits ...func(*migrate.Workload)) migrate.Workload {
	w := migrate.Workload{
		Namespace: "shop", Kind: kind, Name: name, Labels: map[string]string{"app": name}, Annotations: annotations,
		Consumes: []deps.Source{{Kind: v1alpha1.Secret, Name: "db"}, {Kind: v1alpha1.ConfigMap, Name: "settings"}},
	}
	for _, edit := range edits {
		edit(&w)
	}
	return w
}

type set = map[string]string

const (
	auto   = "reloader.stakater.com/auto"
	secret = "secret.reloader.stakater.com/reload"
	wave   = "wave.pusher.com/update-on-config-change"
)

func labelled(key, value string) func(*migrate.Workload) {
	return func(w *migrate.Workload) { w.Labels = set{key: value} }
}

func bare(w *migrate.Workload) { w.Labels = nil }

var cases = map[string]struct {
	workloads []migrate.Workload
	sources   []migrate.Source
	// covered are the workloads that the policies have to select, and says what the text has to contain.
	covered []string
	says    []string
}{
	"nothing": {[]migrate.Workload{workload("Deployment", "web", nil)}, nil, nil, []string{"No workload carries"}},
	"all of the namespace": {[]migrate.Workload{workload("Deployment", "web", set{auto: "true"}), workload("DaemonSet", "agent", set{wave: "true"})},
		nil, []string{"daemonset/agent", "deployment/web"}, []string{"workloadSelector: {}"}},
	"some of the namespace": {[]migrate.Workload{workload("Deployment", "web", set{auto: "true"}), workload("Deployment", "api", set{auto: "true"}),
		workload("StatefulSet", "orders", nil)}, nil, []string{"deployment/api", "deployment/web"}, []string{"operator: In"}},
	"no label tells them apart": {[]migrate.Workload{workload("Deployment", "web", set{auto: "true"}, bare), workload("Deployment", "api", nil, bare)},
		nil, nil, []string{"kubectl label deployment/web -n shop kick.dev/managed=true", "kick.dev/managed"}},
	"one label for both": {[]migrate.Workload{workload("Deployment", "web", set{auto: "true"}, labelled("app", "x")),
		workload("Deployment", "api", nil, labelled("app", "x"))}, nil, nil, []string{"kick.dev/managed=true"}},
	"named sources": {[]migrate.Workload{workload("Deployment", "web", set{secret: "db, licence"})}, nil, []string{"deployment/web"},
		[]string{"the Secret licence is named", "ConfigMap/settings, too"}},
	"on the Pod template": {[]migrate.Workload{workload("Deployment", "web", nil, func(w *migrate.Workload) { w.TemplateAnnotations = set{auto: "true"} })},
		nil, []string{"deployment/web"}, nil},
	"switched off": {[]migrate.Workload{workload("Deployment", "web", set{auto: "false", wave: "false"})}, nil, nil, []string{"No workload carries"}},
	"a pause": {[]migrate.Workload{workload("Deployment", "web", set{auto: "true", "deployment.reloader.stakater.com/pause-period": "5m"}),
		workload("Deployment", "api", set{auto: "true"})}, nil, []string{"deployment/api", "deployment/web"}, []string{"minInterval: 5m0s"}},
	"what has no equivalent": {[]migrate.Workload{workload("Deployment", "web", set{
		"secret.reloader.stakater.com/auto": "true", "reloader.stakater.com/search": "true", "reloader.stakater.com/rollout-strategy": "restart",
		"secrets.exclude.reloader.stakater.com/reload": "cache", "reloader.stakater.com/new-thing": "yes",
		"wave.pusher.com/extra-secrets": "other/licence", "wave.pusher.com/config-hash": "abc",
		"deployment.reloader.stakater.com/pause-period": "soon",
	}), workload("CronJob", "report", set{auto: "true"})}, nil, []string{"deployment/web"},
		[]string{"new-thing", "deletes Pods", "a CronJob it leaves alone", "other/licence", "no duration"}},
	"ignored sources": {[]migrate.Workload{workload("Deployment", "web", set{auto: "true"})},
		[]migrate.Source{{Namespace: "shop", Source: deps.Source{Kind: v1alpha1.Secret, Name: "noise"}, Annotations: set{"reloader.stakater.com/ignore": "true"}}},
		[]string{"deployment/web"}, []string{"kubectl label secret/noise -n shop kick.dev/ignore=true"}},
}

func TestPlans(t *testing.T) {
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			if err := migrate.WriteYAML(&out, migrate.Plans(tc.workloads, tc.sources)); err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, strings.ReplaceAll(name, " ", "-"), out.String())
			for _, text := range tc.says {
				if !strings.Contains(strings.ReplaceAll(out.String(), "\n#   ", " "), text) {
					t.Errorf("does not say %q:\n%s", text, &out)
				}
			}
			if tc.covered != nil {
				selects(t, out.String(), tc.workloads, tc.covered)
			}
		})
	}
}

// selects checks that what is printed are policies that parse, and select exactly the workloads they should.
func selects(t *testing.T, printed string, workloads []migrate.Workload, covered []string) {
	t.Helper()
	want := map[string]bool{}
	for _, name := range covered {
		want[name] = true
	}
	got := map[string]bool{}
	for _, document := range strings.Split(printed, "---\n")[1:] {
		var object v1alpha1.KickPolicy
		if err := yaml.UnmarshalStrict([]byte(document), &object); err != nil {
			t.Fatalf("%v in %s", err, document)
		}
		parsed, faults := policy.Parse(&object)
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		for _, w := range workloads {
			if parsed.SelectsWorkload(labels.Set(w.Labels)) && w.Kind != "CronJob" {
				got[w.String()] = true
			}
		}
	}
	for _, w := range workloads {
		if got[w.String()] != want[w.String()] {
			t.Errorf("%s is selected: %v, want %v", w, got[w.String()], want[w.String()])
		}
	}
}
