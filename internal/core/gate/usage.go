package gate

import (
	"fmt"

	"github.com/kick-dev/kick/internal/core/policy"
)

// Usage counts the workloads that are restarting: in all, by namespace and by policy. The zero value counts none.
type Usage struct {
	total      int
	namespaces map[string]int
	policies   map[policyName]int
}

type policyName struct{ namespace, name string }

// Add counts a workload of a namespace, under the policies of its scope.
func (u *Usage) Add(namespace string, scope policy.Scope) {
	if u.namespaces == nil {
		u.namespaces, u.policies = map[string]int{}, map[policyName]int{}
	}
	u.total++
	u.namespaces[namespace]++
	for _, name := range scope.Names() {
		u.policies[policyName{namespace, name}]++
	}
}

// Total is the number of all.
func (u *Usage) Total() int { return u.total }

// Of a namespace, how many are restarting.
func (u *Usage) Of(namespace string) int { return u.namespaces[namespace] }

// OfPolicy is how many are restarting under a policy.
func (u *Usage) OfPolicy(namespace, name string) int { return u.policies[policyName{namespace, name}] }

// Reached names a policy of the scope that permits no further restart, empty for none.
func (u *Usage) Reached(namespace string, scope policy.Scope) string {
	for _, p := range scope.Policies {
		if p.MaxConcurrent > 0 && u.OfPolicy(namespace, p.Name) >= p.MaxConcurrent {
			return p.Name
		}
	}
	return ""
}

// Full says which limit keeps one more workload from restarting: that of a policy or, where none is reached, that of the
// cluster.
func (u *Usage) Full(namespace string, scope policy.Scope, cluster int) string {
	if name := u.Reached(namespace, scope); name != "" {
		return fmt.Sprintf("as many workloads are restarting as maxConcurrent of policy %s permits", name)
	}
	return fmt.Sprintf("as many workloads are restarting as the cluster permits: %d", cluster)
}
