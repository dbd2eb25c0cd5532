// Package policy decides which workloads and which of their sources the policies of a namespace cover: the managed
// predicate and the scope D(w), §7 of the model.
package policy

import (
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
	// DryRun is true for a policy that only says what it would restart.
	DryRun bool
	// ByKey is true where only the keys count that a workload consumes.
	ByKey bool
	// Schedule says when restarts may run. One that does not parse is closed.
	Schedule schedule.Schedule
	// Quiet is how long no change may have come before a restart, MaxQuiet the longest wait for that.
	Quiet, MaxQuiet time.Duration
	// MinInterval is the shortest time between two restarts of a workload.
	MinInterval time.Duration
	// RolloutDeadline is how long a rollout may take, zero for the default.
	RolloutDeadline time.Duration
	// MaxConcurrent is how many workloads of the policy may be restarting at the same time, zero for any number.
	MaxConcurrent int
	// Provider is the GitOps tool that restarts wait for.
	Provider v1alpha1.GitOpsProvider
	// RequireReconciled is true where its objects have to be in sync, and not only their sync windows open.
	RequireReconciled bool
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
		DryRun:       policy.Spec.DryRun,
		ByKey:        policy.Spec.Discovery.Granularity == v1alpha1.GranularityKey,
		workloads:    labels.Nothing(),
		dependencies: labels.Nothing(),
	}
	parsed.Provider, parsed.RequireReconciled = owned(policy.Spec.GitOps)
	windows, scheduleFaults := schedule.Parse(policy.Spec.Schedule.Windows, field.NewPath("spec", "schedule", "windows"))
	parsed.Schedule = windows
	parsed.restrain(&policy.Spec.Restart)
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

func (p *Policy) restrain(restart *v1alpha1.Restart) {
	p.Quiet, p.MaxQuiet = length(restart.QuietPeriod), length(restart.MaxQuiet)
	p.MinInterval, p.RolloutDeadline = length(restart.MinInterval), length(restart.RolloutDeadline)
	if restart.MaxConcurrent != nil {
		p.MaxConcurrent = int(*restart.MaxConcurrent)
	}
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
