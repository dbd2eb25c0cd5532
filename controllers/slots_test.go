package controllers

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/workload"
	"github.com/kick-dev/kick/internal/core/policy"
)

func deploymentKey(namespace string, n int) workload.Key {
	return workload.Key{Namespace: namespace, Kind: v1alpha1.Deployment, Name: fmt.Sprint(n)}
}

func capped(limit int) policy.Scope {
	return policy.Scope{Policies: []policy.Policy{{Name: "web", MaxConcurrent: limit}}}
}

func statusWith(phase v1alpha1.Phase, reason string) *v1alpha1.KickRequestStatus {
	return &v1alpha1.KickRequestStatus{
		Phase: phase, Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Reason: reason}},
	}
}

func TestSlotsAreHandedOutFairlyAcrossNamespaces(t *testing.T) {
	var woken []workload.Key
	s := newSlots(2, func(keys ...workload.Key) { woken = append(woken, keys...) })
	rolling, done := statusWith(v1alpha1.PhaseExecuting, v1alpha1.ReasonRollingOut), statusWith(v1alpha1.PhaseSucceeded, "")
	var order []workload.Key
	take := func(key workload.Key) {
		if s.take(key, capped(0)) == "" {
			order = append(order, key)
			s.settle(key, capped(0), rolling)
		}
	}
	// A namespace asks for ten restarts before another asks for two.
	for n := range 10 {
		take(deploymentKey("big", n))
	}
	for n := range 2 {
		take(deploymentKey("small", n))
	}
	for i := 0; i < len(order); i++ {
		woken = nil
		s.settle(order[i], capped(0), done)
		for _, key := range slices.Clone(woken) {
			take(key)
		}
	}
	want := []workload.Key{deploymentKey("big", 0), deploymentKey("big", 1), deploymentKey("small", 0), deploymentKey("big", 2)}
	if diff := cmp.Diff(want, order[:4]); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if len(order) != 12 {
		t.Errorf("%d of 12 were restarted", len(order))
	}
}

func TestSlotsAreLimitedByPolicyAndCluster(t *testing.T) {
	for name, tc := range map[string]struct {
		cluster, policy, want int
	}{
		"no limit":          {0, 0, 5},
		"the cluster's":     {3, 0, 3},
		"the policy's":      {0, 2, 2},
		"the lower of both": {3, 4, 3},
	} {
		t.Run(name, func(t *testing.T) {
			s, granted := newSlots(tc.cluster, func(...workload.Key) {}), 0
			for n := range 5 {
				if full := s.take(deploymentKey("shop", n), capped(tc.policy)); full == "" {
					granted++
				}
			}
			if granted != tc.want {
				t.Errorf("%d slots, want %d", granted, tc.want)
			}
		})
	}
}

func TestAWorkloadKeepsItsSlotWhileItRestarts(t *testing.T) {
	held, other := deploymentKey("shop", 1), deploymentKey("shop", 2)
	for name, tc := range map[string]struct {
		status *v1alpha1.KickRequestStatus
		free   bool
	}{
		"its stamp is being written": {statusWith(v1alpha1.PhaseExecuting, v1alpha1.ReasonStamping), false},
		"it rolls out":               {statusWith(v1alpha1.PhaseExecuting, v1alpha1.ReasonRollingOut), false},
		"its stamp is refused":       {statusWith(v1alpha1.PhaseExecuting, v1alpha1.ReasonRestartDenied), true},
		"it waits for a person":      {statusWith(v1alpha1.PhaseExecuting, v1alpha1.ReasonAwaitingManualReplacement), true},
		"it is done":                 {statusWith(v1alpha1.PhaseSucceeded, v1alpha1.ReasonSucceeded), true},
		"it is gone":                 {&v1alpha1.KickRequestStatus{}, true},
		"its gate closed in between": {statusWith(v1alpha1.PhaseWaitingForGate, v1alpha1.ReasonOutsideSchedule), true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSlots(1, func(...workload.Key) {})
			s.take(held, capped(0))
			s.settle(held, capped(0), tc.status)
			if free := s.take(other, capped(0)) == ""; free != tc.free {
				t.Errorf("free: %v, want %v", free, tc.free)
			}
		})
	}
}

// A waiter whose own gate closed must not keep the slot that was meant for it from the next one.
func TestAWaiterThatLeavesMakesRoom(t *testing.T) {
	var woken []workload.Key
	s := newSlots(1, func(keys ...workload.Key) { woken = append(woken, keys...) })
	for n := range 3 {
		s.take(deploymentKey("shop", n), capped(0))
	}
	s.forget(deploymentKey("shop", 0))
	if diff := cmp.Diff([]workload.Key{deploymentKey("shop", 1)}, woken); diff != "" {
		t.Fatalf("woken (-want +got):\n%s", diff)
	}
	if full := s.take(deploymentKey("shop", 2), capped(0)); full == "" {
		t.Error("the slot is given to who came later")
	}
	woken = nil
	s.settle(deploymentKey("shop", 1), capped(0), statusWith(v1alpha1.PhaseWaitingForGate, v1alpha1.ReasonOutsideSchedule))
	if diff := cmp.Diff([]workload.Key{deploymentKey("shop", 2)}, woken); diff != "" {
		t.Errorf("woken (-want +got):\n%s", diff)
	}
}
