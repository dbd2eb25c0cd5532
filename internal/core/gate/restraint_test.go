package gate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/gate"
	"github.com/kick-dev/kick/internal/core/policy"
)

// spaced is a policy with a minimum interval of half a minute.
func spaced() policy.Policy {
	p := policyOf("spaced", false)
	p.MinInterval = 30 * time.Second
	return p
}

func dryPolicy() policy.Policy {
	p := policyOf("dry", false, allow("0 2 * * *", ""))
	p.DryRun = true
	return p
}

func TestRestraint(t *testing.T) {
	ago := func(seconds int) gate.Restart {
		return gate.Restart{At: noon.Add(-time.Duration(seconds) * time.Second)}
	}
	flapping := func(seconds int, streak int32) gate.Restart {
		last := ago(seconds)
		last.Streak = streak
		return last
	}
	changed := noon.Add(-time.Second)
	for name, tc := range map[string]struct {
		policy policy.Policy
		input  gate.Input
		reason string        // empty where the restart may run
		until  time.Duration // after noon, where an instant is waited for
		says   string
	}{
		"no restart before":             {policy: spaced(), input: gate.Input{Latest: changed}},
		"a restart long ago":            {policy: spaced(), input: gate.Input{Latest: changed, Last: ago(30)}},
		"no interval asked for":         {policy: policyOf("a", false), input: gate.Input{Latest: changed, Last: ago(1)}},
		"a person does not wait":        {policy: spaced(), input: gate.Input{Latest: changed, Last: ago(10), Manual: true}},
		"a stamp that is written again": {policy: spaced(), input: gate.Input{Last: ago(10)}},
		"a restart just now": {
			policy: spaced(), input: gate.Input{Latest: changed, Last: ago(10)},
			reason: v1alpha1.ReasonMinInterval, until: 20 * time.Second, says: "30s later",
		},
		"the interval doubles while sources flap (C049)": {
			policy: spaced(), input: gate.Input{Latest: changed, Last: flapping(10, 2), Writers: "cronjob (Secret db)"},
			reason: v1alpha1.ReasonMinInterval, until: 110 * time.Second, says: "written by cronjob (Secret db)",
		},
		"and ends at an hour": {
			policy: spaced(), input: gate.Input{Latest: changed, Last: flapping(0, 40)},
			reason: v1alpha1.ReasonMinInterval, until: time.Hour,
		},
		"a source is missing": {
			policy: spaced(), input: gate.Input{Stale: true, Missing: []string{"the key password of the Secret db"}},
			reason: v1alpha1.ReasonMissingSource, says: "without the key password of the Secret db",
		},
		"a source is missing of Pods that are not stale": {
			policy: spaced(), input: gate.Input{Missing: []string{"the Secret db"}},
		},
		"enough restarts are under way": {
			policy: spaced(), input: gate.Input{Stale: true, Full: "as many as permitted"},
			reason: v1alpha1.ReasonConcurrencyLimit, says: "as many as permitted",
		},
		"a dry run, and what would hold it back otherwise": {
			policy: dryPolicy(), input: gate.Input{Stale: true},
			reason: v1alpha1.ReasonDryRun, says: "held back by OutsideSchedule too",
		},
		"a dry run of Pods that are not stale": {
			policy: dryPolicy(), reason: v1alpha1.ReasonOutsideSchedule, until: 14 * time.Hour,
		},
		"override passes windows": {
			policy: policyOf("a", false, deny("0 11 * * *")), input: gate.Input{Override: true},
		},
		"override does not pass a suspended policy": {
			policy: policyOf("a", true), input: gate.Input{Override: true}, reason: v1alpha1.ReasonPolicySuspended,
		},
		"override does not pass a missing source": {
			policy: spaced(), input: gate.Input{Override: true, Stale: true, Missing: []string{"the Secret db"}},
			reason: v1alpha1.ReasonMissingSource,
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.input.Scope, tc.input.Now = policy.Scope{Policies: []policy.Policy{tc.policy}}, noon
			block := gate.Evaluate(tc.input)
			if block == nil {
				block = &gate.Block{}
			}
			var recheckAt time.Time
			if tc.until > 0 {
				recheckAt = noon.Add(tc.until)
			}
			if diff := cmp.Diff([]any{tc.reason, recheckAt}, []any{block.Reason, block.RecheckAt.UTC()}); diff != "" {
				t.Errorf("block (-want +got):\n%s", diff)
			}
			if !strings.Contains(block.Message, tc.says) {
				t.Errorf("message %q does not say %q", block.Message, tc.says)
			}
		})
	}
}

func TestNextStreak(t *testing.T) {
	last := gate.Restart{At: noon, Streak: 3} // the interval is four minutes
	for name, tc := range map[string]struct {
		last gate.Restart
		at   time.Duration
		want int32
	}{
		"no restart before":                          {gate.Restart{}, time.Second, 0},
		"a change within the interval":               {last, 4*time.Minute - 1, 4},
		"a change after it":                          {last, 4 * time.Minute, 3},
		"a change after an hour of rest":             {last, time.Hour, 0},
		"a change within the longest interval":       {gate.Restart{At: noon, Streak: 7}, time.Minute, 7},
		"the change that came with the last restart": {last, -time.Second, 4},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.last.NextStreak(30*time.Second, noon.Add(tc.at)); got != tc.want {
				t.Errorf("streak %d, want %d", got, tc.want)
			}
		})
	}
}
