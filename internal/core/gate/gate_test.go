package gate_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/gate"
	"github.com/kick-dev/kick/internal/core/policy"
)

var noon = time.Date(2026, 8, 6, 12, 0, 0, 0, time.UTC)

func allow(cron, zone string) v1alpha1.Window {
	return v1alpha1.Window{Kind: v1alpha1.WindowAllow, Cron: cron, Duration: "2h", TimeZone: zone}
}

func deny(cron string) v1alpha1.Window {
	return v1alpha1.Window{Kind: v1alpha1.WindowDeny, Cron: cron, Duration: "2h"}
}

func policyOf(name string, suspend bool, windows ...v1alpha1.Window) policy.Policy {
	parsed, _ := policy.Parse(&v1alpha1.KickPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.KickPolicySpec{Suspend: suspend, Schedule: v1alpha1.Schedule{Windows: windows}},
	})
	return parsed
}

func TestQuiet(t *testing.T) {
	calm := policyOf("a", false)
	calm.Quiet, calm.MaxQuiet = 5*time.Second, time.Minute
	calmer := policyOf("b", false)
	calmer.Quiet, calmer.MaxQuiet = 10*time.Second, 2*time.Minute
	at := func(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }
	for name, tc := range map[string]struct {
		policies      []policy.Policy
		latest, since time.Time
		until         time.Time // zero where the restart may run
	}{
		"no quiet period asked for":             {[]policy.Policy{policyOf("a", false)}, at(0), at(0), time.Time{}},
		"a change just now":                     {[]policy.Policy{calm}, at(-1), at(-1), at(4)},
		"quiet since":                           {[]policy.Policy{calm}, at(-5), at(-5), time.Time{}},
		"a source that never rests":             {[]policy.Policy{calm}, at(0), at(-58), at(2)},
		"a source that has not rested for long": {[]policy.Policy{calm}, at(0), at(-60), time.Time{}},
		"the longest of two policies":           {[]policy.Policy{calm, calmer}, at(-1), at(-1), at(9)},
		"a restart that is decided":             {[]policy.Policy{calm}, time.Time{}, at(-1), time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			block := gate.Evaluate(gate.Input{
				Scope: policy.Scope{Policies: tc.policies}, Now: noon, Latest: tc.latest, Since: tc.since,
			})
			var until time.Time
			if block != nil {
				until = block.RecheckAt
				if block.Reason != v1alpha1.ReasonQuietPeriod {
					t.Errorf("reason %s", block.Reason)
				}
			}
			if !until.Equal(tc.until) {
				t.Errorf("waits until %s, want %s", until, tc.until)
			}
		})
	}
}

func TestEvaluate(t *testing.T) {
	for name, tc := range map[string]struct {
		policies  []policy.Policy
		reason    string // empty where the restart may run
		opensAt   string
		recheckAt time.Time
	}{
		"no windows":        {policies: []policy.Policy{policyOf("a", false)}},
		"inside its window": {policies: []policy.Policy{policyOf("a", false, allow("0 11 * * *", ""))}},
		"outside its window": {
			policies: []policy.Policy{policyOf("a", false, allow("0 2 * * *", "Europe/Berlin"))},
			reason:   v1alpha1.ReasonOutsideSchedule, opensAt: "2026-08-07T02:00:00+02:00", recheckAt: noon.Add(12 * time.Hour),
		},
		"inside a Deny window": {
			policies: []policy.Policy{policyOf("a", false, deny("0 11 * * *"))},
			reason:   v1alpha1.ReasonOutsideSchedule, opensAt: "2026-08-06T13:00:00Z", recheckAt: noon.Add(time.Hour),
		},
		"two policies have to be open together": {
			policies: []policy.Policy{policyOf("a", false, allow("0 */6 * * *", "")), policyOf("b", false, allow("0 19 * * *", ""))},
			reason:   v1alpha1.ReasonOutsideSchedule, opensAt: "2026-08-06T19:00:00Z", recheckAt: noon.Add(7 * time.Hour),
		},
		"two policies that are never open together": {
			policies: []policy.Policy{policyOf("a", false, allow("0 2 * * *", "")), policyOf("b", false, allow("0 12 * * *", ""))},
			reason:   v1alpha1.ReasonNeverOpens,
		},
		"a schedule that does not parse": {
			policies: []policy.Policy{policyOf("a", false, allow("bad", "")), policyOf("b", false)},
			reason:   v1alpha1.ReasonScheduleInvalid,
		},
		"suspended goes before the schedule": {
			policies: []policy.Policy{policyOf("a", true, allow("0 2 * * *", ""))},
			reason:   v1alpha1.ReasonPolicySuspended,
		},
	} {
		t.Run(name, func(t *testing.T) {
			block := gate.Evaluate(gate.Input{Scope: policy.Scope{Policies: tc.policies}, Now: noon})
			if block == nil {
				block = &gate.Block{}
			} else if block.Message == "" || block.Phase != v1alpha1.PhaseWaitingForGate {
				t.Errorf("phase %s, message %q", block.Phase, block.Message)
			}
			got := []any{block.Reason, block.OpensAt, block.RecheckAt.UTC()}
			if diff := cmp.Diff([]any{tc.reason, tc.opensAt, tc.recheckAt.UTC()}, got); diff != "" {
				t.Errorf("block (-want +got):\n%s\n%s", diff, block.Message)
			}
		})
	}
}
