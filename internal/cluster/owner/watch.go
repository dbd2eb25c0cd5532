package owner

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kick-dev/kick/internal/core/gitops"
)

// Indexes of the caches.
const (
	// workloadIndex finds objects by the workloads they list; its values are those of idKey.
	workloadIndex = "workload"
	// nameIndex finds Applications by their name, in any namespace.
	nameIndex = "name"
	// planeIndex finds Applications by the namespace of their control plane.
	planeIndex = "plane"
)

// idKey is the value of a workload in the workloadIndex.
func idKey(id gitops.ID) string { return id.Namespace + "/" + string(id.Kind) + "/" + id.Name }

var indexers = cache.Indexers{
	workloadIndex: indexEntries(func(e *entry) []string {
		var keys []string
		for _, id := range listedBy(e) {
			keys = append(keys, idKey(id))
		}
		return keys
	}),
	nameIndex: indexEntries(func(e *entry) []string { return []string{e.Name} }),
	planeIndex: indexEntries(func(e *entry) []string {
		if a, ok := e.facts.(*gitops.Application); ok {
			return []string{a.ControllerNamespace}
		}
		return nil
	}),
}

func indexEntries(keys func(*entry) []string) cache.IndexFunc {
	return func(object any) ([]string, error) {
		if e, ok := object.(*entry); ok {
			return keys(e), nil
		}
		return nil, nil
	}
}

// listedBy returns the workloads that an object lists as its own.
func listedBy(e *entry) []gitops.ID {
	switch o := e.facts.(type) {
	case *gitops.Application:
		ids := make([]gitops.ID, len(o.Workloads))
		for i := range o.Workloads {
			ids[i] = o.Workloads[i].ID
		}
		return ids
	case *gitops.FluxObject:
		return o.Inventory
	default:
		return nil
	}
}

// watch is the running watch of one kind: an informer for each namespace that is looked at, or one for all.
type watch struct {
	kind      *kind
	informers []cache.SharedIndexInformer
	stop      context.CancelFunc

	mu sync.Mutex
	// failure is why the objects could not be listed, empty if they could; failedAt are the versions of the caches then.
	failure  string
	failedAt []string
	// suspect is true once the API server has said that it does not know the kind.
	suspect bool
}

// newWatch starts to watch a kind.
func (r *Reader) newWatch(ctx context.Context, k *kind) (*watch, error) {
	ctx, stop := context.WithCancel(ctx)
	w := &watch{kind: k, stop: stop}
	for _, namespace := range r.namespaces() {
		informer := dynamicinformer.NewFilteredDynamicInformer(r.dynamic, k.resource, namespace, 0, indexers,
			func(options *metav1.ListOptions) {
				if k.object != "" {
					options.FieldSelector = fields.OneTermEqualSelector("metadata.name", k.object).String()
				}
			}).Informer()
		if err := r.prepare(ctx, w, informer); err != nil {
			stop()
			return nil, fmt.Errorf("watch %s: %w", k.resource.GroupResource(), err)
		}
		w.informers = append(w.informers, informer)
	}
	for _, informer := range w.informers {
		go informer.RunWithContext(ctx)
	}
	go func() {
		synced := make([]cache.InformerSynced, len(w.informers))
		for i, informer := range w.informers {
			synced[i] = informer.HasSynced
		}
		if cache.WaitForCacheSync(ctx.Done(), synced...) {
			ctrl.LoggerFrom(ctx).Info("watching", "kind", k.name)
			w.recovered()
			r.turned(ctx)
		}
	}()
	return w, nil
}

func (r *Reader) prepare(ctx context.Context, w *watch, informer cache.SharedIndexInformer) error {
	err := informer.SetTransform(func(object any) (any, error) {
		if read, ok := object.(*unstructured.Unstructured); ok {
			return r.parse(w.kind, read), nil
		}
		return object, nil
	})
	if err != nil {
		return err
	}
	err = informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) { r.failed(ctx, w, err) })
	if err != nil {
		return err
	}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { r.changed(ctx, nil, entryOf(object)) },
		UpdateFunc: func(before, after any) {
			if old, next := entryOf(before), entryOf(after); !same(old, next) {
				r.changed(ctx, old, next)
			}
		},
		DeleteFunc: func(object any) { r.changed(ctx, entryOf(object), nil) },
	})
	return err
}

// entryOf returns the entry of an event, nil if it has none.
func entryOf(object any) *entry {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	e, _ := object.(*entry)
	return e
}

// same tells whether two states of an object show the same facts. Most writes of a status change none: Argo CD and Flux
// note every few minutes that they have looked.
func same(old, next *entry) bool {
	return old != nil && next != nil && old.UID == next.UID && reflect.DeepEqual(old.facts, next.facts)
}

// failed notes that objects could not be listed. What is missing a right or a kind will be missing it for a while; other
// failures are tried again within seconds, on what is cached.
func (r *Reader) failed(ctx context.Context, w *watch, err error) {
	w.mu.Lock()
	before := w.failure
	switch {
	case apierrors.IsNotFound(err):
		w.suspect = true
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		w.failure, w.failedAt = "KICK may not list or watch "+w.kind.resource.GroupResource().String(), w.versions()
	}
	suspect, worse := w.suspect, before == "" && w.failure != ""
	w.mu.Unlock()
	ctrl.LoggerFrom(ctx).V(1).Info("a list or watch ended", "kind", w.kind.name, "error", err.Error())
	if suspect {
		r.nudge()
	}
	if worse {
		ctrl.LoggerFrom(ctx).Error(err, "GitOps objects cannot be read", "kind", w.kind.name)
		r.turned(ctx)
	}
}

// versions are the resource versions up to which the caches have read. w.mu is held.
func (w *watch) versions() []string {
	versions := make([]string, len(w.informers))
	for i, informer := range w.informers {
		versions[i] = informer.LastSyncResourceVersion()
	}
	return versions
}

// recovered forgets a failure after which every cache has read something, and tells whether there was one.
func (w *watch) recovered() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failure == "" {
		return false
	}
	for i, version := range w.versions() {
		if i >= len(w.failedAt) || version == w.failedAt[i] {
			return false
		}
	}
	w.failure, w.failedAt = "", nil
	return true
}

// availability of the kind.
func (w *watch) availability() gitops.Availability {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failure != "" {
		return gitops.Availability{Presence: gitops.Unreadable, Message: w.failure}
	}
	for _, informer := range w.informers {
		if !informer.HasSynced() {
			return gitops.Availability{Presence: gitops.Unreadable, Message: stillListing}
		}
	}
	return gitops.Availability{Presence: gitops.Readable}
}

// stillListing is the message of a kind whose first list has not arrived.
const stillListing = "they are being listed"
