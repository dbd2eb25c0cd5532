package controllers

import (
	"context"
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// waker lets one controller put keys into the queue of another.
type waker[key comparable] struct {
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[key]
}

// source is to be watched by the controller that is to be woken.
func (w *waker[key]) source() source.TypedSource[key] {
	return source.TypedFunc[key](func(_ context.Context, queue workqueue.TypedRateLimitingInterface[key]) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.queue = queue
		return nil
	})
}

// wake queues the keys. Before the controller has started there is nothing to wake: it then looks at everything
// anyway.
func (w *waker[key]) wake(keys ...key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queue == nil {
		return
	}
	for _, k := range keys {
		w.queue.Add(k)
	}
}
