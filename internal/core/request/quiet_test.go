package request_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/deps"
	"github.com/kick-dev/kick/internal/core/rollout"
)

func quietly() v1alpha1.Restart {
	return v1alpha1.Restart{
		QuietPeriod: &metav1.Duration{Duration: 5 * time.Second}, MaxQuiet: &metav1.Duration{Duration: time.Minute},
	}
}

func TestChangesThatComeTogetherLeadToOneRestart(t *testing.T) {
	w := newWorld(t)
	w.manage(false, quietly())
	cfg := deps.Source{Kind: v1alpha1.ConfigMap, Name: "cfg"}
	w.references = append(w.references, deps.Reference{Source: cfg, Readers: []deps.Reader{{Container: "app"}}})
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
