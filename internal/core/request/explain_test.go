package request_test

import (
	"testing"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/freshness"
	"github.com/kick-dev/kick/internal/core/gate"
	"github.com/kick-dev/kick/internal/core/request"
	"github.com/kick-dev/kick/internal/core/rollout"
)

// A restart over a stuck rollout is about its template. That none of its containers has started proves nothing.
func TestExplainAsksTheGateAboutTheTemplateOfAStuckRollout(t *testing.T) {
	w := newWorld(t)
	w.kick()
	w.facts.Evidence.Rollout = rollout.State{Message: "stuck"}
	w.decide()
	w.pods = nil
	w.pass(10)
	w.facts.Changes = freshness.Changes{db: w.now}
	w.facts.Missing = []string{"Secret mail"}
	w.pass(settings.RolloutDeadline.Seconds() + 1)
	w.decide()
	w.expect("Executing/Stamping", "Executing/RollingOut", "WaitingForGate/MissingSource")

	facts := w.facts
	facts.Evidence.Revision, facts.Evidence.RevisionRead = w.readRevision(), true
	facts.Evidence.PodsRead = true
	for _, link := range request.Explain(w.status, facts, w.settings, w.now).Gate {
		if link.Name == gate.LinkMissing && (link.Block == nil || link.Block.Reason != v1alpha1.ReasonMissingSource) {
			t.Errorf("the link is shown as %+v", link.Block)
		}
	}
}
