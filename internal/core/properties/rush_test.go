package properties_test

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/freshness"
)

// rush is what a manager knows of restarts that it puts off while many changes are being recorded. In the model such times
// simply come.
type rush struct {
	on      bool
	waiting []workloadKey
	putOff  map[types.UID]string
	since   map[types.UID]time.Time
	kept    map[workloadKey]keptPods
}

// keptPods are the Pods that a restart was decided on which is put off.
type keptPods struct {
	version int
	changes freshness.Changes
	pods    []freshness.Pod
	late    bool
	at      time.Time
}

func newRush() rush {
	return rush{putOff: map[types.UID]string{}, since: map[types.UID]time.Time{}, kept: map[workloadKey]keptPods{}}
}

// putsOff puts a restart on record off in a rush. It reports false where the stamp has to be written now.
func (m *manager) putsOff(stored *v1alpha1.KickRequest, g *gathering, now time.Time) bool {
	since, waits := m.rush.since[stored.UID]
	if !waits {
		since = now
	}
	waited := now.Sub(since)
	if !m.rush.on || waited < 0 || waited >= mostDelay || !g.trusting || !g.facts.Evidence.PodsRead {
		return false
	}
	m.rush.kept[g.w.key] = keptPods{g.w.version, g.facts.Changes, g.facts.Evidence.Pods, g.facts.Evidence.PodsLate, m.c.now}
	m.rush.putOff[stored.UID], m.rush.since[stored.UID] = stored.ResourceVersion, since
	m.rush.waiting = append(m.rush.waiting, g.w.key)
	m.setTimer(g.w.key, mostDelay-waited)
	m.c.judge.counts[delayed]++
	return true
}

// endPutOff is called before a stamp is written, and when something else was decided than a restart.
func (m *manager) endPutOff(request types.UID) {
	delete(m.rush.putOff, request)
	delete(m.rush.since, request)
}

// keptPods are the Pods as they were when the restart was decided that was put off, if they still count.
func (m *manager) keptPods(g *gathering) (pods []freshness.Pod, late, found bool) {
	kept, known := m.rush.kept[g.w.key]
	delete(m.rush.kept, g.w.key)
	if known && kept.version == g.w.version && m.c.now.Sub(kept.at) < keptFor &&
		maps.EqualFunc(kept.changes, g.facts.Changes, time.Time.Equal) {
		return kept.pods, kept.late, true
	}
	return nil, false, false
}

// rush lets many changes be recorded elsewhere for a while.
func (m *machine) rush(t *rapid.T) func() {
	lasts := time.Duration(rapid.SampledFrom([]int{300, 2000, 4900, 60000}).Draw(t, "lasts")) * time.Millisecond
	return func() {
		for _, leader := range m.c.managers {
			leader.rush.on = true
			leader.later(lasts, func() {
				leader.rush.on = false
				for _, key := range leader.rush.waiting {
					leader.wakeWorkload(key)
				}
				leader.rush.waiting = nil
				leader.work()
			})
		}
	}
}
