package controllers

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/report"
)

// censusPatience bounds the reads of a census, which are from the cache.
const censusPatience = 5 * time.Second

// census counts requests and policies in the cache.
func (s *shell) census() (report.Census, error) {
	ctx, cancel := context.WithTimeout(context.Background(), censusPatience)
	defer cancel()
	var requests v1alpha1.KickRequestList
	if err := s.client.List(ctx, &requests); err != nil {
		return report.Census{}, fmt.Errorf("list the requests: %w", err)
	}
	var policies v1alpha1.KickPolicyList
	if err := s.client.List(ctx, &policies); err != nil {
		return report.Census{}, fmt.Errorf("list the policies: %w", err)
	}
	counted := count(requests.Items, policies.Items, s.options.Clock.Now())
	counted.LedgerRecords = s.ledger.Size()
	return counted, nil
}

func count(requests []v1alpha1.KickRequest, policies []v1alpha1.KickPolicy, now time.Time) report.Census {
	census := report.Census{
		Requests: map[v1alpha1.Phase]int{}, Blocked: map[string]int{}, Policies: map[string]int{},
	}
	for i := range requests {
		status := &requests[i].Status
		phase := status.Phase
		if phase == "" {
			phase = v1alpha1.PhasePending // It was created a moment ago.
		}
		census.Requests[phase]++
		ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
		if phase.Terminal() || ready == nil {
			continue
		}
		census.OldestWaiting = max(census.OldestWaiting, now.Sub(ready.LastTransitionTime.Time))
		if meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionStalled) {
			census.Stalled++
		}
		if phase.Waiting() {
			census.Blocked[ready.Reason]++
		}
	}
	for i := range policies {
		status := "Unknown"
		if ready := meta.FindStatusCondition(policies[i].Status.Conditions, v1alpha1.ConditionReady); ready != nil {
			status = string(ready.Status)
		}
		census.Policies[status]++
	}
	return census
}
