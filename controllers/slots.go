package controllers

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/facts"
	"github.com/kick-dev/kick/internal/cluster/workload"
	"github.com/kick-dev/kick/internal/core/gate"
	"github.com/kick-dev/kick/internal/core/policy"
	"github.com/kick-dev/kick/internal/core/request"
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
		if !request.Restarting(&list.Items[i].Status) {
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
	case request.Restarting(status):
		s.held[key] = scope
	case held:
		delete(s.held, key)
	}
	if queued >= 0 && !waits {
		s.waiting = slices.Delete(s.waiting, queued, queued+1)
	}
	if (held && !request.Restarting(status)) || (queued >= 0 && !waits) {
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
	for len(queues) > 0 && (s.limit == 0 || use.Total() < s.limit) {
		namespace := fairest(use, queues)
		first := queues[namespace][0]
		if queues[namespace] = queues[namespace][1:]; len(queues[namespace]) == 0 {
			delete(queues, namespace)
		}
		if use.Reached(namespace, first.scope) == "" {
			use.Add(namespace, first.scope)
			chosen = append(chosen, first.key)
		}
	}
	return chosen
}

// full says which limit keeps a workload waiting. The caller holds the lock.
func (s *slots) full(key workload.Key, scope policy.Scope) string {
	return s.usage().Full(key.Namespace, scope, s.limit)
}

// usage counts the slots that are held. The caller holds the lock.
func (s *slots) usage() *gate.Usage {
	use := &gate.Usage{}
	for key, scope := range s.held {
		use.Add(key.Namespace, scope)
	}
	return use
}

// fairest is the namespace that has the fewest slots.
func fairest(use *gate.Usage, queues map[string][]waiter) string {
	return slices.MinFunc(slices.Collect(maps.Keys(queues)), func(a, b string) int {
		return cmp.Or(cmp.Compare(use.Of(a), use.Of(b)), cmp.Compare(a, b))
	})
}
