package controllers

import (
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/source"
	"github.com/kick-dev/kick/internal/cluster/workload"
)

// sourceKinds are the kinds that are watched as sources.
var sourceKinds = []v1alpha1.SourceKind{v1alpha1.Secret, v1alpha1.ConfigMap}

// handles is an event handler for any kind of object.
type handles[key comparable] = handler.TypedEventHandler[client.Object, key]

// queue is the queue of a controller.
type queue[key comparable] = workqueue.TypedRateLimitingInterface[key]

// onChange queues the keys of an object when it appears, when it goes, and when an update matters.
func onChange[key comparable](
	keys func(context.Context, client.Object) []key, matters func(before, after client.Object) bool,
) handles[key] {
	add := func(ctx context.Context, object client.Object, q queue[key]) {
		for _, k := range keys(ctx, object) {
			q.Add(k)
		}
	}
	return handler.TypedFuncs[client.Object, key]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[client.Object], q queue[key]) {
			add(ctx, e.Object, q)
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[client.Object], q queue[key]) {
			if matters(e.ObjectOld, e.ObjectNew) {
				add(ctx, e.ObjectOld, q)
				add(ctx, e.ObjectNew, q)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[client.Object], q queue[key]) {
			add(ctx, e.Object, q)
		},
	}
}

// newcomers leaves out what was there when the controller started. It is for handlers of objects that concern others, all of
// which are looked at then anyway, when every list is complete. A cluster is full of such objects, and both the queue and the
// list of events that wait for a handler keep the size that they once took.
func newcomers[key comparable](h handles[key]) handles[key] {
	return handler.TypedFuncs[client.Object, key]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[client.Object], q queue[key]) {
			if !e.IsInInitialList {
				h.Create(ctx, e, q)
			}
		},
		UpdateFunc: h.Update,
		DeleteFunc: h.Delete,
	}
}

// moved tells any update from a resync.
func moved(before, after client.Object) bool {
	return before.GetResourceVersion() != after.GetResourceVersion()
}

// respecified tells a change of spec or labels from one of status or other metadata.
func respecified(before, after client.Object) bool {
	return before.GetGeneration() != after.GetGeneration() || relabelled(before, after)
}

func relabelled(before, after client.Object) bool {
	return !maps.Equal(before.GetLabels(), after.GetLabels())
}

// sourceItself observes a source that moves, if anybody consumes it. Whoever comes to consume one of the others, which are
// most, has it observed then, and so has whoever is there at the start: see sourcesOfWorkload.
func (s *shell) sourceItself(kind v1alpha1.SourceKind) handles[source.Key] {
	always := onChange(func(_ context.Context, object client.Object) []source.Key {
		return []source.Key{source.KeyOf(kind, object)}
	}, moved)
	watched := onChange(func(ctx context.Context, object client.Object) []source.Key {
		key := source.KeyOf(kind, object)
		if key != s.fingerprintKey() && !s.consumed(ctx, key) {
			return nil
		}
		return []source.Key{key}
	}, moved)
	return handler.TypedFuncs[client.Object, source.Key]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[client.Object], q queue[source.Key]) {
			if !e.IsInInitialList || source.KeyOf(kind, e.Object) == s.fingerprintKey() {
				watched.Create(ctx, e, q)
			}
		},
		UpdateFunc: watched.Update,
		DeleteFunc: always.Delete, // There may be a record to forget.
	}
}

// consumed tells whether any workload consumes a source. When that cannot be told, it is.
func (s *shell) consumed(ctx context.Context, key source.Key) bool {
	consumed, err := s.workloads.Consumed(ctx, key.Namespace, key.Source)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "find out whether a source is consumed", "source", key.String())
	}
	return consumed || err != nil
}

// sourcesOfWorkload observes the sources of a workload that appears, goes, or comes to consume others.
func sourcesOfWorkload() handles[source.Key] {
	return onChange(func(_ context.Context, object client.Object) []source.Key {
		w, ok := workload.Of(object)
		if !ok {
			return nil
		}
		return sourceKeys(w)
	}, respecified)
}

func sourceKeys(w *workload.Workload) []source.Key {
	var keys []source.Key
	for _, reference := range w.References() {
		keys = append(keys, source.Key{Namespace: w.Key.Namespace, Source: reference.Source})
	}
	return keys
}

// sourcesOfPolicy observes the sources in the namespace of a policy that changes.
func (s *shell) sourcesOfPolicy() handles[source.Key] {
	return onChange(func(ctx context.Context, object client.Object) []source.Key {
		distinct := map[source.Key]bool{}
		var keys []source.Key
		for _, w := range s.workloadsIn(ctx, object.GetNamespace()) {
			for _, key := range sourceKeys(w) {
				if !distinct[key] {
					distinct[key] = true
					keys = append(keys, key)
				}
			}
		}
		return keys
	}, respecified)
}

// workloadItself decides whenever a workload moves. What an update tells, mostly how far a rollout is, can wait for restarts
// that are due.
func (s *shell) workloadItself() handles[workload.Key] {
	decide := onChange(func(_ context.Context, object client.Object) []workload.Key {
		w, ok := workload.Of(object)
		if !ok {
			return nil
		}
		s.moves.Saw(w)
		return []workload.Key{w.Key}
	}, moved)
	return handler.TypedFuncs[client.Object, workload.Key]{
		CreateFunc: decide.Create,
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[client.Object], q queue[workload.Key]) {
			decide.Update(ctx, e, unhurried[workload.Key]{q})
		},
		DeleteFunc: decide.Delete,
	}
}

// unhurried queues keys behind all others.
type unhurried[key comparable] struct{ queue[key] }

func (u unhurried[key]) Add(k key) {
	if q, ok := u.queue.(priorityqueue.PriorityQueue[key]); ok {
		q.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(handler.LowPriority)}, k)
		return
	}
	u.queue.Add(k)
}

// workloadOfRequest decides when a request appears, goes, or is edited by its users. KICK's own writes of its status
// wake nobody.
func (s *shell) workloadOfRequest() handles[workload.Key] {
	decide := onChange(func(_ context.Context, object client.Object) []workload.Key {
		present, ok := object.(*v1alpha1.KickRequest)
		if !ok {
			return nil
		}
		return []workload.Key{keyOfRequest(present)}
	}, respecified)
	return handler.TypedFuncs[client.Object, workload.Key]{
		CreateFunc: decide.Create,
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[client.Object], q queue[workload.Key]) {
			if shown, ok := e.ObjectNew.(*v1alpha1.KickRequest); ok {
				s.requests.shown(shown)
			}
			decide.Update(ctx, e, q)
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[client.Object], q queue[workload.Key]) {
			if deleted, ok := e.Object.(*v1alpha1.KickRequest); ok {
				s.requests.gone(deleted)
				s.attempts.forget(deleted)
				s.options.Traces.Forget(deleted)
			}
			decide.Delete(ctx, e, q)
		},
	}
}

// workloadsOfPolicy decides anew about all workloads in the namespace of a policy that changes.
func (s *shell) workloadsOfPolicy() handles[workload.Key] {
	return onChange(func(ctx context.Context, object client.Object) []workload.Key {
		var keys []workload.Key
		for _, w := range s.workloadsIn(ctx, object.GetNamespace()) {
			keys = append(keys, w.Key)
		}
		return keys
	}, respecified)
}

// consumersOfRelabelled decides about the consumers of a source that appears, goes, or changes its labels, by which
// policies may select it.
func (s *shell) consumersOfRelabelled(kind v1alpha1.SourceKind) handles[workload.Key] {
	return newcomers(onChange(func(ctx context.Context, object client.Object) []workload.Key {
		key := source.KeyOf(kind, object)
		workloads, err := s.workloads.Consumers(ctx, key.Namespace, key.Source)
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "find the consumers of a source", "source", key.String())
			return nil
		}
		var keys []workload.Key
		for _, w := range workloads {
			keys = append(keys, w.Key)
		}
		return keys
	}, relabelled))
}

// policyAndSiblings reports on a policy that changes, and on those that may share workloads with it.
func (s *shell) policyAndSiblings() handles[types.NamespacedName] {
	return onChange(func(ctx context.Context, object client.Object) []types.NamespacedName {
		return append(s.policiesIn(ctx, object.GetNamespace()), client.ObjectKeyFromObject(object))
	}, respecified)
}

// policiesOfNamespace counts anew for the policies beside an object that appears, goes, or is specified differently.
func (s *shell) policiesOfNamespace() handles[types.NamespacedName] {
	return newcomers(onChange(func(ctx context.Context, object client.Object) []types.NamespacedName {
		return s.policiesIn(ctx, object.GetNamespace())
	}, respecified))
}

func (s *shell) policiesIn(ctx context.Context, namespace string) []types.NamespacedName {
	var list v1alpha1.KickPolicyList
	if err := s.client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list the policies of a namespace", "namespace", namespace)
		return nil
	}
	var names []types.NamespacedName
	for i := range list.Items {
		names = append(names, client.ObjectKeyFromObject(&list.Items[i]))
	}
	return names
}

func (s *shell) workloadsIn(ctx context.Context, namespace string) []*workload.Workload {
	workloads, err := s.workloads.InNamespace(ctx, namespace)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list the workloads of a namespace", "namespace", namespace)
	}
	return workloads
}
