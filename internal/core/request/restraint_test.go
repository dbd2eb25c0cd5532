package request_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/deps"
	"github.com/kick-dev/kick/internal/core/freshness"
	"github.com/kick-dev/kick/internal/core/policy"
	"github.com/kick-dev/kick/internal/core/request"
	"github.com/kick-dev/kick/internal/core/rollout"
)

// manageBy puts the workload under one policy.
func (w *world) manageBy(spec v1alpha1.KickPolicySpec) {
	parsed, _ := policy.Parse(&v1alpha1.KickPolicy{ObjectMeta: metav1.ObjectMeta{Name: "all"}, Spec: spec})
	w.facts.Scope = policy.ScopeOf([]policy.Policy{parsed}, labels.Set{})
}

func lasting(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }

// frozen is a policy whose windows are closed all day.
func frozen() v1alpha1.KickPolicySpec {
	return v1alpha1.KickPolicySpec{Schedule: v1alpha1.Schedule{Windows: []v1alpha1.Window{
		{Kind: v1alpha1.WindowDeny, Cron: "0 0 * * *", Duration: "23h"},
	}}}
}

func (w *world) ask(by string, override bool) {
	w.facts.Manual = &v1alpha1.ManualRestart{RequestedAt: metav1.NewMicroTime(w.now), RequestedBy: by, Override: override}
}

// C049: whoever writes a source every second gets few restarts, at growing distances.
func TestASourceThatFlapsIsRestartedAtGrowingIntervals(t *testing.T) {
	w := newWorld(t)
	w.manage(false, v1alpha1.Restart{MinInterval: lasting(30 * time.Second)})
	w.facts.Writers = map[deps.Source]string{db: "left, right"}
	var distances []time.Duration
	last := w.now
	for end := w.now.Add(15 * time.Minute); w.now.Before(end); w.pass(1) {
		w.facts.Changes[db] = w.now
		step := w.decide()
		if w.status.CurrentRollout != nil && w.status.CurrentRollout.Streak > 0 && w.reason() == v1alpha1.ReasonMinInterval &&
			!strings.Contains(w.status.Gate.Message, "left, right (Secret db)") {
			t.Fatalf("the message does not name the writers: %s", w.status.Gate.Message)
		}
		if step.Stamp == "" {
			continue
		}
		distances = append(distances, w.now.Sub(last))
		last = w.now
		w.issue(step.Stamp)
		w.complete()
	}
	want := []time.Duration{0, 30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute}
	if diff := cmp.Diff(want, distances); diff != "" {
		t.Errorf("distances of the restarts (-want +got):\n%s", diff)
	}
	w.pass(3600)
	w.kick()
	w.complete()
	w.decide()
	w.pass(3600)
	w.facts.Changes[db] = w.now
	w.kick()
	if w.status.CurrentRollout.Streak != 0 {
		t.Errorf("streak %d after an hour of rest", w.status.CurrentRollout.Streak)
	}
}

func TestARestartWaitsForRoom(t *testing.T) {
	w := newWorld(t)
	w.full = "as many as permitted"
	w.decide()
	w.full = ""
	w.kick()
	w.expect("WaitingForGate/ConcurrencyLimit", "Executing/Stamping")
}

func TestStaleAndFreshPodsUnderADryRun(t *testing.T) {
	t.Run("stale ones would be restarted", func(t *testing.T) {
		w := newWorld(t)
		w.manageBy(v1alpha1.KickPolicySpec{DryRun: true})
		w.decide()
		w.facts.Changes[db] = at(100)
		w.decide()
		w.manage(false)
		w.kick()
		w.expect("WaitingForGate/DryRun", "WaitingForGate/DryRun", "Executing/Stamping")
	})
	t.Run("fresh ones need no restart", func(t *testing.T) {
		w := newWorld(t)
		w.manageBy(v1alpha1.KickPolicySpec{DryRun: true})
		w.startPods(61)
		w.decide()
		w.expect("NoLongerRequired/AlreadyFresh")
	})
}

// world checks that a repeated step decides the same: here the request first comes from a rollout and then from the gate.
func TestAChangeDuringARolloutUnderAClosedDryRunNamesTheWindows(t *testing.T) {
	w := newWorld(t)
	w.kick()
	w.facts.Changes[db] = at(70)
	w.pass(10)
	w.complete()
	w.startPods(61)
	spec := frozen()
	spec.DryRun = true
	w.manageBy(spec)
	w.decide()
	w.expect("Executing/Stamping", "WaitingForGate/OutsideSchedule")
}

func TestStalePodsAreKeptWhileARequiredSourceIsMissing(t *testing.T) {
	w := newWorld(t)
	w.facts.Missing = []string{"the key password of the Secret db"}
	w.decide()
	w.facts.Missing = nil
	w.kick()
	w.expect("WaitingForGate/MissingSource", "Executing/Stamping")
}

func TestAPersonWhoAsksForARestart(t *testing.T) {
	// settled is a workload whose last change is dealt with.
	settled := func(t *testing.T, spec v1alpha1.KickPolicySpec) *world {
		w := newWorld(t)
		w.startPods(61)
		w.decide()
		w.manageBy(spec)
		w.steps = nil
		w.pass(60)
		return w
	}
	t.Run("gets one", func(t *testing.T) {
		w := settled(t, v1alpha1.KickPolicySpec{Restart: v1alpha1.Restart{QuietPeriod: lasting(time.Minute), MaxQuiet: lasting(time.Hour)}})
		w.ask("alice", false)
		w.kick()
		if cause := w.status.Causes[0]; cause.Kind != v1alpha1.Manual || cause.Name != "alice" || len(w.status.Causes) != 1 {
			t.Errorf("causes %v", w.status.Causes)
		}
		w.pass(5)
		w.complete()
		w.decide()
		w.decide()
		w.expect("Executing/Stamping", "Succeeded/Succeeded", "Succeeded/Succeeded")
	})
	t.Run("needs none when the Pods started later", func(t *testing.T) {
		w := settled(t, v1alpha1.KickPolicySpec{})
		w.ask("alice", false)
		w.pass(10)
		w.complete()
		w.decide()
		w.expect("NoLongerRequired/AlreadyFresh")
	})
	t.Run("asks again", func(t *testing.T) {
		w := settled(t, v1alpha1.KickPolicySpec{Restart: v1alpha1.Restart{MinInterval: lasting(time.Hour)}})
		for range 2 {
			w.ask("alice", false)
			w.kick()
			w.pass(5)
			w.complete()
			w.decide()
			w.pass(5)
		}
		w.expect("Executing/Stamping", "Succeeded/Succeeded", "Executing/Stamping", "Succeeded/Succeeded")
	})
	t.Run("waits for windows", func(t *testing.T) {
		w := settled(t, frozen())
		w.ask("alice", false)
		w.decide()
		w.expect("WaitingForGate/OutsideSchedule")
	})
	t.Run("passes windows by override, and only once (C076)", func(t *testing.T) {
		w := settled(t, frozen())
		w.ask("alice", true)
		w.kick()
		w.pass(5)
		w.complete()
		w.decide()
		w.pass(5)
		w.facts.Changes[db] = w.now
		w.decide()
		w.expect("Executing/Stamping", "Succeeded/Succeeded", "WaitingForGate/OutsideSchedule")
	})
	t.Run("passes windows by override after a kill between decision and stamp", func(t *testing.T) {
		w := settled(t, frozen())
		w.ask("alice", true)
		w.decide()
		w.pass(5)
		w.kick()
		w.expect("Executing/Stamping", "Executing/Stamping")
	})
	t.Run("once made, overrides nothing for a later change whose restart is decided and refused", func(t *testing.T) {
		w := settled(t, v1alpha1.KickPolicySpec{})
		w.ask("alice", true)
		w.kick()
		w.decide()
		w.complete()
		w.startPods(w.now.Sub(at(0)).Seconds() + 1)
		w.pass(10)
		w.decide()
		w.facts.Changes = freshness.Changes{db: w.now}
		w.pass(1)
		refused := w.decide()
		w.facts.Denied = request.Denial{Stamp: refused.Stamp, Message: "forbidden", Until: w.now.Add(time.Minute)}
		w.decide()
		w.manageBy(frozen())
		w.decide()
		w.expect("Executing/Stamping", "Executing/RollingOut", "Succeeded/Succeeded", "Executing/Stamping", "Executing/RestartDenied",
			"WaitingForGate/OutsideSchedule")
	})
	t.Run("overrides nothing where nobody checks who may, and says so", func(t *testing.T) {
		w := settled(t, frozen())
		w.settings.OverrideUnchecked = true
		w.ask("alice", true)
		w.decide()
		w.expect("WaitingForGate/OutsideSchedule")
		if !strings.Contains(w.status.Gate.Message, "override is ignored") {
			t.Errorf("message %q", w.status.Gate.Message)
		}
	})
	t.Run("is made where nobody checks who may override, once nothing holds it back", func(t *testing.T) {
		w := settled(t, v1alpha1.KickPolicySpec{})
		w.settings.OverrideUnchecked = true
		w.ask("alice", true)
		w.kick()
		w.expect("Executing/Stamping")
	})
	t.Run("does not blame the override for what it would not pass", func(t *testing.T) {
		w := settled(t, v1alpha1.KickPolicySpec{Suspend: true})
		w.settings.OverrideUnchecked = true
		w.ask("alice", true)
		w.decide()
		w.expect("WaitingForGate/PolicySuspended")
		if strings.Contains(w.status.Gate.Message, "override") {
			t.Errorf("message %q", w.status.Gate.Message)
		}
	})
	t.Run("has no say over a workload that no policy manages", func(t *testing.T) {
		w := settled(t, v1alpha1.KickPolicySpec{})
		w.facts.Scope = policy.Scope{}
		w.status = v1alpha1.KickRequestStatus{}
		w.ask("alice", true)
		w.decide()
		w.expect("NoLongerRequired/NotManaged")
	})
}

func TestThePolicySaysHowLongARolloutMayTake(t *testing.T) {
	w := newWorld(t)
	w.manageBy(v1alpha1.KickPolicySpec{Restart: v1alpha1.Restart{RolloutDeadline: lasting(time.Minute)}})
	w.kick()
	w.decide()
	w.pass(60)
	w.decide()
	w.expect("Executing/Stamping", "Executing/RollingOut", "Failed/RolloutDeadlineExceeded")
}

func TestARolloutThatHasNotBegunIsNotOverdue(t *testing.T) {
	w := newWorld(t)
	w.manageBy(v1alpha1.KickPolicySpec{Restart: v1alpha1.Restart{RolloutDeadline: lasting(time.Minute)}})
	w.kick()
	w.decide()
	w.pass(60)
	begun := w.revision
	w.revision = rollout.Revision{} // somebody has just changed the template again
	if step := w.decide(); !step.RecheckAt.After(w.now) {
		t.Errorf("looks again at %s, want later than %s", step.RecheckAt, w.now)
	}
	w.revision = begun
	w.decide()
	w.expect("Executing/Stamping", "Executing/RollingOut", "Executing/RollingOut", "Failed/RolloutDeadlineExceeded")
}

func TestSomebodyElsesStuckRolloutHoldsAChangeBackAsLongAsThePolicySays(t *testing.T) {
	w := newWorld(t)
	w.manageBy(v1alpha1.KickPolicySpec{Restart: v1alpha1.Restart{RolloutDeadline: lasting(2 * time.Minute)}})
	w.facts.Evidence.Rollout = rollout.State{Message: "stuck"}
	w.decide()
	w.pass(60)
	w.kick()
	w.expect("WaitingForRollout/RolloutInProgress", "Executing/Stamping")
}

func TestCausesNameTheConsumedKeysThatChanged(t *testing.T) {
	w := newWorld(t)
	w.facts.Keys = map[deps.Source]map[string]time.Time{db: {"user": at(0), "password": at(60)}}
	w.kick()
	if diff := cmp.Diff([]string{"password"}, w.status.Causes[0].Keys); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	w.pass(5)
	w.complete()
	w.decide()
	w.pass(5)
	w.facts.Keys[db] = map[string]time.Time{"user": at(70), "password": at(71), "host": at(0)}
	w.facts.Changes[db] = at(71)
	w.kick()
	if diff := cmp.Diff([]string{"password", "user"}, w.status.Causes[0].Keys); diff != "" {
		t.Errorf("keys since the last restart (-want +got):\n%s", diff)
	}
}

func TestARemovedStampIsWrittenAgainWithoutRegardToTheInterval(t *testing.T) {
	w := newWorld(t)
	w.manage(false, v1alpha1.Restart{MinInterval: lasting(time.Hour)})
	w.facts.TemplateWriter = "flux"
	w.kick()
	w.decide()
	w.facts.Stamp, w.revision = "", rollout.Revision{Name: "web-1", CreatedAt: at(0)}
	w.facts.Evidence.Rollout = rollout.State{Complete: true}
	w.decide()
	if message := w.status.Conditions[0].Message; !strings.Contains(message, "last written by flux") {
		t.Errorf("message %q", message)
	}
	w.pass(10)
	w.kick()
	w.expect("Executing/Stamping", "Executing/RollingOut", "Executing/Stamping", "Executing/Stamping")
}

// The clock that stamped the last restart may be ahead of this one, by what clocks differ.
func TestTheIntervalIsKeptAcrossClocksThatDiffer(t *testing.T) {
	for ahead, restarted := range map[int]bool{5: false, 3600: true} {
		t.Run(fmt.Sprintf("by %d seconds", ahead), func(t *testing.T) {
			w := newWorld(t)
			w.manage(false, v1alpha1.Restart{MinInterval: lasting(time.Hour)})
			w.facts.Stamp = w.now.Add(time.Duration(ahead) * time.Second).Format(time.RFC3339Nano)
			if step := w.decide(); (step.Stamp != "") != restarted {
				t.Errorf("stamps %q, and says %s", step.Stamp, w.reason())
			}
		})
	}
}
