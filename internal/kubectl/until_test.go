package kubectl

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/policy"
)

// A Secret changed at noon, ten seconds before now. The workload was restarted a minute before that.
func TestWhenAWaitEnds(t *testing.T) {
	noon := time.Date(2026, 8, 6, 12, 0, 0, 0, time.UTC)
	length := func(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }
	for name, tc := range map[string]struct {
		reason  string
		restart v1alpha1.Restart
		streak  int32
		want    string
	}{
		"quiet":             {v1alpha1.ReasonQuietPeriod, v1alpha1.Restart{QuietPeriod: length(time.Minute), MaxQuiet: length(time.Hour)}, 0, "2026-08-06T12:01:00Z"},
		"quiet, at most":    {v1alpha1.ReasonQuietPeriod, v1alpha1.Restart{QuietPeriod: length(time.Hour), MaxQuiet: length(time.Minute)}, 0, "2026-08-06T12:01:02Z"},
		"interval":          {v1alpha1.ReasonMinInterval, v1alpha1.Restart{MinInterval: length(5 * time.Minute)}, 0, "2026-08-06T12:04:00Z"},
		"a longer interval": {v1alpha1.ReasonMinInterval, v1alpha1.Restart{MinInterval: length(5 * time.Minute)}, 1, "2026-08-06T12:09:00Z"},
		"no longer":         {v1alpha1.ReasonMinInterval, v1alpha1.Restart{MinInterval: length(time.Second)}, 0, ""},
		"something else":    {v1alpha1.ReasonDryRun, v1alpha1.Restart{QuietPeriod: length(time.Minute), MaxQuiet: length(time.Hour)}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			parsed, _ := policy.Parse(&v1alpha1.KickPolicy{Spec: v1alpha1.KickPolicySpec{Restart: tc.restart}})
			stamp := noon.Add(-time.Minute).Format(time.RFC3339Nano)
			r := &v1alpha1.KickRequest{Status: v1alpha1.KickRequestStatus{
				Phase:  v1alpha1.PhaseWaitingForGate,
				Gate:   &v1alpha1.Gate{Reason: tc.reason},
				Causes: []v1alpha1.SourceChange{{Kind: v1alpha1.Secret, Name: "db", ChangedAt: metav1.NewMicroTime(noon)}},
				Conditions: []metav1.Condition{{
					Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: tc.reason, LastTransitionTime: metav1.NewTime(noon.Add(2 * time.Second)),
				}},
				CurrentRollout: &v1alpha1.Rollout{Stamp: stamp, Issued: true, Streak: tc.streak},
			}}
			if got := timed(r, policy.ScopeOf([]policy.Policy{parsed}, labels.Set{}), stamp, noon.Add(10*time.Second)); got != tc.want {
				t.Errorf("until %q, want %q", got, tc.want)
			}
		})
	}
}
