package webhooks

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kick-dev/kick/api/v1alpha1"
)

func policyOf(selector metav1.LabelSelector) *v1alpha1.KickPolicy {
	p := &v1alpha1.KickPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	p.Spec.Discovery.WorkloadSelector = selector
	return p
}

// An invalid policy may be stored while the webhook is away. It can then be mended or labelled, and not made worse.
func TestAnUpdateIsRefusedOnlyForFaultsItBrings(t *testing.T) {
	good := policyOf(metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}})
	bad := policyOf(metav1.LabelSelector{MatchLabels: map[string]string{"app": "a b"}})
	worse := policyOf(metav1.LabelSelector{MatchLabels: map[string]string{"app": "a b", "tier": "c d"}})
	labelled := bad.DeepCopy()
	labelled.Labels = map[string]string{"team": "x"}
	for name, tc := range map[string]struct {
		old, updated *v1alpha1.KickPolicy
		faults       int
	}{
		"a good one made bad":       {good, bad, 1},
		"a bad one mended":          {bad, good, 0},
		"a bad one labelled":        {bad, labelled, 0},
		"a bad one made worse":      {bad, worse, 1},
		"a worse one made less bad": {worse, bad, 0},
		"a good one left as it was": {good, good, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ValidateKickPolicyUpdate(tc.old, tc.updated); len(got) != tc.faults {
				t.Errorf("faults %v, want %d", got, tc.faults)
			}
		})
	}
}
