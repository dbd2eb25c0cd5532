package request_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/freshness"
	"github.com/kick-dev/kick/internal/core/policy"
	"github.com/kick-dev/kick/internal/core/request"
	"github.com/kick-dev/kick/internal/core/rollout"
)

func TestRolloutsThatDoNotComplete(t *testing.T) {
	t.Run("a failed one fails the request", func(t *testing.T) {
		w := newWorld(t)
		w.kick()
		w.facts.Evidence.Rollout.Failed = true
		w.decide()
		w.decide()
		w.expect("Executing/Stamping", "Failed/RolloutFailed", "Failed/RolloutFailed")
	})
	t.Run("a slow one fails the request at its deadline", func(t *testing.T) {
		w := newWorld(t)
		w.kick()
		w.decide()
		w.pass(15 * 60)
		w.decide()
		w.expect("Executing/Stamping", "Executing/RollingOut", "Failed/RolloutDeadlineExceeded")
	})
	t.Run("a slow one whose template carries a newer change fails the request for good", func(t *testing.T) {
		w := newWorld(t)
		w.kick()
		w.decide()
		w.facts.Changes = freshness.Changes{db: at(62)}
		w.revision.CreatedAt = at(63)
		w.pass(16 * 60)
		w.decide()
		w.decide()
		w.expect("Executing/Stamping", "Executing/RollingOut", "Failed/RolloutDeadlineExceeded", "Failed/RolloutDeadlineExceeded")
	})
	t.Run("one whose Pods are replaced by hand takes as long as it takes", func(t *testing.T) {
		w := newWorld(t)
		w.kick()
		w.facts.Evidence.Rollout = rollout.State{Complete: true, Manual: true}
		w.decide()
		w.pass(3600)
		w.facts.Evidence.Rollout.Complete = false // somebody has deleted a Pod
		w.decide()
		w.complete()
		w.facts.Evidence.Rollout.Manual = true
		w.decide()
		w.expect("Executing/Stamping", "Executing/AwaitingManualReplacement", "Executing/RollingOut", "Succeeded/Succeeded")
	})
	t.Run("one that another template has begun anew has all its time", func(t *testing.T) {
		w := newWorld(t)
		w.kick()
		w.decide()
		w.pass(14 * 60)
		w.revision = rollout.Revision{Name: "web-3", CreatedAt: w.now}
		w.pass(60)
		w.decide()
		w.pass(14 * 60)
		w.decide()
		w.expect("Executing/Stamping", "Executing/RollingOut", "Executing/RollingOut", "Failed/RolloutDeadlineExceeded")
	})
	t.Run("a newer change is stamped over a failed one", func(t *testing.T) {
		w := newWorld(t)
		w.kick()
		w.pass(10)
		w.facts.Changes = freshness.Changes{db: w.now}
		w.facts.Evidence.Rollout.Failed = true
		w.kick()
		w.expect("Executing/Stamping", "Executing/Stamping")
	})
	t.Run("somebody else's that is stuck holds a newer change back only for a time", func(t *testing.T) {
		w := newWorld(t)
		w.facts.Evidence.Rollout = rollout.State{Message: "stuck"}
		w.decide()
		w.pass(15 * 60)
		w.kick()
		w.expect("WaitingForRollout/RolloutInProgress", "Executing/Stamping")
	})
	t.Run("somebody else's that is stuck and carries the change is waited for", func(t *testing.T) {
		w := newWorld(t)
		w.facts.Evidence.Rollout = rollout.State{Message: "stuck"}
		w.revision.CreatedAt = at(60)
		w.pass(3600)
		w.decide()
		w.expect("WaitingForRollout/RolloutInProgress")
	})
}

// Somebody rolls out a template while the workload is older than the deadline: before the controller has made a revision
// of it nothing tells how long the rollout has been going on, and that is no sign of a long time.
func TestARolloutThatHasNotBegunYetIsWaitedFor(t *testing.T) {
	w := newWorld(t)
	w.facts.Evidence.Rollout = rollout.State{Message: "the controller has not seen the present spec yet"}
	w.facts.Evidence.RevisionRead = true
	w.pass(3600)
	if step := w.decide(); step.Stamp != "" {
		t.Errorf("stamped %s into a rollout that begins", step.Stamp)
	}
	w.expect("WaitingForRollout/RolloutInProgress")
}

func TestAKillBetweenDecisionAndStampWritesTheSameStampOnce(t *testing.T) {
	w := newWorld(t)
	first := w.decide()
	w.pass(30) // killed here; a successor takes over
	second := w.decide()
	if first.Stamp == "" || second.Stamp != first.Stamp {
		t.Errorf("the successor stamps %q after %q", second.Stamp, first.Stamp)
	}
}

func TestAKillBetweenDecisionAndStampOverAStuckRolloutWritesTheSameStamp(t *testing.T) {
	w := newWorld(t)
	w.facts.Evidence.Rollout = rollout.State{Message: "stuck"}
	w.pass(3600)
	first := w.decide()
	w.pass(30) // killed here; a successor takes over
	second := w.decide()
	if first.Stamp == "" || second.Stamp != first.Stamp {
		t.Errorf("the successor stamps %q after %q", second.Stamp, first.Stamp)
	}
}

func TestADecisionThatWasNotIssuedIsJudgedAgain(t *testing.T) {
	w := newWorld(t)
	w.decide()
	w.complete() // a native rollout came first
	w.startPods(70)
	w.pass(30)
	w.decide()
	w.expect("Executing/Stamping", "NoLongerRequired/AlreadyFresh")
}

func TestADecisionThatWasNotIssuedCoversNothing(t *testing.T) {
	w := newWorld(t)
	w.decide()
	managed := w.facts.Scope
	w.facts.Scope = policy.Scope{}
	w.decide()
	w.facts.Scope = managed
	w.kick()
	w.expect("Executing/Stamping", "NoLongerRequired/NotManaged", "Executing/Stamping")
}

// A Pod that was lost makes an old rollout incomplete again; its successor reads the present content.
func TestAnIncompleteRolloutWhosePodsCarryTheChangeIsWaitedFor(t *testing.T) {
	w := newWorld(t)
	w.facts.Evidence.Rollout = rollout.State{Message: "0 of 1 replicas are available"}
	w.pass(3600)
	w.startPods(3660)
	if step := w.decide(); step.Stamp != "" {
		t.Errorf("stamped %s, and the Pod carries the change", step.Stamp)
	}
	w.expect("WaitingForRollout/RolloutInProgress")
}

func TestAStampThatIsRemovedIsIssuedAgainAFewTimes(t *testing.T) {
	w := newWorld(t)
	for range 4 {
		w.kick()
		w.decide()
		w.complete()
		w.startPods(1)
		w.facts.Stamp = "" // somebody resets the template, and the old ReplicaSet comes back
		w.revision = rollout.Revision{Name: "web-1", CreatedAt: at(0)}
		w.decide()
		w.pass(600)
	}
	w.decide()
	if got := w.steps[len(w.steps)-1]; got != "Failed/StampRemoved" {
		t.Errorf("ends in %s after %d stamps", got, len(w.stamps))
	}
	if len(w.stamps) != 4 {
		t.Errorf("%d stamps, want the first and three more", len(w.stamps))
	}
	w.pass(600)
	w.decide()
	if got := w.steps[len(w.steps)-1]; got != "Failed/StampRemoved" {
		t.Errorf("goes on with %s", got)
	}
}

func TestAStampIsGivenUpWithoutAnotherPause(t *testing.T) {
	w := newWorld(t)
	for _, pause := range []float64{10, 30, 90, 0} {
		w.kick()
		w.decide()
		w.complete()
		w.startPods(1)
		w.facts.Stamp = ""
		w.revision = rollout.Revision{Name: "web-1", CreatedAt: at(0)}
		w.pass(pause)
	}
	w.decide()
	if got := w.steps[len(w.steps)-1]; got != "Failed/StampRemoved" {
		t.Errorf("is in %s", got)
	}
}

// What a request waits about is said at once, and not at the next look: world checks that a repeated step decides the same.
func TestAChangeAfterARemovedStampIsNamedWhileItWaits(t *testing.T) {
	w := newWorld(t)
	w.kick()
	w.decide()
	w.facts.Stamp = ""
	w.facts.Changes[db] = at(65)
	w.revision.CreatedAt = at(64)
	w.pass(60)
	w.decide()
	if got := w.status.Causes; len(got) != 1 || !got[0].ChangedAt.Time.Equal(at(65)) {
		t.Errorf("waits about %v", got)
	}
	w.expect("Executing/Stamping", "Executing/RollingOut", "WaitingForRollout/RolloutInProgress")
}

func TestAStampRemovedFromFreshPodsIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	w.kick()
	w.decide()
	w.pass(600)
	w.complete()
	w.facts.Stamp = ""
	w.decide()
	if got := w.steps[len(w.steps)-1]; got != "NoLongerRequired/AlreadyFresh" {
		t.Errorf("ends in %s", got)
	}
}

// Whoever removed the stamp, or another one, puts it back between the decision to write it again and the write.
func TestARemovedStampThatIsBackIsNotWrittenAgain(t *testing.T) {
	w := newWorld(t)
	w.kick()
	first := w.facts.Stamp
	w.decide()
	w.facts.Stamp, w.facts.Issued = "", first
	w.revision = rollout.Revision{Name: "web-1", CreatedAt: at(0)}
	w.complete()
	w.startPods(1)
	w.pass(20)
	if again := w.decide(); again.Stamp == "" || again.Stamp == first {
		t.Fatalf("stamps %q", again.Stamp)
	}
	w.issue(first)
	w.decide()
	w.pass(1)
	w.complete()
	w.decide()
	w.expect("Executing/Stamping", "Executing/RollingOut", "Executing/Stamping", "Executing/RollingOut", "Succeeded/Succeeded")
}

func TestARefusedStampIsSaidAndTriedAgainSlowly(t *testing.T) {
	w := newWorld(t)
	first := w.decide()
	w.facts.Denied = request.Denial{Stamp: first.Stamp, Message: "forbidden: no right to patch", Until: at(121)}
	step := w.decide()
	if step.Stamp != "" || !step.RecheckAt.Equal(at(121)) {
		t.Errorf("stamp %q, recheck at %s", step.Stamp, step.RecheckAt)
	}
	if !meta.IsStatusConditionTrue(w.status.Conditions, v1alpha1.ConditionStalled) {
		t.Error("not Stalled")
	}
	w.now = at(121)
	if again := w.decide(); again.Stamp != first.Stamp {
		t.Errorf("tries %q, want the decided stamp %q", again.Stamp, first.Stamp)
	}
	w.expect("Executing/Stamping", "Executing/RestartDenied", "Executing/RestartDenied")
}

func TestTheStampIsNeverTheOneOnTheTemplate(t *testing.T) {
	w := newWorld(t)
	w.facts.Stamp = w.now.Format(time.RFC3339Nano)
	if step := w.decide(); step.Stamp == w.facts.Stamp || step.Stamp == "" {
		t.Errorf("stamp %q would roll nothing", step.Stamp)
	}
}

func TestAForeignStampProvesNothing(t *testing.T) {
	for name, stamp := range map[string]string{"in the future": "2100-01-01T00:00:00Z", "no time at all": "yesterday"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.facts.Stamp = stamp
			w.kick()
		})
	}
}

func TestARolloutInProgressIsLookedAtAgainWhenItIsOverdue(t *testing.T) {
	w := newWorld(t)
	w.facts.Evidence.CreatedAt = at(50)
	w.facts.Evidence.Rollout = rollout.State{Message: "stuck"}
	if step := w.decide(); !step.RecheckAt.Equal(at(50 + 15*60)) {
		t.Errorf("recheck at %s, want 15 minutes after the workload was created", step.RecheckAt)
	}
}

func TestADenialIsForgottenWithTheRestartItWasAbout(t *testing.T) {
	w := newWorld(t)
	first := w.decide()
	w.facts.Denied = request.Denial{Stamp: first.Stamp, Message: "forbidden", Until: at(121)}
	w.decide()
	w.complete() // somebody restarts by hand
	w.startPods(70)
	w.pass(10)
	w.decide()
	w.facts.Changes = freshness.Changes{db: w.now}
	w.pass(1)
	w.kick()
	w.expect("Executing/Stamping", "Executing/RestartDenied", "NoLongerRequired/AlreadyFresh", "Executing/Stamping")
}

// A closed gate between two attempts does not start the count anew.
func TestAttemptsAreCountedAcrossAClosedGate(t *testing.T) {
	w := newWorld(t)
	for range 4 {
		w.kick()
		w.decide()
		w.complete()
		w.startPods(1)
		w.facts.Stamp = ""
		w.revision = rollout.Revision{Name: "web-1", CreatedAt: at(0)}
		w.pass(600)
		w.manage(true)
		w.decide()
		w.manage(false)
	}
	w.decide()
	if got := w.steps[len(w.steps)-1]; got != "Failed/StampRemoved" {
		t.Errorf("ends in %s after %d stamps", got, len(w.stamps))
	}
}

// I5: the gate is asked again for a change that comes while a restart is rolling out.
func TestAChangeDuringTheRolloutWaitsForTheGate(t *testing.T) {
	w := newWorld(t)
	w.kick()
	w.pass(1)
	w.facts.Changes = freshness.Changes{db: w.now}
	w.manage(true)
	w.pass(1)
	w.complete()
	w.startPods(61)
	if step := w.decide(); step.Stamp != "" {
		t.Errorf("stamped %s past a closed gate", step.Stamp)
	}
	w.manage(false)
	w.kick()
	w.expect("Executing/Stamping", "WaitingForGate/PolicySuspended", "Executing/Stamping")
}

// I5: a Deployment that is paused when KICK's own restart is complete is not stamped for the change that came meanwhile.
func TestAChangeDuringTheRolloutWaitsForTheResume(t *testing.T) {
	w := newWorld(t)
	w.kick()
	w.pass(1)
	w.facts.Changes = freshness.Changes{db: w.now}
	w.complete()
	w.startPods(61)
	w.facts.Evidence.Rollout.Paused = true
	if step := w.decide(); step.Stamp != "" {
		t.Errorf("stamped %s while it is paused", step.Stamp)
	}
	w.facts.Evidence.Rollout.Paused = false
	w.kick()
	w.expect("Executing/Stamping", "WaitingForRollout/Paused", "Executing/Stamping")
}

// The gate comes first: what it holds back costs no reads.
func TestAClosedGateIsAskedBeforeThePods(t *testing.T) {
	w := newWorld(t)
	w.startPods(60) // fresh, but nobody looks
	w.manage(true)
	if step := request.Next(w.status, w.facts, settings, w.now); step.Need != request.NeedNothing {
		t.Errorf("asks for %v", step.Need)
	}
	w.decide()
	w.expect("WaitingForGate/PolicySuspended")
}

// A cache that does not show the stamp yet is no sign that it was not issued.
func TestADecidedRestartIsLookedAtOnTheServer(t *testing.T) {
	w := newWorld(t)
	w.kick()
	late := w.facts
	late.Stamp, late.Issued = "", ""
	if step := request.Next(w.status, late, settings, w.now); step.Need != request.NeedLive {
		t.Errorf("decides on a cache: need %v, stamp %q", step.Need, step.Stamp)
	}
}

// A clock that is set while an opening is waited for is noticed within a minute.
func TestTheClockIsLookedAtWhileAnOpeningIsWaitedFor(t *testing.T) {
	w := newWorld(t)
	parsed, _ := policy.Parse(&v1alpha1.KickPolicy{Spec: v1alpha1.KickPolicySpec{Schedule: v1alpha1.Schedule{
		Windows: []v1alpha1.Window{{Kind: v1alpha1.WindowAllow, Cron: "0 20 * * *", Duration: "1h"}},
	}}})
	w.facts.Scope = policy.ScopeOf([]policy.Policy{parsed}, labels.Set{})
	if step := w.decide(); !step.RecheckAt.Equal(w.now.Add(time.Minute)) {
		t.Errorf("looks again at %s", step.RecheckAt)
	}
	if got := w.status.Gate; got == nil || got.RequeueAt != "2026-08-06T20:00:00Z" {
		t.Errorf("gate %+v", got)
	}
	w.now = at(8*3600 + 1)
	w.kick()
	if w.status.Gate != nil {
		t.Error("a restart that runs still shows a gate")
	}
}
