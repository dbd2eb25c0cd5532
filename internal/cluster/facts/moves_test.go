package facts

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kick-dev/kick/internal/cluster/workload"
)

func TestAWorkloadIsAtRestSomeTimeAfterItsLastMove(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	at := func(version string) *workload.Workload {
		w := deployment(t, "web", "1", 4)
		w.Object().SetResourceVersion(version)
		return w
	}
	moves := NewMoves(clock)
	steps := []struct {
		name   string
		do     func()
		judged string
		rested bool
	}{
		{"nothing is known of it", func() {}, "7", false},
		{"it was seen just now", func() { moves.Saw(at("7")) }, "7", false},
		{"it has not moved for a while", func() { clock.Step(restedAfter) }, "7", true},
		{"the cache shows a move that nobody told of yet", func() {}, "8", false},
		{"it is told of again and has not moved", func() { moves.Saw(at("7")) }, "7", true},
		{"it has moved", func() { moves.Saw(at("8")) }, "8", false},
		{"it has almost rested", func() { clock.Step(restedAfter - 1) }, "8", false},
		{"it has rested", func() { clock.Step(1) }, "8", true},
		{"it is gone", func() { moves.Forget(at("8").Key) }, "8", false},
	}
	for _, step := range steps {
		step.do()
		if got := moves.rested(at(step.judged)); got != step.rested {
			t.Errorf("%s: at rest %v, want %v", step.name, got, step.rested)
		}
	}
	if (*Moves)(nil).rested(at("7")) {
		t.Error("nobody knows a workload to be at rest")
	}
}
