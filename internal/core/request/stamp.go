package request

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/freshness"
)

// maxAttempts is how often a stamp that somebody removes is issued again.
const maxAttempts = 3

// removalPause is the pause before a removed stamp is issued again for the first time; it triples each time.
const removalPause = 10 * time.Second

// restart decides a new stamp. The status is the fence: it is stored, with optimistic concurrency, before the stamp is
// written.
func (m *machine) restart(stale freshness.Changes) Step {
	if block := m.blocked(); block != nil {
		return m.waitForGate(block)
	}
	if !m.facts.Live {
		return Step{Need: NeedLive}
	}
	due := &v1alpha1.Rollout{Stamp: m.newStamp(), StartedAt: metav1.NewMicroTime(m.now)}
	cover(due, m.facts.Changes)
	if m.decided(due) {
		return m.retry()
	}
	if due.Attempts = m.repeats(due); due.Attempts > maxAttempts {
		return m.end(v1alpha1.PhaseFailed, v1alpha1.ReasonStampRemoved, fmt.Sprintf(
			"the annotation %s was removed from the Pod template after each of %d restarts; "+
				"exclude it from what your tool compares or resets", v1alpha1.RestartedAtAnnotation, due.Attempts))
	}
	m.status.CurrentRollout = due
	m.setCauses(stale)
	step := m.wait(v1alpha1.PhaseExecuting, v1alpha1.ReasonStamping, "the restart is decided and being written to the Pod template")
	step.Stamp = m.status.CurrentRollout.Stamp
	return step
}

// decided tells whether the very restart that is due is on record already and was not issued: then its stamp is
// written again, so that a repeated step cannot make two revisions.
func (m *machine) decided(due *v1alpha1.Rollout) bool {
	current := m.status.CurrentRollout
	return m.status.Phase == v1alpha1.PhaseExecuting && current != nil && current.Stamp != "" && !m.stampRemoved() &&
		current.Stamp != m.facts.Stamp && sameCovers(current, due)
}

// retry writes the decided stamp, unless the API server has just refused it.
func (m *machine) retry() Step {
	stamp := m.status.CurrentRollout.Stamp
	if denial := m.facts.Denied; denial.Stamp == stamp && m.now.Before(denial.Until) {
		step := m.wait(v1alpha1.PhaseExecuting, v1alpha1.ReasonRestartDenied, denial.Message)
		step.RecheckAt = denial.Until
		return step
	}
	return Step{Status: m.status, Stamp: stamp}
}

// newStamp is the present time, and never the value that the template carries: an equal one would roll nothing.
func (m *machine) newStamp() string {
	stamp := m.now.UTC().Format(time.RFC3339Nano)
	if stamp == m.facts.Stamp {
		stamp = m.now.UTC().Add(time.Nanosecond).Format(time.RFC3339Nano)
	}
	return stamp
}

// stampRemoved tells whether a stamp that was seen on the template has gone.
func (m *machine) stampRemoved() bool {
	current := m.status.CurrentRollout
	return m.status.Phase == v1alpha1.PhaseExecuting && current != nil && m.issued(current)
}

// resume deals with a stamp that somebody removed: after a pause, which grows each time, the restart is judged again.
func (m *machine) resume() Step {
	current := m.status.CurrentRollout
	pause := removalPause
	for range current.Attempts {
		pause *= 3
	}
	if next := current.StartedAt.Add(pause); m.now.Before(next) {
		step := m.wait(v1alpha1.PhaseExecuting, v1alpha1.ReasonStamping,
			fmt.Sprintf("somebody removed the annotation %s; it is written again if Pods are still stale",
				v1alpha1.RestartedAtAnnotation))
		step.RecheckAt = next
		return step
	}
	return m.advance()
}

// repeats counts how often a restart for the same changes was issued before and its stamp removed.
func (m *machine) repeats(due *v1alpha1.Rollout) int32 {
	current := m.status.CurrentRollout
	if current == nil || current.Stamp == m.facts.Stamp || !m.issued(current) || !sameCovers(current, due) {
		return 0
	}
	return current.Attempts + 1
}

// issued tells whether the stamp of a rollout was on the template at some time.
func (m *machine) issued(rollout *v1alpha1.Rollout) bool {
	return rollout.Stamp != "" && (rollout.Issued || rollout.Stamp == m.facts.Issued)
}

func sameCovers(a, b *v1alpha1.Rollout) bool {
	return equality.Semantic.DeepEqual(a.Covers, b.Covers) && equality.Semantic.DeepEqual(a.CoversThrough, b.CoversThrough)
}
