package request_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/deps"
	"github.com/kick-dev/kick/internal/core/freshness"
	"github.com/kick-dev/kick/internal/core/policy"
	"github.com/kick-dev/kick/internal/core/request"
	"github.com/kick-dev/kick/internal/core/rollout"
)

var (
	noon     = time.Date(2026, 8, 6, 12, 0, 0, 0, time.UTC)
	settings = request.Settings{TTL: time.Hour, RolloutDeadline: 15 * time.Minute}
	db       = deps.Source{Kind: v1alpha1.Secret, Name: "db"}
)

func at(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }

// world is a small model of a workload that a request is driven against: it plays the controller around Next.
type world struct {
	t      *testing.T
	now    time.Time
	facts  request.Facts
	status v1alpha1.KickRequestStatus

	revision rollout.Revision
	pods     []freshness.Pod
	steps    []string
	stamps   []string
}

// newWorld is a managed workload, rolled out at noon, whose source db changed a minute later.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, now: at(61), revision: rollout.Revision{Name: "web-1", CreatedAt: at(0)}}
	w.facts.References = []deps.Reference{{Source: db, Readers: []deps.Reader{{Container: "app"}}}}
	w.facts.Changes = freshness.Changes{db: at(60)}
	w.facts.Evidence.CreatedAt = at(-60)
	w.facts.Evidence.Rollout.Complete = true
	w.startPods(1)
	w.manage(false)
	return w
}

func (w *world) manage(suspended bool, restart ...v1alpha1.Restart) {
	spec := v1alpha1.KickPolicySpec{Suspend: suspended}
	for _, r := range restart {
		spec.Restart = r
	}
	parsed, _ := policy.Parse(&v1alpha1.KickPolicy{ObjectMeta: metav1.ObjectMeta{Name: "all"}, Spec: spec})
	w.facts.Scope = policy.ScopeOf([]policy.Policy{parsed}, labels.Set{})
}

func (w *world) startPods(seconds float64) {
	w.pods = []freshness.Pod{{StartedAt: at(seconds), Containers: []freshness.Container{{Name: "app", StartedAt: at(seconds)}}}}
}

// decide runs Next until it needs nothing more, and stores its status.
func (w *world) decide() request.Step {
	w.t.Helper()
	facts := w.facts
	for range 5 {
		step := request.Next(w.status, facts, settings, w.now)
		switch step.Need {
		case request.NeedLive:
			facts.Live = true
		case request.NeedRevision:
			facts.Evidence.Revision, facts.Evidence.RevisionRead = &w.revision, true
		case request.NeedPods:
			facts.Evidence.Pods, facts.Evidence.PodsRead = w.pods, true
		case request.NeedNothing:
			w.checkRepeatable(facts, step)
			w.status = step.Status
			w.steps = append(w.steps, string(w.status.Phase)+"/"+w.reason())
			return step
		}
	}
	w.t.Fatal("Next keeps asking for facts")
	return request.Step{}
}

// checkRepeatable: with the same facts, a step that was stored decides the same again.
func (w *world) checkRepeatable(facts request.Facts, step request.Step) {
	w.t.Helper()
	if step.Delete {
		return
	}
	again := request.Next(step.Status, facts, settings, w.now)
	if diff := cmp.Diff(step.Status, again.Status); again.Need == request.NeedNothing && diff != "" {
		w.t.Errorf("a repeated step decides otherwise (-first +second):\n%s", diff)
	}
	if step.Stamp != "" && again.Stamp != step.Stamp {
		w.t.Errorf("a repeated step stamps %q after %q", again.Stamp, step.Stamp)
	}
}

// kick decides, and issues the stamp that is due.
func (w *world) kick() {
	w.t.Helper()
	step := w.decide()
	if step.Stamp == "" {
		w.t.Fatalf("no stamp in %s", w.steps[len(w.steps)-1])
	}
	w.issue(step.Stamp)
}

func (w *world) issue(stamp string) {
	w.stamps = append(w.stamps, stamp)
	w.facts.Stamp, w.facts.Issued = stamp, stamp
	w.facts.Evidence.Rollout = rollout.State{Message: "rolling"}
	w.revision = rollout.Revision{Name: "web-2", CreatedAt: w.now.Truncate(time.Second)}
}

// complete ends the rollout, with Pods that start now.
func (w *world) complete() {
	w.facts.Evidence.Rollout = rollout.State{Complete: true}
	w.startPods(w.now.Sub(noon).Truncate(time.Second).Seconds())
}

func (w *world) pass(seconds float64) {
	w.now = w.now.Add(time.Duration(seconds * float64(time.Second)))
}

func (w *world) reason() string {
	return meta.FindStatusCondition(w.status.Conditions, v1alpha1.ConditionReady).Reason
}

func (w *world) expect(steps ...string) {
	w.t.Helper()
	if diff := cmp.Diff(steps, w.steps); diff != "" {
		w.t.Errorf("steps (-want +got):\n%s", diff)
	}
}

func TestAChangeLeadsToOneRestart(t *testing.T) {
	w := newWorld(t)
	w.kick()
	w.decide()
	w.pass(5)
	w.complete()
	w.decide()
	w.expect("Executing/Stamping", "Executing/RollingOut", "Succeeded/Succeeded")
	if len(w.stamps) != 1 {
		t.Errorf("stamps %v, want one", w.stamps)
	}
	if got := w.status.CurrentRollout; got.Revision != "web-2" || got.Stamp != w.stamps[0] {
		t.Errorf("the request does not name its rollout: %+v", got)
	}
	if got := w.status.Causes; len(got) != 1 || got[0].Name != "db" {
		t.Errorf("causes %v, want db", got)
	}
}

// I6: what a stamp covers is fresh, also when a clock says otherwise and the change lies in the second of the stamp.
func TestARestartIsNotRepeated(t *testing.T) {
	w := newWorld(t)
	w.now = at(60.000001)
	w.kick()
	w.complete()
	w.startPods(-3600) // a node whose clock is an hour late
	w.decide()
	w.expect("Executing/Stamping", "Succeeded/Succeeded")
}

func TestAChangeDuringTheRolloutLeadsToOneMoreAfterIt(t *testing.T) {
	w := newWorld(t)
	w.kick()
	w.pass(1)
	w.facts.Changes = freshness.Changes{db: w.now}
	w.decide() // in progress: no second stamp yet
	w.pass(1)
	w.complete()
	w.startPods(61)
	w.kick()
	w.pass(5)
	w.complete()
	w.decide()
	w.expect("Executing/Stamping", "Executing/RollingOut", "Executing/Stamping", "Succeeded/Succeeded")
}

func TestTerminalRequests(t *testing.T) {
	ended := func(t *testing.T) *world {
		w := newWorld(t)
		w.kick()
		w.complete()
		w.decide()
		w.steps = nil
		return w
	}
	t.Run("are kept for their time and then deleted", func(t *testing.T) {
		w := ended(t)
		if step := w.decide(); step.Delete || !step.RecheckAt.Equal(w.status.CompletedAt.Add(settings.TTL)) {
			t.Errorf("deleted %v, recheck at %s", step.Delete, step.RecheckAt)
		}
		w.pass(3601)
		if step := w.decide(); !step.Delete {
			t.Error("not deleted after its time")
		}
	})
	t.Run("are opened by a change they do not cover", func(t *testing.T) {
		w := ended(t)
		w.pass(60)
		w.facts.Changes = freshness.Changes{db: w.now}
		w.kick()
		w.expect("Executing/Stamping")
	})
	t.Run("are opened by an older change of a source that came into scope, and find it fresh", func(t *testing.T) {
		w := ended(t)
		w.pass(60)
		w.facts.Changes[deps.Source{Kind: v1alpha1.Secret, Name: "old"}] = at(-3600)
		w.decide()
		w.expect("NoLongerRequired/AlreadyFresh")
	})
	t.Run("stay closed for a change delivered twice", func(t *testing.T) {
		w := ended(t)
		if _, changed := request.Reopen(w.status, w.facts.Changes, w.now); changed {
			t.Error("opened again")
		}
	})
}

func TestReopenMakesTheRequestPendingAndKeepsTheEvidence(t *testing.T) {
	w := newWorld(t)
	w.kick()
	w.complete()
	w.decide()
	w.facts.Changes = freshness.Changes{db: at(1000)}
	status, changed := request.Reopen(w.status, w.facts.Changes, at(1000))
	if !changed || status.Phase != v1alpha1.PhasePending || status.CompletedAt != nil {
		t.Errorf("changed %v, phase %s, completed at %v", changed, status.Phase, status.CompletedAt)
	}
	if status.CurrentRollout.Stamp != w.stamps[0] {
		t.Error("what the last rollout covers is forgotten")
	}
}

func TestWaiting(t *testing.T) {
	cases := map[string]struct {
		change func(*world)
		want   string
	}{
		"a suspended policy parks the request": {
			func(w *world) { w.manage(true) }, "WaitingForGate/PolicySuspended",
		},
		"a rollout in progress goes first": {
			func(w *world) { w.facts.Evidence.Rollout = rollout.State{Message: "1 of 3"} }, "WaitingForRollout/RolloutInProgress",
		},
		"a paused Deployment is left alone": {
			func(w *world) { w.facts.Evidence.Rollout.Paused = true }, "WaitingForRollout/Paused",
		},
		"no policy selects the workload": {
			func(w *world) { w.facts.Scope = policy.Scope{} }, "NoLongerRequired/NotManaged",
		},
		"the sources are not observed yet": {
			func(w *world) { w.facts.Changes, w.facts.Unobserved = nil, true }, "Pending/Progressing",
		},
		"no source is in scope": {
			func(w *world) { w.facts.Changes = nil }, "NoLongerRequired/NotManaged",
		},
		"the Pods are newer than the change": {
			func(w *world) { w.startPods(60) }, "NoLongerRequired/AlreadyFresh",
		},
		"the rollout is newer than the change": {
			func(w *world) { w.revision.CreatedAt = at(60) }, "NoLongerRequired/AlreadyFresh",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tc.change(w)
			if step := w.decide(); step.Stamp != "" {
				t.Errorf("stamped %s", step.Stamp)
			}
			w.expect(tc.want)
		})
	}
}

func quietly() v1alpha1.Restart {
	return v1alpha1.Restart{
		QuietPeriod: &metav1.Duration{Duration: 5 * time.Second}, MaxQuiet: &metav1.Duration{Duration: time.Minute},
	}
}

func TestChangesThatComeTogetherLeadToOneRestart(t *testing.T) {
	w := newWorld(t)
	w.manage(false, quietly())
	cfg := deps.Source{Kind: v1alpha1.ConfigMap, Name: "cfg"}
	w.facts.References = append(w.facts.References, deps.Reference{Source: cfg, Readers: []deps.Reader{{Container: "app"}}})
	if step := w.decide(); !step.RecheckAt.Equal(at(65)) {
		t.Errorf("recheck at %s, want %s", step.RecheckAt, at(65))
	}
	w.now = at(64)
	w.facts.Changes[cfg] = at(63)
	w.decide()
	w.now = at(68)
	w.kick()
	if got := len(w.status.Causes); got != 2 {
		t.Errorf("%d causes, want both", got)
	}
	w.pass(5)
	w.complete()
	w.decide()
	w.expect("WaitingForGate/QuietPeriod", "WaitingForGate/QuietPeriod", "Executing/Stamping", "Succeeded/Succeeded")
}

func TestASourceThatNeverRestsIsRestartedForAllTheSame(t *testing.T) {
	w := newWorld(t)
	w.manage(false, quietly())
	for w.now.Before(at(61 + 60)) {
		w.facts.Changes[db] = w.now
		if step := w.decide(); step.Stamp != "" {
			t.Fatalf("stamped at %s", w.now)
		}
		w.pass(1)
	}
	w.facts.Changes[db] = w.now
	w.kick()
}

func TestANativeRolloutDuringTheQuietPeriodIsEnough(t *testing.T) {
	w := newWorld(t)
	w.manage(false, quietly())
	w.decide()
	w.pass(2)
	w.complete()
	w.revision = rollout.Revision{Name: "web-2", CreatedAt: at(62)}
	w.pass(5)
	w.decide()
	w.expect("WaitingForGate/QuietPeriod", "NoLongerRequired/AlreadyFresh")
}

func TestASuspendedPolicyDoesNotHideARolloutUnderWay(t *testing.T) {
	w := newWorld(t)
	w.kick()
	w.manage(true)
	w.complete()
	w.decide()
	w.expect("Executing/Stamping", "Succeeded/Succeeded")
}

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

func TestAKillBetweenDecisionAndStampWritesTheSameStampOnce(t *testing.T) {
	w := newWorld(t)
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

func TestOnDeleteIsStampedOnceAndEndsWithTheLastOldPod(t *testing.T) {
	w := newWorld(t)
	w.facts.Evidence.Rollout = rollout.State{Complete: true, Manual: true}
	w.kick()
	w.facts.Evidence.Rollout = rollout.State{Complete: true, Manual: true}
	w.decide()
	w.pass(300)
	w.facts.Changes = freshness.Changes{db: w.now}
	w.decide()
	w.pass(10)
	w.startPods(w.now.Sub(noon).Seconds())
	w.decide()
	w.expect("Executing/Stamping", "Executing/AwaitingManualReplacement", "Executing/AwaitingManualReplacement", "Succeeded/Succeeded")
}

func TestWarranted(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*world)
		want   bool
	}{
		"stale Pods":       {func(*world) {}, true},
		"fresh Pods":       {func(w *world) { w.startPods(60) }, false},
		"not managed":      {func(w *world) { w.facts.Scope = policy.Scope{} }, false},
		"rolling out":      {func(w *world) { w.facts.Evidence.Rollout.Complete = false }, false},
		"suspended policy": {func(w *world) { w.manage(true) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tc.change(w)
			w.facts.Evidence.Revision, w.facts.Evidence.RevisionRead = &w.revision, true
			w.facts.Evidence.Pods, w.facts.Evidence.PodsRead = w.pods, true
			if got, need := request.Warranted(w.facts); got != tc.want || need != request.NeedNothing {
				t.Errorf("warranted %v (need %v), want %v", got, need, tc.want)
			}
		})
	}
}

func TestStatusIsBounded(t *testing.T) {
	w := newWorld(t)
	for i := range 300 {
		name := strings.Repeat("n", 200) + string(rune('a'+i%26)) + strings.Repeat("x", i/26)
		w.facts.Changes[deps.Source{Kind: v1alpha1.Secret, Name: name}] = at(60 + float64(i)/1000)
		w.facts.References = append(w.facts.References, deps.Reference{
			Source: deps.Source{Kind: v1alpha1.Secret, Name: name}, Readers: []deps.Reader{{Container: "app"}},
		})
	}
	w.kick()
	if got := len(w.status.Causes); got != 16 || w.status.CausesOmitted != 285 {
		t.Errorf("%d causes, %d omitted, want 16 and 285", got, w.status.CausesOmitted)
	}
	if got := len(w.status.CurrentRollout.Covers); got != 256 {
		t.Errorf("%d covers, want 256", got)
	}
	w.pass(10)
	w.complete()
	w.decide()
	w.decide()
	w.expect("Executing/Stamping", "Succeeded/Succeeded", "Succeeded/Succeeded")
}

// A list that had to be cut covers what it has no room for: neither a StatefulSet whose partition keeps old Pods running
// nor changes dated alike are restarted or opened again and again.
func TestMoreSourcesThanTheListHoldsAreCovered(t *testing.T) {
	w := newWorld(t)
	for i := range 400 {
		source := deps.Source{Kind: v1alpha1.ConfigMap, Name: fmt.Sprint("cfg-", i)}
		w.facts.Changes[source] = at(60)
		w.facts.References = append(w.facts.References, deps.Reference{Source: source, Readers: []deps.Reader{{Container: "app"}}})
	}
	w.facts.Evidence.Rollout.Partial = true
	w.kick()
	w.facts.Evidence.Rollout = rollout.State{Complete: true, Partial: true} // the Pod below the partition is still the old one
	w.decide()
	if open := request.Uncovered(&w.status, w.facts.Changes); len(open) > 0 {
		t.Errorf("%d changes are not covered", len(open))
	}
	before := w.status.CompletedAt
	w.pass(10)
	w.decide()
	if !w.status.CompletedAt.Equal(before) {
		t.Error("the request was opened and ended again")
	}
	w.expect("Executing/Stamping", "Succeeded/Succeeded", "Succeeded/Succeeded")
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

func TestConditionsAreAlwaysPresentAndOneOfTheTrioIsTrue(t *testing.T) {
	w := newWorld(t)
	check := func() {
		t.Helper()
		var truths []string
		for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled} {
			condition := meta.FindStatusCondition(w.status.Conditions, kind)
			if condition == nil {
				t.Fatalf("%s: no condition %s", w.status.Phase, kind)
			}
			if condition.Status == metav1.ConditionTrue {
				truths = append(truths, kind)
			}
		}
		if len(truths) != 1 || meta.FindStatusCondition(w.status.Conditions, v1alpha1.ConditionRestarted) == nil {
			t.Errorf("%s: true conditions %v", w.status.Phase, truths)
		}
	}
	w.manage(true)
	w.decide()
	check()
	w.manage(false)
	w.kick()
	check()
	w.complete()
	w.decide()
	check()
}
