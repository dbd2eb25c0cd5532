package controllers

import (
	"sync"
	"time"

	"github.com/kick-dev/kick/internal/cluster/workload"
)

const (
	// rushAbove is how many changes and decisions are under way at the same time in a rush.
	rushAbove = 8
	// mostDelay is how long the restarts of a workload are put off at most. It would otherwise wait for ever where sources
	// never stop changing.
	mostDelay = 5 * time.Second
)

// rush puts restarts off while many changes are being recorded or decided about. Each restart begins a rollout, and rollouts
// take the time that the API server needs for the other changes. What is put off is only the stamp of a restart that is on
// record, as every restart is before.
type rush struct {
	wake func(...workload.Key)

	mu sync.Mutex
	// recording counts the changes whose record is being made.
	recording int
	// deciding are the workloads that will be decided about because of a recorded change.
	deciding map[workload.Key]bool
	waiting  []workload.Key
}

func newRush(wake func(...workload.Key)) *rush {
	return &rush{wake: wake, deciding: map[workload.Key]bool{}}
}

// record is called when the recording of a change begins; what it returns, when that has ended.
func (r *rush) record() (end func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recording++
	return func() { r.proceed(func() { r.recording-- }) }
}

// expect is called for a workload that was queued to be decided about because of a change.
func (r *rush) expect(key workload.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deciding[key] = true
}

// decided is called when it was decided about a workload, whatever came of that.
func (r *rush) decided(key workload.Key) {
	r.proceed(func() { delete(r.deciding, key) })
}

// proceed takes note of something that has ended, and wakes the workloads that wait if the rush is over.
func (r *rush) proceed(ended func()) {
	r.mu.Lock()
	ended()
	var ready []workload.Key
	if !r.on() {
		ready, r.waiting = r.waiting, nil
	}
	r.mu.Unlock()
	r.wake(ready...)
}

// on tells whether there is a rush. The caller holds the lock.
func (r *rush) on() bool { return r.recording+len(r.deciding) > rushAbove }

// delay says for how long a stamp is put off at most where that has been done since some time, zero for not at all. The
// workload is woken when the rush is over.
func (r *rush) delay(key workload.Key, since, now time.Time) time.Duration {
	waited := now.Sub(since)
	if waited < 0 || waited >= mostDelay {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.on() {
		return 0
	}
	r.waiting = append(r.waiting, key)
	return mostDelay - waited
}
