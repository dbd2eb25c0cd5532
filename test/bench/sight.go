package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/workload"
)

// sight is what watches of the cluster show.
type sight struct {
	mu       sync.Mutex
	complete map[client.ObjectKey]bool
	stamps   map[client.ObjectKey]stamp
	phases   map[client.ObjectKey]v1alpha1.Phase

	// incomplete are those of the watched workloads that roll out, most the largest number of them at any update.
	watched, incomplete map[client.ObjectKey]bool
	most                int
}

// stamp is a value of restartedAt, or of what the reference writes, with the moment a watch showed it first.
type stamp struct {
	value string
	seen  time.Time
}

// watchCluster begins to watch. It returns when what is there already has been seen.
func watchCluster(ctx context.Context, config *rest.Config) (*sight, error) {
	s := &sight{
		complete: map[client.ObjectKey]bool{}, stamps: map[client.ObjectKey]stamp{}, phases: map[client.ObjectKey]v1alpha1.Phase{},
	}
	watches, err := cache.New(config, cache.Options{Scheme: scheme, DefaultTransform: cache.TransformStripManagedFields()})
	if err != nil {
		return nil, fmt.Errorf("watch the cluster: %w", err)
	}
	for object, handler := range map[client.Object]toolscache.ResourceEventHandlerFuncs{
		&appsv1.Deployment{}:    {AddFunc: s.deployment, UpdateFunc: func(_, o any) { s.deployment(o) }},
		&v1alpha1.KickRequest{}: {AddFunc: s.request, UpdateFunc: func(_, o any) { s.request(o) }},
	} {
		informer, err := watches.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("watch %T: %w", object, err)
		}
		if _, err := informer.AddEventHandler(handler); err != nil {
			return nil, fmt.Errorf("watch %T: %w", object, err)
		}
	}
	go func() { _ = watches.Start(ctx) }()
	if !watches.WaitForCacheSync(ctx) {
		return nil, fmt.Errorf("watch the cluster: %w", ctx.Err())
	}
	return s, nil
}

func (s *sight) deployment(object any) {
	now := time.Now()
	shown, ok := workload.Of(object.(*appsv1.Deployment))
	if !ok {
		return
	}
	key := client.ObjectKeyFromObject(shown.Object())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.complete[key] = shown.Rollout().Complete
	if s.watched[key] {
		s.countIncomplete(key)
	}
	value := shown.Stamp() + shown.Object().(*appsv1.Deployment).Spec.Template.Annotations[referenceAnnotation]
	if value != s.stamps[key].value {
		s.stamps[key] = stamp{value: value, seen: now}
	}
}

// watchIncomplete begins to count how many of the workloads roll out at the same time, and returns how to learn the most.
func (s *sight) watchIncomplete(keys []client.ObjectKey) func() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watched, s.incomplete, s.most = map[client.ObjectKey]bool{}, map[client.ObjectKey]bool{}, 0
	for _, key := range keys {
		s.watched[key] = true
		s.countIncomplete(key)
	}
	return func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.watched = nil
		return s.most
	}
}

// countIncomplete takes a workload into account. The caller holds the lock.
func (s *sight) countIncomplete(key client.ObjectKey) {
	if s.complete[key] {
		delete(s.incomplete, key)
	} else {
		s.incomplete[key] = true
	}
	s.most = max(s.most, len(s.incomplete))
}

func (s *sight) request(object any) {
	shown := object.(*v1alpha1.KickRequest)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phases[client.ObjectKey{Namespace: shown.Namespace, Name: shown.Spec.TargetRef.Name}] = shown.Status.Phase
}

// rolledOut counts the workloads of the shape whose rollout is complete.
func (s *sight) rolledOut(keys []client.ObjectKey) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, key := range keys {
		if s.complete[key] {
			n++
		}
	}
	return n
}

// in counts the workloads whose request is in one of the phases.
func (s *sight) in(keys []client.ObjectKey, phases ...v1alpha1.Phase) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, key := range keys {
		for _, phase := range phases {
			if s.phases[key] == phase {
				n++
			}
		}
	}
	return n
}

// stampsOf copies the stamps of the workloads.
func (s *sight) stampsOf(keys []client.ObjectKey) map[client.ObjectKey]stamp {
	s.mu.Lock()
	defer s.mu.Unlock()
	stamps := make(map[client.ObjectKey]stamp, len(keys))
	for _, key := range keys {
		stamps[key] = s.stamps[key]
	}
	return stamps
}

// stamped returns when each workload got another stamp than before; it reports false while some have not.
func (s *sight) stamped(before map[client.ObjectKey]stamp) (map[client.ObjectKey]time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := make(map[client.ObjectKey]time.Time, len(before))
	for key, old := range before {
		if present := s.stamps[key]; present.value != old.value {
			at[key] = present.seen
		}
	}
	return at, len(at) == len(before)
}
