// Package request is the state machine of a KickRequest: Φ, δ, ensure and μ, §9 and §10 of the model. Next looks at the
// stored status and at facts and says what the status becomes and which single action follows. It decides all;
// the controller only gathers, stores and acts.
package request

import (
	"time"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/deps"
	"github.com/kick-dev/kick/internal/core/freshness"
	"github.com/kick-dev/kick/internal/core/gitops"
	"github.com/kick-dev/kick/internal/core/policy"
)

// Settings are what the state machine works with, for all requests alike.
type Settings struct {
	// TTL is how long a terminal request is kept.
	TTL time.Duration
	// RolloutDeadline is how long a rollout may take before it no longer holds back a newer change, and before a
	// restart counts as failed, for workloads whose policies do not say.
	RolloutDeadline time.Duration
	// OverrideUnchecked is true where nothing checks who may override. Then nobody may.
	OverrideUnchecked bool
}

// Facts are what a decision looks at.
type Facts struct {
	// Generation of the request's spec.
	RequestGeneration int64

	// Scope is what the policies say about the workload.
	Scope policy.Scope
	Observed
	// Manual is the restart that a person asked for, nil for none.
	Manual *v1alpha1.ManualRestart

	// Owners is what the GitOps tools say about the workload, where a policy asks them.
	Owners gitops.Facts

	// Stamp is the restartedAt annotation on the Pod template, whoever wrote it.
	Stamp string
	// Live is true when the decision is about the workload as the API server has it: when it was read from there for this
	// decision, or when the stamp will be written only if nothing newer is there than in the cache.
	Live bool
	// TemplateWriter names the field manager that last wrote the Pod template, beside KICK; empty if not known.
	TemplateWriter string
	// Room for one more restart, once it was asked for.
	Room Room
	// Evidence of the Pods. Its Carried is filled in by Next.
	Evidence freshness.Evidence

	// Issued is the stamp that this process has written to the template, if any. It tells a stamp that was removed
	// from one that was never written.
	Issued string
	// Denied is the API server's last refusal of the stamp, the zero value for none.
	Denied Denial
}

// Observed is what is on record of the sources in the scope of a workload: Ω restricted to D(w).
type Observed struct {
	// Changes are the recorded change times.
	Changes freshness.Changes
	// Keys are the change times of consumed keys, for sources of which only those count.
	Keys map[deps.Source]map[string]time.Time
	// Writers are the field managers that own the content of the sources.
	Writers map[deps.Source]string
	// Missing names the sources and keys that new Pods would not start without and that do not exist.
	Missing []string
	// Unread names the sources that have been written since they were last read. What was written is not known yet.
	Unread []string
	// Unobserved is true while a source in scope exists that has no record yet.
	Unobserved bool
}

// Room is the answer to the question whether one more workload may restart now.
type Room struct {
	Asked bool
	// Full says which limit is reached, empty for none.
	Full string
}

// Denial is a refusal that is not worth another try for a while.
type Denial struct {
	Stamp   string
	Message string
	Until   time.Time
}

// Need names what a decision lacks.
type Need int

// What Next may ask for.
const (
	// NeedNothing: the step is complete.
	NeedNothing Need = iota
	// NeedLive: the workload has to be read from the API server.
	NeedLive
	// NeedRevision: the current revision has to be looked up.
	NeedRevision
	// NeedPods: the live Pods have to be listed.
	NeedPods
	// NeedRoom: the restart has to be counted against the limits on concurrent restarts.
	NeedRoom
)

// Step is the outcome of one decision.
type Step struct {
	// Need is what is lacking; all else is void unless it is NeedNothing.
	Need Need
	// Status to store, where it differs from the present one.
	Status v1alpha1.KickRequestStatus
	// Stamp is to be written to the Pod template once Status is stored; empty for no action.
	Stamp string
	// Delete: the request has outlived its time.
	Delete bool
	// RecheckAt is when to decide again if nothing happens before; zero for no need.
	RecheckAt time.Time
}

// Next decides the next step of a request: δ of the model. Passing its result's Status back with the same facts gives
// the same Status, so a step may be repeated after any failure.
func Next(status v1alpha1.KickRequestStatus, facts Facts, settings Settings, now time.Time) Step {
	return newMachine(status, facts, settings, now).run()
}

func newMachine(status v1alpha1.KickRequestStatus, facts Facts, settings Settings, now time.Time) *machine {
	machine := &machine{
		status:   *status.DeepCopy(),
		facts:    facts,
		settings: settings,
		now:      now,
	}
	machine.addManual()
	machine.takeBack()
	machine.facts.Evidence.Carried = machine.carried()
	machine.facts.Evidence.Stamp = facts.Stamp
	return machine
}

// Warranted tells whether a workload without a request needs one because its Pods are stale; it is the question asked
// when a workload comes into scope. The need, if any, has to be satisfied first.
func Warranted(facts Facts) (stale bool, need Need) {
	if !facts.Scope.Managed() || !facts.Evidence.Rollout.Complete {
		return false, NeedNothing
	}
	facts.Evidence.Stamp = facts.Stamp
	stale, need = conclude(freshness.Judge(facts.Changes, facts.Evidence))
	if stale && facts.Evidence.Rollout.Partial {
		// Pods that a partition keeps on an older template stay as they are, however often the template is stamped.
		return conclude(freshness.JudgeTemplate(facts.Changes, facts.Evidence))
	}
	return stale, need
}

// conclude reads a verdict, or what it lacks.
func conclude(verdict freshness.Verdict) (stale bool, need Need) {
	switch verdict.Outcome {
	case freshness.NeedsRevision:
		return false, NeedRevision
	case freshness.NeedsPods:
		return false, NeedPods
	default:
		return verdict.Outcome == freshness.Stale, NeedNothing
	}
}
