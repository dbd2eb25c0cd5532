package controllers

import (
	"context"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kick-dev/kick/internal/cluster/ledger"
)

const (
	// flushDelay is how long a delivered change stays marked as pending in the ledger, waiting for company. A crash in between
	// repeats the delivery, which changes nothing.
	flushDelay = 3 * time.Second
	// longestFlushDelay is how long it waits for company that keeps coming.
	longestFlushDelay = 15 * time.Second
)

// shutdownFlush bounds the last flush.
const shutdownFlush = 3 * time.Second

// flusher writes delivered changes to the ledger, many at a time.
type flusher struct {
	ledger *ledger.Store
	clock  clock.Clock
	due    chan struct{}
}

func newFlusher(store *ledger.Store, clock clock.Clock) *flusher {
	return &flusher{ledger: store, clock: clock, due: make(chan struct{}, 1)}
}

// schedule asks for a flush.
func (f *flusher) schedule() {
	select {
	case f.due <- struct{}{}:
	default: // One is due already.
	}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: only the leader writes the ledger.
func (f *flusher) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable.
func (f *flusher) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-f.due:
		}
		if !f.gather(ctx) {
			return f.flushLast(ctx)
		}
		if err := f.ledger.Flush(ctx); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "flush the ledger; will be tried again")
			f.schedule()
		}
	}
}

// gather waits until no more changes are delivered. It reports false at the shutdown.
func (f *flusher) gather(ctx context.Context) bool {
	enough, longest := f.clock.After(flushDelay), f.clock.After(longestFlushDelay)
	for {
		select {
		case <-ctx.Done():
			return false
		case <-f.due:
			enough = f.clock.After(flushDelay)
		case <-enough:
			return true
		case <-longest:
			return true
		}
	}
}

// flushLast writes what is due at the shutdown, while this replica still leads.
func (f *flusher) flushLast(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownFlush)
	defer cancel()
	return f.ledger.Flush(ctx)
}
