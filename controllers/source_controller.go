package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kick-dev/kick/internal/cluster/facts"
	"github.com/kick-dev/kick/internal/cluster/ledger"
	"github.com/kick-dev/kick/internal/cluster/servertime"
	"github.com/kick-dev/kick/internal/cluster/source"
	"github.com/kick-dev/kick/internal/cluster/workload"
	"github.com/kick-dev/kick/internal/core/fingerprint"
	"github.com/kick-dev/kick/internal/core/observation"
	"github.com/kick-dev/kick/internal/report"
)

// fanOut bounds how many requests one change makes at the same time.
const fanOut = 16

// sourceReconciler observes sources and delivers their changes: record the change durably, then give every consumer
// its request, then mark the change as delivered. A crash at any point repeats the delivery with the same change time.
type sourceReconciler struct {
	scopes    *facts.Scopes
	sources   *source.Reader
	ledger    *ledger.Store
	coalescer *coalescer
	clock     *servertime.Clock
	flusher   *flusher
	metrics   *report.Metrics
	baselines *baselines
	rush      *rush
	// foresee is called while the record of a change is being written, for a consumer that will be decided about after it.
	foresee func(context.Context, workload.Key, source.Key, observation.Record)
	// sweep queues every source on record once, so that records of sources that went while no replica led are found.
	sweep *waker[source.Key]
	swept sync.Once

	// fingerprintKey is the Secret that holds the key of the fingerprints.
	fingerprintKey source.Key
}

// Reconcile implements reconcile.TypedReconciler.
func (r *sourceReconciler) Reconcile(ctx context.Context, key source.Key) (ctrl.Result, error) {
	if err := r.ledger.Load(ctx); err != nil {
		return ctrl.Result{}, err
	}
	r.swept.Do(func() { r.sweep.wake(r.scopes.Inside(r.ledger.Keys())...) })
	metadata, err := r.sources.Metadata(ctx, key)
	if err != nil {
		return ctrl.Result{}, err
	}
	if key == r.fingerprintKey {
		return ctrl.Result{}, r.keepKey(ctx, metadata)
	}
	if metadata != nil && r.settled(key, metadata) {
		return ctrl.Result{}, nil
	}
	consumers, err := r.scopes.Consumers(ctx, key)
	if err != nil {
		return ctrl.Result{}, err
	}
	if metadata == nil {
		// The record of a deleted source is kept for its return, as long as somebody waits for it.
		if len(consumers) == 0 {
			return ctrl.Result{}, r.ledger.Forget(ctx, key)
		}
		return ctrl.Result{}, nil
	}
	consumers = admitting(consumers, labels.Set(metadata.Labels))
	if len(consumers) == 0 {
		return ctrl.Result{}, nil // Nobody's source is never read.
	}
	record, err := r.observe(ctx, key, metadata, consumers)
	if err != nil || record == nil || !record.Pending {
		return ctrl.Result{}, err
	}
	return r.deliver(ctx, key, *record, r.concerned(key, metadata, record, consumers))
}

// keepKey sees to the key of the fingerprints when its Secret changes. Under another key every source on record is
// observed again at once: a change that came unseen in between could not be told from the new key later.
func (r *sourceReconciler) keepKey(ctx context.Context, metadata *metav1.PartialObjectMetadata) error {
	version := ""
	if metadata != nil {
		version = metadata.ResourceVersion
	}
	fate, err := r.ledger.KeepKey(ctx, version)
	if err != nil {
		return err
	}
	switch fate {
	case ledger.KeyRestored:
		ctrl.LoggerFrom(ctx).Info("the Secret of the fingerprint key was deleted and is restored")
	case ledger.KeyReplaced:
		ctrl.LoggerFrom(ctx).Info("the fingerprint key was replaced; every source is taken anew, without restarts")
		r.sweep.wake(r.scopes.Inside(r.ledger.Keys())...)
	case ledger.KeyKept:
	}
	return nil
}

// concerned leaves out the consumers of other keys than those that changed last. They are decided about all the same, in
// case an earlier change of theirs was not delivered before this one came.
func (r *sourceReconciler) concerned(
	key source.Key, metadata *metav1.PartialObjectMetadata, record *observation.Record, consumers []facts.Consumer,
) []facts.Consumer {
	var concerned []facts.Consumer
	for _, c := range consumers {
		reference, _ := c.Workload.Reference(key.Source)
		if changedAt, _ := facts.ChangeFor(c.Scope, reference, metadata, record); changedAt.Equal(record.ChangedAt) {
			concerned = append(concerned, c)
			continue
		}
		r.coalescer.wakeup.wake(c.Workload.Key)
	}
	return concerned
}

func admitting(consumers []facts.Consumer, source labels.Set) []facts.Consumer {
	var admitted []facts.Consumer
	for _, c := range consumers {
		if c.Scope.AdmitsSource(source) {
			admitted = append(admitted, c)
		}
	}
	return admitted
}

// maxForeseen is for how many consumers of a change it is worthwhile to read ahead: the others of more would have to wait.
const maxForeseen = 4

// observe brings the record of a source up to date, reading the source only if its version is not the recorded one.
// It returns nil if the source is gone.
func (r *sourceReconciler) observe(
	ctx context.Context, key source.Key, metadata *metav1.PartialObjectMetadata, consumers []facts.Consumer,
) (*observation.Record, error) {
	if r.ledger.Get(key) == nil {
		if err := r.baselines.take(ctx, key); err != nil {
			return nil, err
		}
	}
	record, under := r.ledger.Get(key), r.ledger.Key()
	if record != nil && record.ResourceVersion == metadata.ResourceVersion && current(record, under) {
		return record, nil
	}
	defer r.rush.record()()
	r.metrics.SourceRead()
	recorded := ""
	if record != nil {
		recorded = record.ResourceVersion
	}
	sight, found, err := r.sources.Sight(ctx, key, under, recorded)
	if err != nil || !found {
		return nil, err
	}
	next, result := observation.Observe(record, sight, r.clock.Now())
	r.metrics.Observed(result)
	switch result {
	case observation.NoChange, observation.MetaOnly:
		r.ledger.Note(key, *record, next)
		return &next, nil
	default:
		ctrl.LoggerFrom(ctx).Info("observed a source", "result", result, "changedAt", next.ChangedAt)
		if len(consumers) <= maxForeseen {
			for _, c := range consumers {
				go r.foresee(ctx, c.Workload.Key, key, next)
			}
		}
		return &next, r.ledger.Put(ctx, key, record, next)
	}
}

// settled tells whether a source was observed at its present version and its last change has reached every consumer. It costs
// nothing: every restart of a consumer comes by here, and listing all consumers each time would be a square of work.
func (r *sourceReconciler) settled(key source.Key, metadata *metav1.PartialObjectMetadata) bool {
	record := r.ledger.Get(key)
	return record != nil && !record.Pending && record.ResourceVersion == metadata.ResourceVersion && current(record, r.ledger.Key())
}

// current tells whether the record was made as records are made now.
func current(record *observation.Record, under fingerprint.Key) bool {
	return record.KeyID == under.ID && record.Encoding == fingerprint.Encoding
}

// deliver gives every consumer its request. One that fails neither delays nor repeats the others; the change stays
// pending until all have succeeded.
func (r *sourceReconciler) deliver(
	ctx context.Context, key source.Key, record observation.Record, consumers []facts.Consumer,
) (ctrl.Result, error) {
	var (
		group sync.WaitGroup
		slots = make(chan struct{}, fanOut)
		fails = make([]error, len(consumers))
	)
	for i := range consumers {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			fails[i] = r.coalescer.ensure(ctx, consumers[i])
		})
	}
	group.Wait()
	races := slices.ContainsFunc(fails, lostRace)
	fails = slices.DeleteFunc(fails, lostRace) // Only those that say something are worth a line in the log.
	if err := errors.Join(fails...); err != nil {
		return ctrl.Result{}, fmt.Errorf("deliver the change of %s: %w", key, err)
	}
	if races {
		return ctrl.Result{RequeueAfter: raceDelay}, nil
	}
	delivered := record
	delivered.Pending = false
	r.ledger.Note(key, record, delivered)
	r.flusher.schedule()
	return ctrl.Result{}, nil
}
