package request_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/deps"
	"github.com/kick-dev/kick/internal/core/freshness"
	"github.com/kick-dev/kick/internal/core/policy"
	"github.com/kick-dev/kick/internal/core/request"
	"github.com/kick-dev/kick/internal/core/rollout"
)

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

func TestOnlyTheProgressOfASlowRolloutIsTold(t *testing.T) {
	w := newWorld(t)
	w.kick()
	w.decide()
	quick := w.status
	w.pass(10)
	w.facts.Evidence.Rollout.Message = "1 of 2 replicas are updated"
	step := w.decide()
	if diff := cmp.Diff(quick, w.status); diff != "" {
		t.Errorf("progress after ten seconds is worth a write:\n%s", diff)
	}
	w.now = step.RecheckAt
	w.decide()
	ready := meta.FindStatusCondition(w.status.Conditions, v1alpha1.ConditionReady)
	if ready.Message != "1 of 2 replicas are updated" {
		t.Errorf("after %s the request says %q", w.now.Sub(w.status.CurrentRollout.StartedAt.Time), ready.Message)
	}
}

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
		w.pass(60)
		w.decide()
		w.expect("Succeeded/Succeeded")
	})
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
		"a Deployment that was paused during a rollout is left alone": {
			func(w *world) { w.facts.Evidence.Rollout = rollout.State{Paused: true, Message: "1 of 3"} }, "WaitingForRollout/Paused",
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

func TestASuspendedPolicyDoesNotHideARolloutUnderWay(t *testing.T) {
	w := newWorld(t)
	w.kick()
	w.manage(true)
	w.complete()
	w.decide()
	w.expect("Executing/Stamping", "Succeeded/Succeeded")
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

func TestReplacementByHandIsWaitedForWithoutAPolicyToo(t *testing.T) {
	w := newWorld(t)
	w.facts.Evidence.Rollout = rollout.State{Complete: true, Manual: true}
	w.kick()
	w.facts.Evidence.Rollout = rollout.State{Complete: true, Manual: true}
	w.decide()
	w.facts.Scope, w.facts.Changes = policy.Scope{}, nil // the policy is deleted
	w.pass(10)
	w.decide()
	w.startPods(w.now.Sub(noon).Seconds())
	w.decide()
	w.expect("Executing/Stamping", "Executing/AwaitingManualReplacement", "Executing/AwaitingManualReplacement", "Succeeded/Succeeded")
}

func TestAReplicaThatIsBehindDoesNotEndTheReplacementByHand(t *testing.T) {
	w := newWorld(t)
	w.facts.Evidence.Rollout = rollout.State{Complete: true, Manual: true}
	w.kick()
	w.facts.Evidence.Rollout = rollout.State{Complete: true, Manual: true}
	w.facts.Changes = freshness.Changes{db: at(-3600)}
	w.decide()
	w.expect("Executing/Stamping", "Executing/AwaitingManualReplacement")
}

func TestTheDeadlineBeginsWhenPodsAreNoLongerReplacedByHand(t *testing.T) {
	w := newWorld(t)
	w.facts.Evidence.Rollout = rollout.State{Complete: true, Manual: true}
	w.kick()
	w.facts.Evidence.Rollout = rollout.State{Complete: true, Manual: true}
	w.decide()
	w.pass(3600)
	w.facts.Evidence.Rollout = rollout.State{Message: "0 of 1"} // the strategy is RollingUpdate now
	w.facts.Changes = freshness.Changes{db: w.now}
	w.decide()
	w.expect("Executing/Stamping", "Executing/AwaitingManualReplacement", "Executing/RollingOut")
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
		"stale Pods below a partition, with a template older than the change": {
			func(w *world) { w.facts.Evidence.Rollout.Partial = true }, true,
		},
		"stale Pods below a partition, with a template newer than the change": {
			func(w *world) {
				w.facts.Evidence.Rollout.Partial = true
				w.revision.CreatedAt = at(62)
			}, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tc.change(w)
			w.facts.Evidence.Revision, w.facts.Evidence.RevisionRead = &w.revision, true
			w.facts.Evidence.Pods, w.facts.Evidence.PodsRead = w.readPods(), true
			if got, need := request.Warranted(w.facts); got != tc.want || need != request.NeedNothing {
				t.Errorf("warranted %v (need %v), want %v", got, need, tc.want)
			}
		})
	}
}

func TestARestartWaitsUntilEverySourceIsRead(t *testing.T) {
	w := newWorld(t)
	w.facts.Unread = []string{"the Secret db"}
	if step := w.decide(); !step.RecheckAt.After(w.now) {
		t.Error("nothing wakes the request")
	}
	w.facts.Unread = nil
	w.kick()
	w.expect("Pending/Progressing", "Executing/Stamping")
}

func TestWhatTheGateSaysIsBounded(t *testing.T) {
	w := newWorld(t)
	w.facts.Missing = []string{strings.Repeat("ü", 2000)}
	w.decide()
	if got := w.status.Gate.Message; len(got) > 1024 || !utf8.ValidString(got) {
		t.Errorf("%d bytes", len(got))
	}
}
