package controllers

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/report"
)

func TestTheCensusCountsRequestsAndPoliciesByState(t *testing.T) {
	now := time.Date(2026, 8, 6, 12, 0, 0, 0, time.UTC)
	stalled := metav1.Condition{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue}
	ready := func(reason string, status metav1.ConditionStatus, ago time.Duration) []metav1.Condition {
		return []metav1.Condition{{
			Type: v1alpha1.ConditionReady, Reason: reason, Status: status, LastTransitionTime: metav1.NewTime(now.Add(-ago)),
		}}
	}
	requests := []v1alpha1.KickRequest{
		{},
		{Status: v1alpha1.KickRequestStatus{
			Phase: v1alpha1.PhaseWaitingForGate, Conditions: ready(v1alpha1.ReasonOutsideSchedule, metav1.ConditionFalse, time.Hour),
		}},
		{Status: v1alpha1.KickRequestStatus{
			Phase: v1alpha1.PhaseExecuting, Conditions: ready(v1alpha1.ReasonRollingOut, metav1.ConditionFalse, time.Minute),
		}},
		{Status: v1alpha1.KickRequestStatus{
			Phase: v1alpha1.PhaseWaitingForGate, Conditions: append(ready(v1alpha1.ReasonMissingSource, metav1.ConditionFalse, 0), stalled),
		}},
		{Status: v1alpha1.KickRequestStatus{
			Phase: v1alpha1.PhaseFailed, Conditions: append(ready(v1alpha1.ReasonRolloutFailed, metav1.ConditionFalse, 0), stalled),
		}},
		{Status: v1alpha1.KickRequestStatus{
			Phase: v1alpha1.PhaseSucceeded, Conditions: ready(v1alpha1.ReasonSucceeded, metav1.ConditionTrue, 24*time.Hour),
		}},
	}
	policies := []v1alpha1.KickPolicy{{}, {Status: v1alpha1.KickPolicyStatus{Conditions: ready("", metav1.ConditionTrue, 0)}}}
	want := report.Census{
		Requests: map[v1alpha1.Phase]int{
			v1alpha1.PhasePending: 1, v1alpha1.PhaseWaitingForGate: 2, v1alpha1.PhaseExecuting: 1, v1alpha1.PhaseSucceeded: 1,
			v1alpha1.PhaseFailed: 1,
		},
		Blocked:       map[string]int{v1alpha1.ReasonOutsideSchedule: 1, v1alpha1.ReasonMissingSource: 1},
		Stalled:       1,
		OldestWaiting: time.Hour,
		Policies:      map[string]int{"Unknown": 1, "True": 1},
	}
	if diff := cmp.Diff(want, count(requests, policies, now)); diff != "" {
		t.Errorf("census (-want +got):\n%s", diff)
	}
}
