package controllers

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/facts"
	"github.com/kick-dev/kick/internal/cluster/workload"
	"github.com/kick-dev/kick/internal/core/policy"
)

// slots counts the workloads that are restarting against the limits of the cluster and of the policies, and hands what
// becomes free to the namespace that has the least, within it to who waits longest.
type slots struct {
	// limit for the whole cluster, zero for none.
	limit int
	wake  func(...workload.Key)

	mu      sync.Mutex
	loaded  bool
	held    map[workload.Key]policy.Scope
	waiting []waiter
}

// waiter is a workload that would restart if there were room.
type waiter struct {
	key   workload.Key
	scope policy.Scope
}

func newSlots(limit int, wake func(...workload.Key)) *slots {
	return &slots{limit: limit, wake: wake, held: map[workload.Key]policy.Scope{}}
}

// load counts, once, the restarts that were under way when this replica came to lead.
func (s *slots) load(ctx context.Context, reader client.Reader, workloads *workload.Client, scopes *facts.Scopes) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loaded {
		return nil
	}
	var list v1alpha1.KickRequestList
	if err := reader.List(ctx, &list); err != nil {
		return fmt.Errorf("list the requests: %w", err)
	}
	for i := range list.Items {
		if !restarting(&list.Items[i].Status) {
			continue
		}
		key := keyOfRequest(&list.Items[i])
		target, err := workloads.Cached(ctx, key)
		if err != nil {
			return err
		}
		if target == nil {
			continue
		}
		if s.held[key], err = scopes.Of(ctx, target); err != nil {
			return err
		}
	}
	s.loaded = true
	return nil
}

// restarting tells whether a request takes a slot: its stamp is being written, or its rollout under way.
func restarting(status *v1alpha1.KickRequestStatus) bool {
	if status.Phase != v1alpha1.PhaseExecuting {
		return false
	}
	ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
	return ready != nil && (ready.Reason == v1alpha1.ReasonStamping || ready.Reason == v1alpha1.ReasonRollingOut)
}

// take gives a workload a slot and returns the empty string, or says which limit is reached and remembers that the
// workload waits.
func (s *slots) take(key workload.Key, scope policy.Scope) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, held := s.held[key]; held {
		s.held[key] = scope
		return ""
	}
	if i := s.position(key); i >= 0 {
		s.waiting[i].scope = scope
	} else {
		s.waiting = append(s.waiting, waiter{key, scope})
	}
	if slices.Contains(s.next(), key) {
		s.waiting = slices.DeleteFunc(s.waiting, func(w waiter) bool { return w.key == key })
		s.held[key] = scope
		return ""
	}
	return s.full(key, scope)
}

// settle takes note of what became of a workload: it keeps its slot while it restarts and its place in the queue while
// it waits for one.
func (s *slots) settle(key workload.Key, scope policy.Scope, status *v1alpha1.KickRequestStatus) {
	waits := status.Gate != nil && status.Gate.Reason == v1alpha1.ReasonConcurrencyLimit
	s.mu.Lock()
	defer s.mu.Unlock()
	_, held := s.held[key]
	queued := s.position(key)
	switch {
	case restarting(status):
		s.held[key] = scope
	case held:
		delete(s.held, key)
	}
	if queued >= 0 && !waits {
		s.waiting = slices.Delete(s.waiting, queued, queued+1)
	}
	if (held && !restarting(status)) || (queued >= 0 && !waits) {
		s.wake(s.next()...)
	}
}

// forget frees what a workload held that is gone.
func (s *slots) forget(key workload.Key) {
	s.settle(key, policy.Scope{}, &v1alpha1.KickRequestStatus{})
}

func (s *slots) position(key workload.Key) int {
	return slices.IndexFunc(s.waiting, func(w waiter) bool { return w.key == key })
}

// next lists who may have a slot now. The caller holds the lock.
func (s *slots) next() []workload.Key {
	queues := map[string][]waiter{}
	for _, w := range s.waiting {
		queues[w.key.Namespace] = append(queues[w.key.Namespace], w)
	}
	var chosen []workload.Key
	use := s.usage()
	for len(queues) > 0 && (s.limit == 0 || use.total < s.limit) {
		namespace := use.fairest(queues)
		first := queues[namespace][0]
		if queues[namespace] = queues[namespace][1:]; len(queues[namespace]) == 0 {
			delete(queues, namespace)
		}
		if use.reached(namespace, first.scope) == "" {
			use.add(namespace, first.scope)
			chosen = append(chosen, first.key)
		}
	}
	return chosen
}

// full says which limit keeps a workload waiting. The caller holds the lock.
func (s *slots) full(key workload.Key, scope policy.Scope) string {
	if name := s.usage().reached(key.Namespace, scope); name != "" {
		return fmt.Sprintf("as many workloads are restarting as maxConcurrent of policy %s permits", name)
	}
	return fmt.Sprintf("as many workloads are restarting as the cluster permits: %d", s.limit)
}

// usage counts slots in all, by namespace and by policy.
type usage struct {
	total      int
	namespaces map[string]int
	policies   map[[2]string]int
}

func (s *slots) usage() *usage {
	use := &usage{namespaces: map[string]int{}, policies: map[[2]string]int{}}
	for key, scope := range s.held {
		use.add(key.Namespace, scope)
	}
	return use
}

func (u *usage) add(namespace string, scope policy.Scope) {
	u.total++
	u.namespaces[namespace]++
	for _, name := range scope.Names() {
		u.policies[[2]string{namespace, name}]++
	}
}

// reached names a policy that permits no further restart, empty for none.
func (u *usage) reached(namespace string, scope policy.Scope) string {
	for _, p := range scope.Policies {
		if p.MaxConcurrent > 0 && u.policies[[2]string{namespace, p.Name}] >= p.MaxConcurrent {
			return p.Name
		}
	}
	return ""
}

// fairest is the namespace that has the fewest slots.
func (u *usage) fairest(queues map[string][]waiter) string {
	return slices.MinFunc(slices.Collect(maps.Keys(queues)), func(a, b string) int {
		return cmp.Or(cmp.Compare(u.namespaces[a], u.namespaces[b]), cmp.Compare(a, b))
	})
}
