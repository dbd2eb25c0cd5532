package request

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/freshness"
	"github.com/kick-dev/kick/internal/core/gate"
)

// clockGlance is the longest sleep while an instant is waited for.
const clockGlance = time.Minute

// machine carries one decision from the stored status to the next.
type machine struct {
	status   v1alpha1.KickRequestStatus
	facts    Facts
	settings Settings
	now      time.Time
	// stale is true once Pods are known to be stale.
	stale bool
}

func (m *machine) run() Step {
	if m.status.Phase.Terminal() {
		open := Uncovered(&m.status, m.facts.Changes)
		if len(open) == 0 || !m.facts.Scope.Managed() {
			return m.retain()
		}
		m.open(open)
	}
	if m.inFlight() {
		return m.watch()
	}
	if m.status.Phase == v1alpha1.PhaseExecuting && !m.facts.Live {
		// A cache may simply not show the stamp yet.
		return Step{Need: NeedLive}
	}
	if m.stampRemoved() {
		return m.resume()
	}
	return m.advance()
}

// retain keeps a terminal request for its time and then deletes it.
func (m *machine) retain() Step {
	if m.status.CompletedAt == nil {
		return Step{Status: m.status}
	}
	end := m.status.CompletedAt.Add(m.settings.TTL)
	return Step{Status: m.status, Delete: !m.now.Before(end), RecheckAt: end}
}

// inFlight tells whether the template carries the stamp of the rollout that the request drives: μ ≠ ⊥. That the stamp
// was issued is read from the template and never inferred from the status.
func (m *machine) inFlight() bool {
	current := m.status.CurrentRollout
	return m.status.Phase == v1alpha1.PhaseExecuting && current != nil &&
		current.Stamp != "" && current.Stamp == m.facts.Stamp
}

// carried are the changes that Pods with the present template provably carry, because KICK issued its stamp.
func (m *machine) carried() freshness.Coverage {
	current := m.status.CurrentRollout
	if current == nil || current.Stamp == "" || current.Stamp != m.facts.Stamp {
		return freshness.Coverage{}
	}
	return coverageOf(current)
}

// watch follows the rollout in flight to its end.
func (m *machine) watch() Step {
	if !m.status.CurrentRollout.Issued {
		m.status.CurrentRollout.Issued = true
		m.status.CurrentRollout.StartedAt = metav1.NewMicroTime(m.now)
	}
	rollout := m.facts.Evidence.Rollout
	if !rollout.Manual && m.awaitedReplacement() {
		m.status.CurrentRollout.StartedAt = metav1.NewMicroTime(m.now) // The strategy has changed, and Pods are replaced from now on.
	}
	deadline := m.status.CurrentRollout.StartedAt.Add(m.rolloutDeadline())
	switch {
	case rollout.Manual && rollout.Complete:
		return m.watchManual()
	case rollout.Manual:
		// Pods are being replaced. How long that takes is up to whoever does it, so there is no deadline.
		return m.wait(v1alpha1.PhaseExecuting, v1alpha1.ReasonRollingOut, rollout.Message)
	case rollout.Complete:
		return m.settle(v1alpha1.PhaseSucceeded)
	case rollout.Failed:
		return m.overtake(v1alpha1.ReasonRolloutFailed, "the Deployment exceeded its progress deadline: "+rollout.Message)
	case !rollout.Paused && !m.now.Before(deadline):
		return m.overdue(rollout.Message)
	case rollout.Paused:
		return m.wait(v1alpha1.PhaseExecuting, v1alpha1.ReasonPaused,
			"the restart is on the Pod template of a paused Deployment; it goes on when the Deployment is resumed")
	default:
		return m.rollOut(rollout.Message, deadline)
	}
}

// awaitedReplacement tells whether Pods were last waited for that somebody was to replace by hand.
func (m *machine) awaitedReplacement() bool {
	ready := meta.FindStatusCondition(m.status.Conditions, v1alpha1.ConditionReady)
	return ready != nil && ready.Reason == v1alpha1.ReasonAwaitingManualReplacement
}

// overdue deals with a restart that is not complete at its deadline. Somebody may have changed the template after the stamp,
// which begins another rollout, with all its time.
func (m *machine) overdue(progress string) Step {
	if !m.facts.Evidence.RevisionRead {
		return Step{Need: NeedRevision}
	}
	revision := m.facts.Evidence.Revision
	if revision == nil {
		// The workload controller has yet to see the template: the rollout has not even begun.
		return m.rollOut(progress, m.now.Add(clockGlance))
	}
	if deadline := revision.CreatedAt.Add(m.rolloutDeadline()); m.now.Before(deadline) {
		return m.rollOut(progress, deadline)
	}
	return m.overtake(v1alpha1.ReasonRolloutDeadlineExceeded,
		fmt.Sprintf("the rollout is not complete after %s: %s", m.rolloutDeadline(), progress))
}

// quickRollout is how long the progress of a rollout is not told. Most rollouts end before, and of those each step
// would cost a write that nobody has the time to read.
const quickRollout = 30 * time.Second

// rollOut waits for the Pods to be replaced, and says how far that is once it takes long.
func (m *machine) rollOut(progress string, deadline time.Time) Step {
	slow := m.status.CurrentRollout.StartedAt.Add(quickRollout)
	if m.now.Before(slow) && slow.Before(deadline) {
		step := m.wait(v1alpha1.PhaseExecuting, v1alpha1.ReasonRollingOut, "the Pods are being replaced")
		step.RecheckAt = slow
		return step
	}
	step := m.wait(v1alpha1.PhaseExecuting, v1alpha1.ReasonRollingOut, progress)
	step.RecheckAt = deadline
	return step
}

// watchManual follows a rollout whose Pods somebody else replaces. Pods that come later start from the present content
// anyway, so a change during the wait needs no further stamp.
func (m *machine) watchManual() Step {
	evidence := m.facts.Evidence
	evidence.Carried = freshness.Coverage{} // Pods with the older template are still running.
	// What the stamp is about is waited for even if no policy asks for it any more, or if the records of this replica are
	// behind those of another one.
	changes := m.facts.Changes.And(coverageOf(m.status.CurrentRollout).Changes)
	switch freshness.Judge(changes, evidence).Outcome {
	case freshness.NeedsRevision:
		return Step{Need: NeedRevision}
	case freshness.NeedsPods:
		return Step{Need: NeedPods}
	case freshness.Stale:
		return m.wait(v1alpha1.PhaseExecuting, v1alpha1.ReasonAwaitingManualReplacement,
			"stamped, waiting for manual Pod replacement: the update strategy is OnDelete")
	default:
		return m.end(v1alpha1.PhaseSucceeded, v1alpha1.ReasonSucceeded, "every Pod was replaced and carries the change")
	}
}

// overtake ends a rollout that does not complete: in another restart if a change came after it, since that may be
// what mends it, and in failure otherwise.
func (m *machine) overtake(reason, message string) Step {
	verdict := freshness.JudgeTemplate(m.facts.Changes, m.facts.Evidence)
	switch verdict.Outcome {
	case freshness.NeedsRevision:
		return Step{Need: NeedRevision}
	case freshness.Stale:
		return m.restart(verdict.Stale)
	default:
		return m.end(v1alpha1.PhaseFailed, reason, message)
	}
}

// advance takes a request without a rollout in flight through gate, rollout and freshness, in that order.
func (m *machine) advance() Step {
	if !m.facts.Scope.Managed() {
		return m.end(v1alpha1.PhaseNoLongerRequired, v1alpha1.ReasonNotManaged, "no policy selects the workload")
	}
	if len(m.facts.Changes) == 0 && m.facts.Unobserved {
		return m.wait(v1alpha1.PhasePending, v1alpha1.ReasonProgressing, "the sources are being read")
	}
	if len(m.facts.Changes) == 0 {
		return m.end(v1alpha1.PhaseNoLongerRequired, v1alpha1.ReasonNotManaged,
			"the workload consumes no source that a policy covers")
	}
	if open := Uncovered(&m.status, m.facts.Changes); len(open) > 0 && m.status.Phase != v1alpha1.PhaseExecuting {
		m.setCauses(open)
	}
	if block := m.blocked(); block != nil {
		return m.waitForGate(block)
	}
	rollout := m.facts.Evidence.Rollout
	switch {
	case rollout.Paused:
		return m.waitForResume()
	case rollout.Complete:
		return m.settle(v1alpha1.PhaseNoLongerRequired)
	default:
		return m.waitForRollout()
	}
}

// blocked asks the gate.
func (m *machine) blocked() *gate.Block {
	m.status.Owner = gate.OwnerOf(m.facts.Scope, &m.facts.Owners)
	input := m.gateInput()
	block := gate.Evaluate(input)
	m.explainUnchecked(block, input)
	return block
}

// gateInput is what the gate looks at.
func (m *machine) gateInput() gate.Input {
	open := Uncovered(&m.status, m.facts.Changes)
	return gate.Input{
		Scope:    m.facts.Scope,
		Now:      m.now,
		Latest:   open.Latest(),
		Since:    m.since(),
		Manual:   m.asked(),
		Override: m.overridden(),
		Last:     m.lastRestart(),
		Writers:  m.writers(open),
		Stale:    m.stale,
		Missing:  m.facts.Missing,
		Full:     m.facts.Room.Full,
		Owners:   m.facts.Owners,
	}
}

// clockDifference is by how much the clock that stamped a restart may be ahead of this one.
const clockDifference = time.Minute

// lastRestart is the restart before the one to come: the last of this request or, if that is newer, the one whose stamp
// the template carries. A stamp that lies far in the future tells nothing.
func (m *machine) lastRestart() gate.Restart {
	var last gate.Restart
	stamps := []string{m.facts.Stamp}
	if current := m.status.CurrentRollout; current != nil && m.issued(current) {
		stamps = append(stamps, current.Stamp)
		last.Streak = current.Streak
	}
	for _, stamp := range stamps {
		at, err := time.Parse(time.RFC3339Nano, stamp)
		if err == nil && at.After(last.At) && !at.After(m.now.Add(clockDifference)) {
			last.At = at
		}
	}
	return last
}

// writers says who writes the changed sources.
func (m *machine) writers(changes freshness.Changes) string {
	var writers []string
	for _, source := range changes.Newest() {
		if names := m.facts.Writers[source]; names != "" {
			writers = append(writers, fmt.Sprintf("%s (%s %s)", names, source.Kind, source.Name))
		}
	}
	if len(writers) == 0 {
		return "managers that the API server does not name"
	}
	return strings.Join(writers, "; ")
}

// rolloutDeadline is how long a rollout may take.
func (m *machine) rolloutDeadline() time.Duration {
	if deadline := m.facts.Scope.RolloutDeadline(); deadline > 0 {
		return deadline
	}
	return m.settings.RolloutDeadline
}

// since is when the request was opened: when Ready became False.
func (m *machine) since() time.Time {
	ready := meta.FindStatusCondition(m.status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Status == metav1.ConditionTrue {
		return m.now
	}
	return ready.LastTransitionTime.Time
}

// waitForGate holds a restart back. The clock is looked at again after a while even if the gate opens much later, because
// it may have been set.
func (m *machine) waitForGate(block *gate.Block) Step {
	step := m.waitWith(block.Phase, block.Reason, block.Message)
	step.Status.Gate = &v1alpha1.Gate{Reason: block.Reason, Message: cut(block.Message, maxMessage), RequeueAt: block.OpensAt}
	step.RecheckAt = block.RecheckAt
	if glance := m.now.Add(clockGlance); block.Phase == v1alpha1.PhaseWaitingForGate && step.RecheckAt.After(glance) {
		step.RecheckAt = glance
	}
	return step
}

// waitForRollout holds a change back while another rollout is in progress, as long as that may still complete.
func (m *machine) waitForRollout() Step {
	rollout := m.facts.Evidence.Rollout
	if !m.facts.Evidence.RevisionRead {
		if deadline := m.facts.Evidence.CreatedAt.Add(m.rolloutDeadline()); !rollout.Failed && m.now.Before(deadline) {
			return m.waitForOther(deadline)
		}
		return Step{Need: NeedRevision}
	}
	if revision := m.facts.Evidence.Revision; !rollout.Failed {
		if revision == nil {
			// The workload controller has yet to see the template: the rollout has not even begun.
			return m.waitForOther(time.Time{})
		}
		if deadline := revision.CreatedAt.Add(m.rolloutDeadline()); m.now.Before(deadline) {
			return m.waitForOther(deadline)
		}
	}
	return m.overtakeOther()
}

// overtakeOther restarts over a rollout of somebody else that does not complete, if a change came after its template and
// some Pod runs without it. The age of the template alone would not do: a Pod that was lost, or a partition that was moved,
// makes an old rollout incomplete again.
func (m *machine) overtakeOther() Step {
	verdict := freshness.JudgeTemplate(m.facts.Changes, m.facts.Evidence)
	if verdict.Outcome == freshness.Stale {
		verdict = freshness.Judge(verdict.Stale, m.facts.Evidence)
	}
	switch verdict.Outcome {
	case freshness.NeedsPods:
		return Step{Need: NeedPods}
	case freshness.Stale:
		return m.restart(verdict.Stale)
	default:
		return m.waitForOther(time.Time{})
	}
}

// waitForResume waits for somebody to resume a paused Deployment, which is never stamped.
func (m *machine) waitForResume() Step {
	return m.waitWith(v1alpha1.PhaseWaitingForRollout, v1alpha1.ReasonPaused,
		"the Deployment is paused; the restart is decided when it is resumed")
}

// waitForOther waits for a rollout of somebody else, until the deadline if it has one.
func (m *machine) waitForOther(deadline time.Time) Step {
	step := m.waitWith(v1alpha1.PhaseWaitingForRollout, v1alpha1.ReasonRolloutInProgress, m.facts.Evidence.Rollout.Message)
	step.RecheckAt = deadline
	return step
}

// settle judges a complete rollout: stale Pods are restarted, fresh ones end the request in the given phase.
func (m *machine) settle(fresh v1alpha1.Phase) Step {
	verdict := freshness.Judge(m.facts.Changes, m.facts.Evidence)
	switch verdict.Outcome {
	case freshness.NeedsRevision:
		return Step{Need: NeedRevision}
	case freshness.NeedsPods:
		return Step{Need: NeedPods}
	case freshness.Stale:
		return m.restart(verdict.Stale)
	case freshness.Fresh:
	}
	if fresh == v1alpha1.PhaseNoLongerRequired {
		return m.end(fresh, v1alpha1.ReasonAlreadyFresh, "every running Pod carries the latest change")
	}
	if !m.facts.Evidence.RevisionRead {
		return Step{Need: NeedRevision} // for its name
	}
	return m.end(fresh, v1alpha1.ReasonSucceeded, "the restart is complete and every Pod carries the change")
}
