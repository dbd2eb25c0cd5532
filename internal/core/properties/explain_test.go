package properties_test

import (
	"slices"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/freshness"
	"github.com/kick-dev/kick/internal/core/gate"
	"github.com/kick-dev/kick/internal/core/request"
)

// explained checks that an explanation, which looks at all evidence whether or not the decision needs it, says the same as
// the decision: it is what the kubectl plugin shows.
func (j *judge) explained(d decision) {
	facts, complete := d.completed()
	if !complete {
		return
	}
	explanation := request.Explain(d.present.Status, facts, d.m.settings, d.now)
	decided, shown := d.step, explanation.Step
	if shown.Status.Phase != decided.Status.Phase || reasonOf(&shown.Status) != reasonOf(&decided.Status) || shown.Stamp != decided.Stamp {
		j.fail("%s is explained as %s/%s (stamp %q) and decided as %s/%s (stamp %q)", d.w.key, shown.Status.Phase,
			reasonOf(&shown.Status), shown.Stamp, decided.Status.Phase, reasonOf(&decided.Status), decided.Stamp)
	}
	j.counts["explained as "+string(shown.Status.Phase)]++
	j.explainedGate(d, explanation)
	j.explainedEvidence(d, explanation)
}

// completed are the facts of a decision with the evidence that it did not ask for. It reports false if the workload is not
// what it was.
func (d decision) completed() (request.Facts, bool) {
	live, facts := d.m.c.workloads[d.w.key], d.facts
	if live == nil || live.uid != d.w.uid || live.generation != d.w.generation {
		return facts, false
	}
	if !facts.Evidence.RevisionRead {
		facts.Evidence.Revision, facts.Evidence.RevisionRead = d.w.revision(live), true
	}
	if !facts.Evidence.PodsRead {
		facts.Evidence.Pods, facts.Evidence.PodsRead = live.evidence(), true
	}
	return facts, true
}

// explainedGate: the link that the status names is among those shown as closed, and no restart is made past one.
func (j *judge) explainedGate(d decision, explanation request.Explanation) {
	var closed []string
	for _, link := range explanation.Gate {
		if link.Block != nil {
			closed = append(closed, link.Block.Reason)
		}
	}
	held := d.step.Status.Gate
	switch {
	case held != nil && !slices.Contains(closed, held.Reason):
		j.fail("%s is held by %s, and %v are shown as closed", d.w.key, held.Reason, closed)
	case d.step.Stamp != "" && len(closed) > 0 && !d.decidedBefore():
		j.fail("%s is restarted, and %v are shown as closed", d.w.key, closed)
	}
	if len(explanation.Gate) != len(gate.Links(gate.Input{})) {
		j.fail("%d links are shown", len(explanation.Gate))
	}
}

// decidedBefore tells whether the stamp of a decision was on record already: it is written whatever the gate has become.
func (d decision) decidedBefore() bool {
	current := d.present.Status.CurrentRollout
	return d.present.Status.Phase == v1alpha1.PhaseExecuting && current != nil && current.Stamp == d.step.Stamp
}

// explainedEvidence: what is judged is what the lines say.
func (j *judge) explainedEvidence(d decision, explanation request.Explanation) {
	if !d.facts.Evidence.Rollout.Complete {
		return // Over a rollout that is stuck the template is judged, not the Pods.
	}
	reason := reasonOf(&d.step.Status)
	fresh := reason == v1alpha1.ReasonAlreadyFresh || reason == v1alpha1.ReasonSucceeded
	switch justEnded := !d.present.Status.Phase.Terminal() && d.step.Status.Phase.Terminal(); {
	case justEnded && fresh && explanation.Stale:
		j.fail("%s ends in %s, and is shown as stale: %+v", d.w.key, reason, explanation.Evidence)
	case d.step.Stamp != "" && !explanation.Stale:
		j.fail("%s is restarted, and is shown as fresh: %+v", d.w.key, explanation.Evidence)
	}
	for _, line := range explanation.Evidence {
		older := slices.ContainsFunc(line.Readings, func(r freshness.Reading) bool { return !r.Carries })
		if older != (line.Proof == freshness.Unproven) {
			j.fail("%s: %s is %s, with the readings %+v", d.w.key, line.Source, line.Proof, line.Readings)
		}
	}
}
