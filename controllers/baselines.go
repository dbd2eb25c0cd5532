package controllers

import (
	"context"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/keymutex"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kick-dev/kick/internal/cluster/facts"
	"github.com/kick-dev/kick/internal/cluster/ledger"
	"github.com/kick-dev/kick/internal/cluster/servertime"
	"github.com/kick-dev/kick/internal/cluster/source"
	"github.com/kick-dev/kick/internal/core/deps"
	"github.com/kick-dev/kick/internal/core/observation"
	"github.com/kick-dev/kick/internal/core/policy"
	"github.com/kick-dev/kick/internal/report"
)

const (
	// maxBaselines is about how many sources get their first record together at most: what a crash would repeat.
	maxBaselines = 500
	// baselineReads is how many sources of one namespace are read at the same time.
	baselineReads = 8
	// baselineLocks is for how many namespaces first records can be made at the same time.
	baselineLocks = 64
)

// baselines makes the first records of sources: of all in a namespace together. They come together, with a policy or a
// release; one by one they would cost as many writes of the ledger, and a workload would be judged once for each of its
// sources.
type baselines struct {
	scopes  *facts.Scopes
	sources *source.Reader
	ledger  *ledger.Store
	clock   *servertime.Clock
	metrics *report.Metrics
	wakeup  *waker[source.Key]
	locks   keymutex.KeyMutex
}

func newBaselines(s *shell) *baselines {
	return &baselines{
		scopes: s.scopes, sources: s.sources, ledger: s.ledger, clock: s.options.Clock, metrics: s.metrics,
		wakeup: s.wakeSource, locks: keymutex.NewHashed(baselineLocks),
	}
}

// take makes the first record of a source and of the others in its namespace that have none. One that cannot be read
// is left out: its own turn says why.
func (b *baselines) take(ctx context.Context, key source.Key) (err error) {
	b.locks.LockKey(key.Namespace)
	defer func() { err = errors.Join(err, b.locks.UnlockKey(key.Namespace)) }()
	if b.ledger.Get(key) != nil {
		return nil // It was among those of another source.
	}
	keys, err := b.lacking(ctx, key)
	if err != nil {
		return err
	}
	records := b.read(ctx, keys)
	if len(records) == 0 {
		return nil
	}
	if err := b.ledger.PutAll(ctx, key.Namespace, records); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("observed sources for the first time", "sources", len(records))
	b.wakeup.wake(keys...) // Each is delivered in its own turn.
	return nil
}

// lacking lists the source and others of its namespace that exist, that some policy covers, and that have no record.
func (b *baselines) lacking(ctx context.Context, key source.Key) ([]source.Key, error) {
	policies, err := b.scopes.Policies(ctx, key.Namespace)
	if err != nil {
		return nil, err
	}
	workloads, err := b.scopes.Workloads.InNamespace(ctx, key.Namespace)
	if err != nil {
		return nil, err
	}
	keys, listed := []source.Key{key}, map[deps.Source]bool{key.Source: true}
	for _, w := range workloads {
		if len(keys) >= maxBaselines {
			break
		}
		more, err := b.lackingOf(ctx, facts.Consumer{Workload: w, Scope: policy.ScopeOf(policies, w.Labels())}, listed)
		if err != nil {
			return nil, err
		}
		keys = append(keys, more...)
	}
	return keys, nil
}

// lackingOf lists the sources of one workload that lack a record, and marks them as listed.
func (b *baselines) lackingOf(ctx context.Context, c facts.Consumer, listed map[deps.Source]bool) ([]source.Key, error) {
	if !c.Scope.Managed() {
		return nil, nil
	}
	var keys []source.Key
	for _, reference := range c.Workload.References() {
		key := source.Key{Namespace: c.Workload.Key.Namespace, Source: reference.Source}
		if listed[key.Source] || b.ledger.Get(key) != nil {
			continue
		}
		metadata, err := b.sources.Metadata(ctx, key)
		if err != nil {
			return nil, err
		}
		if metadata != nil && c.Scope.AdmitsSource(labels.Set(metadata.Labels)) {
			listed[key.Source] = true
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// read reads sources and makes records of those that can be.
func (b *baselines) read(ctx context.Context, keys []source.Key) map[deps.Source]observation.Record {
	var (
		group   sync.WaitGroup
		mu      sync.Mutex
		slots   = make(chan struct{}, baselineReads)
		records = map[deps.Source]observation.Record{}
		under   = b.ledger.Key()
	)
	for _, key := range keys {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			b.metrics.SourceRead()
			sight, found, err := b.sources.Sight(ctx, key, under, "")
			if err != nil || !found {
				return
			}
			record, result := observation.Observe(nil, sight, b.clock.Now())
			b.metrics.Observed(result)
			mu.Lock()
			defer mu.Unlock()
			records[key.Source] = record
		})
	}
	group.Wait()
	return records
}
