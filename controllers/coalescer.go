package controllers

import (
	"context"
	"errors"

	"k8s.io/utils/keymutex"

	"github.com/kick-dev/kick/internal/cluster/facts"
	"github.com/kick-dev/kick/internal/cluster/servertime"
	"github.com/kick-dev/kick/internal/cluster/workload"
	"github.com/kick-dev/kick/internal/core/request"
)

// coalescer sees to it that a workload whose sources changed has one open request: ensure(w, θ), §10 of the model.
type coalescer struct {
	scopes   *facts.Scopes
	requests *requests
	clock    *servertime.Clock
	wakeup   *waker[workload.Key]
	// locks keep two sources that changed together from making the request of one workload at the same time.
	locks keymutex.KeyMutex
}

// ensure creates the request of a consumer or opens it again, and returns when that is durable. It may be repeated.
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
	observed, err := c.scopes.Observed(ctx, target.Workload, target.Scope)
	if err != nil {
		return err
	}
	if status, changed := request.Reopen(present.Status, observed, c.clock.Now()); changed {
		if _, err := c.requests.saveStatus(ctx, present, status); err != nil {
			return err
		}
	}
	c.wakeup.wake(target.Workload.Key)
	return nil
}
