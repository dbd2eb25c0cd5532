package controllers

import (
	"context"
	"errors"

	"k8s.io/utils/keymutex"

	"github.com/kick-dev/kick/internal/cluster/facts"
	"github.com/kick-dev/kick/internal/cluster/workload"
)

// coalescer sees to it that a workload whose sources changed has one request that is decided about: ensure(w, θ), §10 of
// the model.
type coalescer struct {
	requests *requests
	wakeup   *waker[workload.Key]
	rush     *rush
	// locks keep two sources that changed together from making the request of one workload at the same time.
	locks keymutex.KeyMutex
}

// ensure creates the request of a consumer, durably, or has the one there is decided about. That one is open from the
// moment at which the change is on record, since it does not cover it, and the decision is what stores the rest: a process
// that dies before leaves it to the next one, which decides about every workload at its start. It may be repeated.
func (c *coalescer) ensure(ctx context.Context, target facts.Consumer) (err error) {
	key := target.Workload.Key.String()
	c.locks.LockKey(key)
	defer func() { err = errors.Join(err, c.locks.UnlockKey(key)) }()
	present, err := c.requests.get(ctx, target.Workload.Key)
	if err != nil {
		return err
	}
	if present != nil && present.Spec.TargetRef.UID != target.Workload.UID() {
		// It belongs to an earlier workload of that name.
		if err := c.requests.remove(ctx, present); err != nil {
			return err
		}
		present = nil
	}
	if present == nil {
		return c.requests.create(ctx, target.Workload)
	}
	c.rush.expect(target.Workload.Key)
	c.wakeup.wake(target.Workload.Key)
	return nil
}
