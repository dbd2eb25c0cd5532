package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/policy"
)

func selecting(match map[string]string) metav1.LabelSelector {
	return metav1.LabelSelector{MatchLabels: match}
}

func requirement(key string, operator metav1.LabelSelectorOperator, values ...string) metav1.LabelSelector {
	return metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: key, Operator: operator, Values: values},
	}}
}

func policyOf(name string, workloads metav1.LabelSelector, change ...func(*v1alpha1.KickPolicy)) *v1alpha1.KickPolicy {
	p := &v1alpha1.KickPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.KickPolicySpec{Discovery: v1alpha1.Discovery{WorkloadSelector: workloads}},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

func suspended(p *v1alpha1.KickPolicy) { p.Spec.Suspend = true }
func dry(p *v1alpha1.KickPolicy)       { p.Spec.DryRun = true }

func only(match map[string]string) func(*v1alpha1.KickPolicy) {
	return func(p *v1alpha1.KickPolicy) {
		selector := selecting(match)
		p.Spec.Discovery.DependencySelector = &selector
	}
}

func parse(t *testing.T, policies ...*v1alpha1.KickPolicy) []policy.Policy {
	t.Helper()
	var parsed []policy.Policy
	for _, p := range policies {
		one, faults := policy.Parse(p)
		if len(faults) > 0 {
			t.Fatalf("parse %s: %v", p.Name, faults.ToAggregate())
		}
		parsed = append(parsed, one)
	}
	return parsed
}

func TestParseNamesTheFieldOfEveryFault(t *testing.T) {
	cases := map[string]struct {
		policy *v1alpha1.KickPolicy
		paths  []string
		// selected: a fault in the schedule does not touch what the policy selects.
		selected bool
	}{
		"an unknown operator": {
			policy: policyOf("p", requirement("app", "Foo", "x")),
			paths:  []string{"spec.discovery.workloadSelector.matchExpressions[0].operator"},
		},
		"In without values": {
			policy: policyOf("p", requirement("app", metav1.LabelSelectorOpIn)),
			paths:  []string{"spec.discovery.workloadSelector.matchExpressions[0].values"},
		},
		"Exists with values": {
			policy: policyOf("p", requirement("app", metav1.LabelSelectorOpExists, "x")),
			paths:  []string{"spec.discovery.workloadSelector.matchExpressions[0].values"},
		},
		"a label value with spaces": {
			policy: policyOf("p", selecting(map[string]string{"app": "my web"})),
			paths:  []string{"spec.discovery.workloadSelector.matchLabels"},
		},
		"an invalid key": {
			policy: policyOf("p", selecting(map[string]string{"a b": "x"})),
			paths:  []string{"spec.discovery.workloadSelector.matchLabels"},
		},
		"a fault in the schedule": {
			policy: policyOf("p", metav1.LabelSelector{}, func(p *v1alpha1.KickPolicy) {
				p.Spec.Schedule.Windows = []v1alpha1.Window{
					{Kind: v1alpha1.WindowAllow, Cron: "0 2 * * *", Duration: "1h"},
					{Kind: v1alpha1.WindowDeny, Cron: "@daily", Duration: "1h"},
				}
			}),
			paths:    []string{"spec.schedule.windows[1].cron"},
			selected: true,
		},
		"faults in both selectors": {
			policy: policyOf("p", requirement("app", "Foo", "x"), only(map[string]string{"tier": "a b"})),
			paths: []string{
				"spec.discovery.workloadSelector.matchExpressions[0].operator",
				"spec.discovery.dependencySelector.matchLabels",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			parsed, faults := policy.Parse(tc.policy)
			var paths []string
			for _, fault := range faults {
				paths = append(paths, fault.Field)
			}
			for i, path := range paths {
				if i >= len(tc.paths) || !strings.HasPrefix(path, tc.paths[i]) {
					t.Fatalf("faults at %v, want %v", paths, tc.paths)
				}
			}
			if len(paths) != len(tc.paths) {
				t.Fatalf("faults at %v, want %v", paths, tc.paths)
			}
			if parsed.SelectsWorkload(labels.Set{"app": "x"}) != tc.selected || parsed.AdmitsSource(labels.Set{}) != tc.selected {
				t.Errorf("the policy selects workloads and sources: want %v", tc.selected)
			}
			if parsed.SelectorsValid != tc.selected {
				t.Errorf("selectors valid: %v", parsed.SelectorsValid)
			}
		})
	}
}

func TestScopeOf(t *testing.T) {
	web := selecting(map[string]string{"app": "web"})
	cases := map[string]struct {
		policies  []*v1alpha1.KickPolicy
		workload  labels.Set
		names     []string
		suspended bool
		dryRun    bool
	}{
		"a dry run does not count beside a policy that acts": {
			policies: []*v1alpha1.KickPolicy{policyOf("a", web, dry), policyOf("b", web)},
			workload: labels.Set{"app": "web"}, names: []string{"b"},
		},
		"dry runs alone decide, suspended policies left aside": {
			policies: []*v1alpha1.KickPolicy{policyOf("a", web, suspended), policyOf("b", web, dry), policyOf("c", web, dry)},
			workload: labels.Set{"app": "web"}, names: []string{"b", "c"}, dryRun: true,
		},
		"a dry run that is suspended is suspended": {
			policies: []*v1alpha1.KickPolicy{policyOf("a", web, suspended, dry)},
			workload: labels.Set{"app": "web"}, names: []string{"a"}, suspended: true,
		},
		"no policy": {workload: labels.Set{"app": "web"}, names: []string{}},
		"another label": {
			policies: []*v1alpha1.KickPolicy{policyOf("p", web)}, workload: labels.Set{"app": "db"}, names: []string{},
		},
		"the empty selector selects everything": {
			policies: []*v1alpha1.KickPolicy{policyOf("p", metav1.LabelSelector{})}, names: []string{"p"},
		},
		"several policies in the order of their names": {
			policies: []*v1alpha1.KickPolicy{policyOf("b", web), policyOf("a", web)},
			workload: labels.Set{"app": "web"}, names: []string{"a", "b"},
		},
		"a suspended policy does not count beside another": {
			policies: []*v1alpha1.KickPolicy{policyOf("a", web, suspended), policyOf("b", web)},
			workload: labels.Set{"app": "web"}, names: []string{"b"},
		},
		"suspended policies alone park the workload": {
			policies: []*v1alpha1.KickPolicy{policyOf("a", web, suspended)},
			workload: labels.Set{"app": "web"}, names: []string{"a"}, suspended: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			scope := policy.ScopeOf(parse(t, tc.policies...), tc.workload)
			if diff := cmp.Diff(tc.names, scope.Names()); diff != "" {
				t.Errorf("policies (-want +got):\n%s", diff)
			}
			if scope.Managed() != (len(tc.names) > 0) || scope.Suspended() != tc.suspended || scope.DryRun() != tc.dryRun {
				t.Errorf("managed %v, suspended %v, dry run %v", scope.Managed(), scope.Suspended(), scope.DryRun())
			}
		})
	}
}

func TestScopeAdmitsTheUnionOfSources(t *testing.T) {
	everything := metav1.LabelSelector{}
	scope := policy.ScopeOf(parse(t,
		policyOf("a", everything, only(map[string]string{"tier": "db"})),
		policyOf("b", everything, only(map[string]string{"tier": "cache"})),
	), nil)
	if scope.AdmitsSource(labels.Set{"tier": "db", policy.IgnoreLabel: "true"}) {
		t.Error("a source that is to be ignored is admitted (C019)")
	}
	for tier, want := range map[string]bool{"db": true, "cache": true, "web": false} {
		if got := scope.AdmitsSource(labels.Set{"tier": tier}); got != want {
			t.Errorf("tier %s admitted: %v, want %v", tier, got, want)
		}
	}
}

func TestAScopeIsAsRestrainedAsItsStrictestPolicy(t *testing.T) {
	restraint := func(quiet, interval, deadline time.Duration) func(*v1alpha1.KickPolicy) {
		return func(p *v1alpha1.KickPolicy) {
			p.Spec.Restart = v1alpha1.Restart{
				QuietPeriod: &metav1.Duration{Duration: quiet}, MinInterval: &metav1.Duration{Duration: interval},
				RolloutDeadline: &metav1.Duration{Duration: deadline},
			}
		}
	}
	everything := metav1.LabelSelector{}
	scope := policy.ScopeOf(parse(t,
		policyOf("a", everything, restraint(time.Second, 3*time.Second, 4*time.Second)),
		policyOf("b", everything, restraint(2*time.Second, time.Second, 5*time.Second)),
	), nil)
	quiet, _ := scope.Quiet()
	got := []time.Duration{quiet, scope.MinInterval(), scope.RolloutDeadline()}
	if diff := cmp.Diff([]time.Duration{2 * time.Second, 3 * time.Second, 5 * time.Second}, got); diff != "" {
		t.Errorf("quiet, interval, deadline (-want +got):\n%s", diff)
	}
}

func TestOnlyConsumedKeysCountWhereEveryPolicyThatAdmitsTheSourceSaysSo(t *testing.T) {
	byKey := func(p *v1alpha1.KickPolicy) { p.Spec.Discovery.Granularity = v1alpha1.GranularityKey }
	everything := metav1.LabelSelector{}
	scope := policy.ScopeOf(parse(t,
		policyOf("a", everything, byKey),
		policyOf("b", everything, only(map[string]string{"tier": "db"})),
	), nil)
	for tier, want := range map[string]bool{"db": false, "web": true} {
		if got := scope.ByKey(labels.Set{"tier": tier}); got != want {
			t.Errorf("tier %s by key: %v, want %v", tier, got, want)
		}
	}
}
