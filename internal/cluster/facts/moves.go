package facts

import (
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/kick-dev/kick/internal/cluster/workload"
)

// restedAfter is for how long a workload has not moved that is at rest. It is far more than the cache of an API server is
// behind.
const restedAfter = 5 * time.Second

// Moves remembers when workloads moved, as watches tell it. Pods that come, go, or get ready move the status of their workload:
// those of one that is at rest are the same in a list that is a moment behind.
type Moves struct {
	clock clock.PassiveClock

	mu   sync.Mutex
	seen map[workload.Key]move
}

// move is when a version of a workload was seen first.
type move struct {
	version string
	at      time.Time
}

// NewMoves returns an empty memory.
func NewMoves(clock clock.PassiveClock) *Moves {
	return &Moves{clock: clock, seen: map[workload.Key]move{}}
}

// Saw takes note of a workload that a watch has told of.
func (m *Moves) Saw(w *workload.Workload) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if last, known := m.seen[w.Key]; !known || last.version != w.Version() {
		m.seen[w.Key] = move{w.Version(), m.clock.Now()}
	}
}

// Forget drops what is remembered of a workload that is gone.
func (m *Moves) Forget(key workload.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.seen, key)
}

// rested tells whether a workload is known to be at rest, in the version given.
func (m *Moves) rested(w *workload.Workload) bool {
	if m == nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	last, known := m.seen[w.Key]
	return known && last.version == w.Version() && m.clock.Since(last.at) >= restedAfter
}
