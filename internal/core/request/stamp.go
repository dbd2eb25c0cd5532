package request

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/freshness"
	"github.com/kick-dev/kick/internal/core/gate"
)

// maxAttempts is how often a stamp that somebody removes is issued again.
const maxAttempts = 3

// removalPause is the pause before a removed stamp is issued again for the first time; it triples each time.
const removalPause = 10 * time.Second

// restart decides a new stamp. The status is the fence: it is stored, with optimistic concurrency, before the stamp is
// written.
func (m *machine) restart(stale freshness.Changes) Step {
	// What holds back every restart is asked first, as advance does: a request that waits has to say the same at each look.
	for _, m.stale = range []bool{false, true} {
		if block := m.blocked(); block != nil {
			return m.waitForGate(block)
		}
	}
	switch {
	case m.facts.Evidence.Rollout.Paused:
		return m.waitForResume()
	case len(m.facts.Unread) > 0:
		return m.waitForReads()
	case !m.facts.Live:
		return Step{Need: NeedLive}
	case !m.facts.Room.Asked:
		return Step{Need: NeedRoom}
	}
	due := m.due()
	if m.decided(due) {
		return m.retry()
	}
	if due.Attempts = m.repeats(due); due.Attempts > maxAttempts {
		return m.end(v1alpha1.PhaseFailed, v1alpha1.ReasonStampRemoved, fmt.Sprintf(
			"the annotation %s was removed from the Pod template %d times, which was last written by %s; "+
				"exclude it from what that tool compares or resets", v1alpha1.RestartedAtAnnotation, due.Attempts, m.remover()))
	}
	m.setCauses(stale)
	m.status.CurrentRollout = due
	step := m.wait(v1alpha1.PhaseExecuting, v1alpha1.ReasonStamping, "the restart is decided and being written to the Pod template")
	step.Stamp = m.status.CurrentRollout.Stamp
	return step
}

// readPause is the pause before a decision is made again that waits for a source to be read. Mostly it is woken before.
const readPause = time.Second

// waitForReads puts a restart off until all sources are read: one of them may have changed too, or lack a key that new Pods
// need.
func (m *machine) waitForReads() Step {
	step := m.waitWith(v1alpha1.PhasePending, v1alpha1.ReasonProgressing, "reading "+strings.Join(m.facts.Unread, ", "))
	step.RecheckAt = m.now.Add(readPause)
	return step
}

// due is the rollout that a restart decided now would begin.
func (m *machine) due() *v1alpha1.Rollout {
	due := &v1alpha1.Rollout{Stamp: m.newStamp(), StartedAt: metav1.NewMicroTime(m.now), Manual: m.asked()}
	cover(due, m.facts.Changes)
	last := m.lastRestart()
	due.Streak = last.Streak
	if open := Uncovered(&m.status, m.facts.Changes); len(open) > 0 && !m.asked() {
		due.Streak = last.NextStreak(m.facts.Scope.MinInterval(), m.firstChange(last))
	}
	return due
}

// firstChange is when the first change after a restart came: when the request was opened, or during the restart if it
// was not closed since. The change times on record do not tell, each being that of the last change of its source.
func (m *machine) firstChange(last gate.Restart) time.Time {
	if since := m.since(); since.After(last.At) {
		return since
	}
	return last.At
}

// remover names who probably removed the stamp. The API server does not say who removed a field; it says who else wrote to
// the template.
func (m *machine) remover() string {
	if m.facts.TemplateWriter == "" {
		return "a field manager that the API server does not name"
	}
	return m.facts.TemplateWriter
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

// takeBack follows the restart whose stamp was removed, and is back on the template before it is written again with another
// value: its changes have their restart.
func (m *machine) takeBack() {
	current := m.status.CurrentRollout
	again := m.status.Phase == v1alpha1.PhaseExecuting && current != nil && current.Attempts > 0 && !m.issued(current)
	if again && m.facts.Stamp != "" && m.facts.Stamp == m.facts.Issued {
		current.Stamp, current.Issued = m.facts.Stamp, true
	}
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

// resume deals with a stamp that somebody removed: after a pause, which grows each time, the restart is judged again. There
// is nothing to wait for when it would be given up.
func (m *machine) resume() Step {
	current := m.status.CurrentRollout
	pause := removalPause
	for range current.Attempts {
		pause *= 3
	}
	if next := current.StartedAt.Add(pause); current.Attempts < maxAttempts && m.now.Before(next) {
		step := m.wait(v1alpha1.PhaseExecuting, v1alpha1.ReasonStamping,
			fmt.Sprintf("the annotation %s was removed from the Pod template, which was last written by %s; "+
				"it is written again if Pods are still stale", v1alpha1.RestartedAtAnnotation, m.remover()))
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
