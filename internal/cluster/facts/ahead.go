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
)

// Ahead holds Pods and workloads that were read while the change they will be judged by was still being recorded. Each
// reading serves one decision, soon after: a Pod that is replaced meanwhile by a new template makes the stamp void, as it
// does at any time between judgement and stamp.
type Ahead struct {
	clock clock.WithDelayedExecution

	mu       sync.Mutex
	readings map[workload.Key]*reading
}

// reading is what was read about one workload, once done is closed.
type reading struct {
	uid        types.UID
	generation int64
	// changes are those that had been observed before. A later one may concern Pods that are younger than the reading.
	changes freshness.Changes
	done    chan struct{}

	failed error
	pods   []freshness.Pod
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
		read.pods, read.live = g.Facts.Evidence.Pods, g.live
	}
}

// offer keeps a reading until it is taken or too old. It reports false if there is no place for it.
func (a *Ahead) offer(key workload.Key, read *reading) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, kept := a.readings[key]; kept || len(a.readings) >= maxAhead {
		return false
	}
	a.readings[key] = read
	a.clock.AfterFunc(aheadFor, func() { a.drop(key, read) })
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
		!maps.EqualFunc(read.changes, changes, time.Time.Equal) {
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
