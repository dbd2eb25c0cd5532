// Package policy decides which workloads and which of their sources the policies of a namespace cover: the managed
// predicate and the scope D(w), §7 of the model.
package policy

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/schedule"
)

// Policy is a KickPolicy with its selectors parsed.
type Policy struct {
	Name      string
	Suspended bool
	// Schedule says when restarts may run. One that does not parse is closed.
	Schedule schedule.Schedule
	// Quiet is how long no change may have come before a restart, MaxQuiet the longest wait for that.
	Quiet, MaxQuiet time.Duration
	// SelectorsValid is false for a policy whose selectors do not parse: it selects nothing.
	SelectorsValid bool

	workloads    labels.Selector
	dependencies labels.Selector
}

// IgnoreLabel on a source, with the value "true", keeps its changes from counting, whatever the policies say.
const IgnoreLabel = "kick.dev/ignore"

// Parse checks the spec of a policy and parses it. All faults are returned at once, with the path of each field. A fault
// in a selector makes the policy select nothing, one in the schedule keeps it closed.
func Parse(policy *v1alpha1.KickPolicy) (Policy, field.ErrorList) {
	parsed := Policy{
		Name:         policy.Name,
		Suspended:    policy.Spec.Suspend,
		workloads:    labels.Nothing(),
		dependencies: labels.Nothing(),
	}
	windows, scheduleFaults := schedule.Parse(policy.Spec.Schedule.Windows, field.NewPath("spec", "schedule", "windows"))
	parsed.Schedule = windows
	parsed.Quiet, parsed.MaxQuiet = length(policy.Spec.Restart.QuietPeriod), length(policy.Spec.Restart.MaxQuiet)
	discovery := &policy.Spec.Discovery
	path := field.NewPath("spec", "discovery")
	workloads, faults := parseSelector(&discovery.WorkloadSelector, path.Child("workloadSelector"))
	dependencies := labels.Everything()
	if discovery.DependencySelector != nil {
		var more field.ErrorList
		dependencies, more = parseSelector(discovery.DependencySelector, path.Child("dependencySelector"))
		faults = append(faults, more...)
	}
	if len(faults) == 0 {
		parsed.SelectorsValid = true
		parsed.workloads, parsed.dependencies = workloads, dependencies
	}
	return parsed, append(faults, scheduleFaults...)
}

// length reads a duration that the API server defaults; absent means none.
func length(duration *metav1.Duration) time.Duration {
	if duration == nil {
		return 0
	}
	return duration.Duration
}

func parseSelector(selector *metav1.LabelSelector, path *field.Path) (labels.Selector, field.ErrorList) {
	faults := metav1validation.ValidateLabelSelector(selector, metav1validation.LabelSelectorValidationOptions{}, path)
	if len(faults) > 0 {
		return nil, faults
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(path, selector, err.Error())}
	}
	return parsed, nil
}

// SelectsWorkload tells whether the policy manages a workload with these labels.
func (p Policy) SelectsWorkload(workload labels.Labels) bool { return p.workloads.Matches(workload) }

// AdmitsSource tells whether changes of a source with these labels count for the policy.
func (p Policy) AdmitsSource(source labels.Labels) bool {
	return source.Get(IgnoreLabel) != "true" && p.dependencies.Matches(source)
}

// Scope is what the policies say together about one workload.
type Scope struct {
	// Policies select the workload, sorted by name.
	Policies []Policy
}

// ScopeOf returns the scope of a workload with these labels under the policies of its namespace. Suspended policies
// count only where no other selects the workload: then its requests are made, and parked.
func ScopeOf(policies []Policy, workload labels.Labels) Scope {
	var active, suspended []Policy
	for _, policy := range policies {
		switch {
		case !policy.SelectsWorkload(workload):
		case policy.Suspended:
			suspended = append(suspended, policy)
		default:
			active = append(active, policy)
		}
	}
	selected := active
	if len(active) == 0 {
		selected = suspended
	}
	slices.SortFunc(selected, func(a, b Policy) int { return cmp.Compare(a.Name, b.Name) })
	return Scope{Policies: selected}
}

// Managed tells whether any policy selects the workload.
func (s Scope) Managed() bool { return len(s.Policies) > 0 }

// Suspended tells whether the workload is managed by suspended policies alone.
func (s Scope) Suspended() bool { return s.Managed() && s.Policies[0].Suspended }

// AdmitsSource tells whether a source with these labels is in D(w): the union over the policies in scope.
func (s Scope) AdmitsSource(source labels.Labels) bool {
	return slices.ContainsFunc(s.Policies, func(p Policy) bool { return p.AdmitsSource(source) })
}

// Quiet is the longest quiet period of the policies in scope, with the longest wait for it.
func (s Scope) Quiet() (quiet, most time.Duration) {
	for _, policy := range s.Policies {
		quiet, most = max(quiet, policy.Quiet), max(most, policy.MaxQuiet)
	}
	return quiet, most
}

// Names of the policies in scope.
func (s Scope) Names() []string {
	names := make([]string, len(s.Policies))
	for i, policy := range s.Policies {
		names[i] = policy.Name
	}
	return names
}
