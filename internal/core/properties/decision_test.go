package properties_test

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/freshness"
	"github.com/kick-dev/kick/internal/core/request"
)

// reconcileWorkload takes the request of a workload a step further.
func (m *manager) reconcileWorkload(key workloadKey) {
	w := m.workloads[key]
	if w == nil {
		return
	}
	present := m.getRequest(request.Name(key.kind, key.name))
	if present != nil && present.Spec.TargetRef.UID != w.uid {
		if !m.removeRequest(present) {
			m.again(key, m.raceDelay())
			return
		}
		present = nil
	}
	g := m.gather(w)
	if present == nil {
		m.consider(g)
		return
	}
	g.trusting = !request.Unsettled(&present.Status, w.id.stamp) || m.rush.putOff[present.UID] == present.ResourceVersion
	g.facts.RequestGeneration, g.facts.Manual = present.Generation, present.Spec.Manual
	if last := present.Status.CurrentRollout; last != nil && last.Stamp != "" &&
		last.Stamp != m.decided[present.UID] && last.Stamp != m.issued[present.UID] {
		delete(m.issued, present.UID) // Another manager has decided since.
	}
	g.facts.Issued, g.facts.Denied = m.issued[present.UID], m.denied[present.UID]
	for {
		now := m.now()
		step := request.Next(present.Status, g.facts, m.settings, now)
		if step.Need == request.NeedNothing {
			m.c.judge.decided(decision{m, present, g.w, g.facts, step, now})
			m.apply(present, g, step, now)
			return
		}
		if !m.supply(g, step.Need) {
			return
		}
	}
}

// gathering collects the facts of a decision about a workload.
type gathering struct {
	w     *snapshot
	facts request.Facts
	// trusting is true where the workload in the cache will do: then it has to be the present one when it is stamped.
	trusting bool
}

func (m *manager) gather(w *snapshot) *gathering {
	g := &gathering{}
	m.refresh(g, w)
	return g
}

func (m *manager) refresh(g *gathering, w *snapshot) {
	g.w = w
	g.facts.Scope = m.scopeOf(w)
	g.facts.Observed = m.observed(w, g.facts.Scope)
	g.facts.Stamp = w.id.stamp
	g.facts.Evidence = freshness.Evidence{CreatedAt: w.created, Rollout: w.rollout()}
}

// supply reads what a decision lacks. It reports false when the workload is gone.
func (m *manager) supply(g *gathering, need request.Need) bool {
	live := m.c.workloads[g.w.key]
	if need != request.NeedRoom {
		m.answered()
		if live == nil || live.uid != g.w.uid {
			return false
		}
	}
	switch need {
	case request.NeedLive:
		if g.trusting {
			g.facts.Live = true
			break
		}
		before, evidence := g.w.generation, g.facts.Evidence
		m.refresh(g, live.snapshot())
		if before == g.w.generation {
			state := g.facts.Evidence.Rollout
			g.facts.Evidence = evidence
			g.facts.Evidence.Rollout = state
		}
		g.facts.Live = true
	case request.NeedRevision:
		g.facts.Evidence.RevisionRead = true
		// A DaemonSet does not name its revision. One that the cache shows late would be given that of its next template.
		if g.w.key.kind != v1alpha1.DaemonSet || live.generation == g.w.generation {
			g.facts.Evidence.Revision = g.w.revision(live)
		}
	case request.NeedPods:
		m.listPods(g, live)
	case request.NeedRoom:
		g.facts.Room = request.Room{Asked: true, Full: m.full(g)}
	case request.NeedNothing:
	}
	return true
}

// listPods lists the Pods of a workload: where the workload in the cache will do and is at rest, first as the API server has
// them in its cache.
func (m *manager) listPods(g *gathering, live *workload) {
	evidence := &g.facts.Evidence
	if g.trusting && !evidence.PodsRead {
		pods, late, found := m.keptPods(g)
		if !found && m.workloads[g.w.key] == g.w && m.c.now.Sub(m.movedAt[g.w.key]) >= restedAfter {
			pods, late, found = live.latePods(), true, true
		}
		if found {
			evidence.Pods, evidence.PodsRead, evidence.PodsLate = pods, true, late
			return
		}
	}
	evidence.Pods, evidence.PodsRead, evidence.PodsLate = live.evidence(), true, false
}

// consider makes a request for a workload that has none, if its Pods are stale.
func (m *manager) consider(g *gathering) {
	for {
		stale, need := request.Warranted(g.facts)
		if need == request.NeedNothing {
			if stale && !m.ensure(g.w, false) {
				m.again(g.w.key, m.raceDelay())
			}
			return
		}
		if !m.supply(g, need) {
			return
		}
	}
}

// apply stores the status of a step and carries out its action.
func (m *manager) apply(present *v1alpha1.KickRequest, g *gathering, step request.Step, now time.Time) {
	key := g.w.key
	if step.Delete {
		if !m.removeRequest(present) {
			m.again(key, m.raceDelay())
		}
		return
	}
	stored := present
	if !equality.Semantic.DeepEqual(present.Status, step.Status) {
		if stored = m.saveStatus(present, step.Status); stored == nil {
			m.again(key, m.raceDelay())
			return
		}
		m.freed(present, stored)
	}
	delete(m.timers, key)
	if step.Stamp != "" {
		m.decided[stored.UID] = step.Stamp
	} else {
		m.endPutOff(stored.UID)
	}
	switch {
	case step.Stamp != "" && m.putsOff(stored, g, now):
	case step.Stamp != "":
		m.endPutOff(stored.UID)
		m.stamp(stored, g, step.Stamp, now)
	case !step.RecheckAt.IsZero():
		m.setTimer(key, step.RecheckAt.Sub(now))
	}
}

// stamp writes the stamp to the workload, if that is still the one that was judged.
func (m *manager) stamp(stored *v1alpha1.KickRequest, g *gathering, value string, decidedAt time.Time) {
	m.durable("stamp")
	live := m.c.workloads[g.w.key]
	switch {
	case live == nil || live.uid != g.w.uid:
		m.again(g.w.key, m.raceDelay())
	case m.c.denies:
		m.denied[stored.UID] = request.Denial{Stamp: value, Message: "forbidden", Until: m.now().Add(denialPause)}
		m.again(g.w.key, time.Millisecond)
	case live.spec.id != g.w.id || live.spec.paused != g.w.paused:
		m.again(g.w.key, m.raceDelay())
	case g.trusting && live.version != g.w.version && !live.snapshot().sameForDecision(g.w):
		m.again(g.w.key, m.raceDelay())
	default:
		m.c.judge.stamps(stamping{m, live, stored, g.w, g.facts, value, decidedAt})
		live.respec(func(s *workloadSpec) { s.id.stamp = value })
		m.issued[stored.UID] = value
		delete(m.denied, stored.UID)
		m.setTimer(g.w.key, m.settings.RolloutDeadline)
	}
}

// sameForDecision tells whether a workload is still what the cache shows, in all that a decision about a restart looks at.
func (s *snapshot) sameForDecision(cached *snapshot) bool {
	now, then := s.rollout(), cached.rollout()
	now.RevisedBy, now.Message, then.RevisedBy, then.Message = time.Time{}, "", time.Time{}, ""
	return s.generation == cached.generation && maps.Equal(s.labels, cached.labels) && now == then
}

// full tells whether as many workloads are restarting as the policies permit.
func (m *manager) full(g *gathering) string {
	for _, p := range g.facts.Scope.Policies {
		if p.MaxConcurrent > 0 && len(m.restarting(p.Name, g.w.key)) >= p.MaxConcurrent {
			return "as many as policy " + p.Name + " permits"
		}
	}
	return ""
}

// restarting lists the other workloads under a policy that hold a slot.
func (m *manager) restarting(policyName string, but workloadKey) []workloadKey {
	var held []workloadKey
	for _, key := range m.workloadKeys() {
		r := m.getRequest(request.Name(key.kind, key.name))
		if key == but || r == nil || !holdsSlot(&r.Status) {
			continue
		}
		for _, name := range m.scopeOf(m.workloads[key]).Names() {
			if name == policyName {
				held = append(held, key)
			}
		}
	}
	return held
}

func holdsSlot(s *v1alpha1.KickRequestStatus) bool {
	reason := reasonOf(s)
	return s.Phase == v1alpha1.PhaseExecuting && (reason == v1alpha1.ReasonStamping || reason == v1alpha1.ReasonRollingOut)
}

// freed wakes who waits for a slot when one becomes free.
func (m *manager) freed(before, after *v1alpha1.KickRequest) {
	if !holdsSlot(&before.Status) || holdsSlot(&after.Status) {
		return
	}
	for _, key := range m.workloadKeys() {
		if r := m.getRequest(request.Name(key.kind, key.name)); r != nil && reasonOf(&r.Status) == v1alpha1.ReasonConcurrencyLimit {
			m.wakeWorkload(key)
		}
	}
}
