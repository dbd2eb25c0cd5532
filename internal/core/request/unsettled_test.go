package request_test

import (
	"testing"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/request"
)

func TestAWorkloadIsReadWhereItMattersWhatBecameOfARestart(t *testing.T) {
	const first, second = "2026-08-06T12:00:00.1Z", "2026-08-06T13:00:00.1Z"
	for name, tc := range map[string]struct {
		phase         v1alpha1.Phase
		last, present string
		want          bool
	}{
		"never restarted":                    {phase: v1alpha1.PhasePending},
		"never by KICK":                      {phase: v1alpha1.PhasePending, present: first},
		"restarted before":                   {phase: v1alpha1.PhaseSucceeded, last: first, present: first},
		"being restarted":                    {phase: v1alpha1.PhaseExecuting, last: first, present: first, want: true},
		"decided":                            {phase: v1alpha1.PhaseExecuting, last: second, present: first, want: true},
		"the stamp was removed":              {phase: v1alpha1.PhaseWaitingForRollout, last: first, want: true},
		"somebody else has restarted it":     {phase: v1alpha1.PhaseSucceeded, last: first, present: second, want: true},
		"no longer required before a stamp":  {phase: v1alpha1.PhaseNoLongerRequired, present: first},
		"failed, with the stamp still there": {phase: v1alpha1.PhaseFailed, last: first, present: first},
	} {
		t.Run(name, func(t *testing.T) {
			status := &v1alpha1.KickRequestStatus{Phase: tc.phase}
			if tc.last != "" {
				status.CurrentRollout = &v1alpha1.Rollout{Stamp: tc.last}
			}
			if got := request.Unsettled(status, tc.present); got != tc.want {
				t.Errorf("unsettled: %v, want %v", got, tc.want)
			}
		})
	}
}
