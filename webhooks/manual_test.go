package webhooks

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kick-dev/kick/api/v1alpha1"
)

var noon = time.Date(2026, 8, 6, 12, 0, 0, 0, time.UTC)

func micro(at time.Time) metav1.MicroTime { return metav1.NewMicroTime(at) }

// wanted is what a fault has to say: the path of the field, and part of the sentence.
type wanted struct{ path, text string }

// matchFaults checks that there are exactly the wanted faults, in their order.
func matchFaults(t *testing.T, faults field.ErrorList, want []wanted) {
	t.Helper()
	if len(faults) != len(want) {
		t.Fatalf("%d faults, want %d: %v", len(faults), len(want), faults)
	}
	for i, fault := range faults {
		if fault.Field != want[i].path || !strings.Contains(fault.Error(), want[i].text) {
			t.Errorf("fault %q, want one at %s about %q", fault, want[i].path, want[i].text)
		}
	}
}

func TestOneAsksInOnesOwnNameNowAndForWhatOneMayHave(t *testing.T) {
	const (
		by       = "spec.manual.requestedBy"
		at       = "spec.manual.requestedAt"
		override = "spec.manual.override"
	)
	asked := func(w *wished) *v1alpha1.ManualRestart { return &w.asked }
	for name, tc := range map[string]struct {
		edit func(*wished)
		want []wanted
	}{
		"alice, now":                      {func(*wished) {}, nil},
		"in the name of bob":              {func(w *wished) { asked(w).RequestedBy = "bob" }, []wanted{{by, `write "alice"`}}},
		"in the name of Alice":            {func(w *wished) { asked(w).RequestedBy = "Alice" }, []wanted{{by, `write "alice"`}}},
		"in nobody's name":                {func(w *wished) { asked(w).RequestedBy = "" }, []wanted{{by, `write "alice"`}}},
		"five minutes ago":                {func(w *wished) { asked(w).RequestedAt = micro(noon.Add(-5 * time.Minute)) }, nil},
		"in five minutes":                 {func(w *wished) { asked(w).RequestedAt = micro(noon.Add(5 * time.Minute)) }, nil},
		"more than five minutes ago":      {func(w *wished) { asked(w).RequestedAt = micro(noon.Add(-5*time.Minute - 1)) }, []wanted{{at, "within 5 minutes of now, which is 2026-08-06T12:00:00.000000Z"}}},
		"in more than five minutes":       {func(w *wished) { asked(w).RequestedAt = micro(noon.Add(5*time.Minute + 1)) }, []wanted{{at, "within 5 minutes"}}},
		"in the year 2100":                {func(w *wished) { asked(w).RequestedAt = micro(noon.AddDate(74, 0, 0)) }, []wanted{{at, "within 5 minutes"}}},
		"never":                           {func(w *wished) { asked(w).RequestedAt = metav1.MicroTime{} }, []wanted{{at, "within 5 minutes"}}},
		"now in another zone":             {func(w *wished) { asked(w).RequestedAt = micro(noon.In(time.FixedZone("x", 7200))) }, nil},
		"before the last wish":            {func(w *wished) { w.old = &v1alpha1.ManualRestart{RequestedAt: micro(noon.Add(time.Microsecond))} }, []wanted{{at, "before the restart asked for at 2026-08-06T12:00:00.000001Z"}}},
		"after the last wish":             {func(w *wished) { w.old = &v1alpha1.ManualRestart{RequestedAt: micro(noon.Add(-time.Hour))} }, nil},
		"at the instant of the last wish": {func(w *wished) { w.old = &v1alpha1.ManualRestart{RequestedAt: micro(noon)} }, nil},
		"an override with the right":      {func(w *wished) { asked(w).Override, w.mayOverride = true, true }, nil},
		"an override without the right":   {func(w *wished) { asked(w).Override = true }, []wanted{{override, "no right to override kickrequests.kick.dev"}}},
		"everything wrong at once": {func(w *wished) {
			w.asked = v1alpha1.ManualRestart{RequestedBy: "bob", Override: true}
		}, []wanted{{by, "alice"}, {at, "5 minutes"}, {override, "no right"}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := wished{asked: v1alpha1.ManualRestart{RequestedAt: micro(noon), RequestedBy: "alice"}, writer: "alice", now: noon}
			tc.edit(&w)
			matchFaults(t, validateManual(w), tc.want)
		})
	}
}

func TestARequestBearsTheNameOfItsTarget(t *testing.T) {
	long := strings.Repeat("a", 253)
	for name, tc := range map[string]struct {
		name string
		ref  v1alpha1.TargetRef
		want []wanted
	}{
		"the name":            {"deployment-web", target, nil},
		"another":             {"web", target, []wanted{{"metadata.name", `"deployment-web"`}}},
		"that of another one": {"statefulset-web", target, []wanted{{"metadata.name", `"deployment-web"`}}},
		"a long one cut":      {"deployment-" + long[:242], v1alpha1.TargetRef{Kind: v1alpha1.Deployment, Name: long}, []wanted{{"metadata.name", "the request of this target is called"}}},
	} {
		t.Run(name, func(t *testing.T) {
			matchFaults(t, validateName(&v1alpha1.KickRequest{
				ObjectMeta: metav1.ObjectMeta{Name: tc.name}, Spec: v1alpha1.KickRequestSpec{TargetRef: tc.ref},
			}), tc.want)
		})
	}
}

func TestATargetIsTheWorkloadThatBearsItsName(t *testing.T) {
	for name, tc := range map[string]struct {
		found types.UID
		want  []wanted
	}{
		"the workload":         {"u-1", nil},
		"another of its name":  {"u-2", []wanted{{"spec.targetRef.uid", `write "u-2"`}}},
		"no workload any more": {"", []wanted{{"spec.targetRef.name", "no Deployment of this name"}}},
	} {
		t.Run(name, func(t *testing.T) { matchFaults(t, validateTargetUID(target, tc.found), tc.want) })
	}
}
