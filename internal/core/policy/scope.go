package policy

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
)

// Scope is what the policies say together about one workload.
type Scope struct {
	// Policies decide about the workload, sorted by name.
	Policies []Policy
}

// force tells policies that restart from those that only would: a policy decides about a workload where none of
// greater force selects it.
func (p Policy) force() int {
	switch {
	case p.Suspended:
		return 1
	case p.DryRun:
		return 2
	default:
		return 3
	}
}

// ScopeOf returns the scope of a workload with these labels under the policies of its namespace. Dry runs count only
// where no policy that acts selects the workload, and suspended policies only where nothing else does: then its
// requests are made, and parked.
func ScopeOf(policies []Policy, workload labels.Labels) Scope {
	var selected []Policy
	force := 0
	for _, policy := range policies {
		if !policy.SelectsWorkload(workload) || policy.force() < force {
			continue
		}
		if policy.force() > force {
			force, selected = policy.force(), nil
		}
		selected = append(selected, policy)
	}
	slices.SortFunc(selected, func(a, b Policy) int { return cmp.Compare(a.Name, b.Name) })
	return Scope{Policies: selected}
}

// Managed tells whether any policy selects the workload.
func (s Scope) Managed() bool { return len(s.Policies) > 0 }

// Suspended tells whether the workload is managed by suspended policies alone.
func (s Scope) Suspended() bool { return s.Managed() && s.Policies[0].Suspended }

// DryRun tells whether the workload is managed by dry runs alone.
func (s Scope) DryRun() bool { return s.Managed() && !s.Suspended() && s.Policies[0].DryRun }

// AdmitsSource tells whether a source with these labels is in D(w): the union over the policies in scope.
func (s Scope) AdmitsSource(source labels.Labels) bool {
	return slices.ContainsFunc(s.Policies, func(p Policy) bool { return p.AdmitsSource(source) })
}

// ByKey tells whether only the consumed keys of a source with these labels count: every policy that admits it says so.
func (s Scope) ByKey(source labels.Labels) bool {
	return !slices.ContainsFunc(s.Policies, func(p Policy) bool { return !p.ByKey && p.AdmitsSource(source) })
}

// Quiet is the longest quiet period of the policies in scope, with the longest wait for it.
func (s Scope) Quiet() (quiet, most time.Duration) {
	for _, policy := range s.Policies {
		quiet, most = max(quiet, policy.Quiet), max(most, policy.MaxQuiet)
	}
	return quiet, most
}

// MinInterval is the longest minimum interval of the policies in scope.
func (s Scope) MinInterval() time.Duration {
	return s.longest(func(p Policy) time.Duration { return p.MinInterval })
}

// RolloutDeadline is the longest rollout deadline of the policies in scope, zero where none says any.
func (s Scope) RolloutDeadline() time.Duration {
	return s.longest(func(p Policy) time.Duration { return p.RolloutDeadline })
}

func (s Scope) longest(of func(Policy) time.Duration) time.Duration {
	var longest time.Duration
	for _, policy := range s.Policies {
		longest = max(longest, of(policy))
	}
	return longest
}

// Names of the policies in scope.
func (s Scope) Names() []string {
	names := make([]string, len(s.Policies))
	for i, policy := range s.Policies {
		names[i] = policy.Name
	}
	return names
}
