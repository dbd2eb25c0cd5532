package facts

import (
	"context"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/kick-dev/kick/internal/cluster/source"
	"github.com/kick-dev/kick/internal/cluster/workload"
	"github.com/kick-dev/kick/internal/core/freshness"
	"github.com/kick-dev/kick/internal/core/observation"
	"github.com/kick-dev/kick/internal/core/request"
)

const (
	// maxAhead is how many readings may wait for their decision. More would only be read in vain: a decision that has to
	// wait for many others is made on what it reads itself.
	maxAhead = 4
	// aheadFor is how long a reading may wait for its decision.
	aheadFor = time.Second
	// maxKept is how many readings are kept for a restart that was decided on them and put off.
	maxKept = 2000
	// keptFor is how long they are kept.
	keptFor = 10 * time.Second
)

// Ahead holds what was read about workloads before it is needed: while the change they will be judged by was still being
// recorded, or for a decision that was put off and is made again. Each reading serves one decision, soon after: a Pod that is
// replaced meanwhile by a new template makes the stamp void, as it does at any time between judgement and stamp.
type Ahead struct {
	clock clock.WithDelayedExecution

	mu       sync.Mutex
	readings map[workload.Key]*reading
}

// reading is what was read about one workload, once done is closed.
type reading struct {
	uid        types.UID
	generation int64
	// version of the workload that the reading is good for alone, empty for any of its generation.
	version string
	// changes are those that had been observed before. A later one may concern Pods that are younger than the reading.
	changes freshness.Changes
	done    chan struct{}

	failed error
	pods   []freshness.Pod
	// late tells whether the Pods may be a moment behind.
	late bool
	// live is nil where the workload in the cache will do.
	live *workload.Workload
}

// NewAhead returns an empty memory.
func NewAhead(clock clock.WithDelayedExecution) *Ahead {
	return &Ahead{clock: clock, readings: map[workload.Key]*reading{}}
}

// BeginWith begins a gathering about a workload as if the record of a source were the given one already.
func (g *Gatherer) BeginWith(target *workload.Workload, key source.Key, record observation.Record) *Gathering {
	scopes := *g.Scopes
	scopes.Records = recordsWith{Records: g.Scopes.Records, key: key, record: record}
	expecting := *g
	expecting.Scopes = &scopes
	return expecting.Begin(target)
}

// ReadAhead reads what the decision will need, if that is the Pods, for whoever gathers facts about the workload next. It
// does not matter if it fails: then they are read when they are needed.
func (g *Gathering) ReadAhead(ctx context.Context, need request.Need) {
	if need != request.NeedPods {
		return
	}
	read := &reading{
		uid: g.Workload.UID(), generation: g.Workload.Generation(), changes: g.Facts.Changes, done: make(chan struct{}),
	}
	if !g.Ahead.offer(g.Workload.Key, read) {
		return
	}
	defer close(read.done)
	expecting := *g.Gatherer
	expecting.Ahead = nil // What is read now is not to be waited for.
	g.Gatherer = &expecting
	if _, read.failed = g.supplyPods(ctx); read.failed == nil {
		read.pods, read.late, read.live = g.Facts.Evidence.Pods, g.Facts.Evidence.PodsLate, g.live
	}
}

// Keep holds on to the Pods that a restart was decided on, for the same decision to be made again: about the same changes,
// and about the workload at the same version, which moves with every Pod of it that comes or goes. It reports false if there
// is nothing to keep or no place for it.
func (g *Gathering) Keep() bool {
	if !g.Facts.Evidence.PodsRead || !g.trustsCache() {
		return false
	}
	read := &reading{
		uid: g.Workload.UID(), generation: g.Workload.Generation(), version: g.Workload.Version(), changes: g.Facts.Changes,
		done: make(chan struct{}), pods: g.Facts.Evidence.Pods, late: g.Facts.Evidence.PodsLate,
	}
	close(read.done)
	return g.Ahead.keep(g.Workload.Key, read, maxKept, keptFor)
}

// offer keeps a reading until it is taken or too old. It reports false if there is no place for it.
func (a *Ahead) offer(key workload.Key, read *reading) bool {
	return a.keep(key, read, maxAhead, aheadFor)
}

func (a *Ahead) keep(key workload.Key, read *reading, most int, at time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, kept := a.readings[key]; kept || len(a.readings) >= most {
		return false
	}
	a.readings[key] = read
	a.clock.AfterFunc(at, func() { a.drop(key, read) })
	return true
}

func (a *Ahead) drop(key workload.Key, read *reading) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.readings[key] == read {
		delete(a.readings, key)
	}
}

// take returns the reading about a workload in the state that is judged, made for the changes it is judged by; nil if there is
// none.
func (a *Ahead) take(ctx context.Context, judged *workload.Workload, changes freshness.Changes) *reading {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	read := a.readings[judged.Key]
	delete(a.readings, judged.Key)
	a.mu.Unlock()
	if read == nil || read.uid != judged.UID() || read.generation != judged.Generation() ||
		(read.version != "" && read.version != judged.Version()) || !maps.EqualFunc(read.changes, changes, time.Time.Equal) {
		return nil
	}
	select {
	case <-read.done:
	case <-ctx.Done():
		return nil
	}
	if read.failed != nil {
		return nil
	}
	return read
}
