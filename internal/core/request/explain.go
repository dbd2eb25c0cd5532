package request

import (
	"time"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/freshness"
	"github.com/kick-dev/kick/internal/core/gate"
)

// Explanation is a decision with what led to it.
type Explanation struct {
	// Step is what Next decides on the same facts.
	Step Step
	// Latest is the time of the latest change of any source in scope, zero for none.
	Latest time.Time
	// Open are the changes that the last rollout of the request does not cover.
	Open freshness.Changes
	// Evidence says of each change by what it is known to be carried.
	Evidence []freshness.Line
	// Stale is true where some change is carried by no proof.
	Stale bool
	// Gate is the whole chain, asked with the verdict on freshness, and Asked what it was asked about.
	Gate  []gate.Link
	Asked gate.Input
}

// Explain decides as Next does, and says why. The facts have to be complete: live workload, revision, Pods and room, whether
// or not the decision asks for them.
func Explain(status v1alpha1.KickRequestStatus, facts Facts, settings Settings, now time.Time) Explanation {
	m := newMachine(status, facts, settings, now)
	explained := Explanation{
		Step:   Next(status, facts, settings, now),
		Latest: m.facts.Changes.Latest(),
		Open:   Uncovered(&m.status, m.facts.Changes),
	}
	evidence := m.facts.Evidence
	if m.inFlight() && evidence.Rollout.Manual {
		evidence.Carried = freshness.Coverage{} // As watchManual judges.
	}
	explained.Evidence = freshness.Explain(m.facts.Changes, evidence)
	for _, line := range explained.Evidence {
		explained.Stale = explained.Stale || line.Proof == freshness.Unproven
	}
	if m.status.Phase.Terminal() && len(explained.Open) > 0 && m.facts.Scope.Managed() {
		m.open(explained.Open)
	}
	// Over a rollout that is stuck the template is judged, and its Pods may not have started at all.
	m.stale = explained.Stale ||
		!evidence.Rollout.Complete && freshness.JudgeTemplate(m.facts.Changes, evidence).Outcome == freshness.Stale
	explained.Asked = m.gateInput()
	explained.Gate = gate.Links(explained.Asked)
	return explained
}
