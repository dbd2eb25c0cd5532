package controllers

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/workload"
	"github.com/kick-dev/kick/internal/report"
)

// announce reports a stored transition: a new phase or reason, and under a dry run each change.
func (r *kickRequestReconciler) announce(ctx context.Context, old, stored *v1alpha1.KickRequest, target *workload.Workload) {
	before := meta.FindStatusCondition(old.Status.Conditions, v1alpha1.ConditionReady)
	after := meta.FindStatusCondition(stored.Status.Conditions, v1alpha1.ConditionReady)
	if after.Reason == v1alpha1.ReasonDryRun && !equality.Semantic.DeepEqual(old.Status.Causes, stored.Status.Causes) {
		r.events.DryRun(target.Object(), stored)
		return
	}
	if before != nil && before.Reason == after.Reason && old.Status.Phase == stored.Status.Phase {
		return
	}
	phase := stored.Status.Phase
	ctrl.LoggerFrom(ctx).Info("request moved", "from", string(old.Status.Phase), "to", string(phase),
		"reason", after.Reason, "message", after.Message)
	switch phase {
	case v1alpha1.PhaseSucceeded:
		r.metrics.Restarted(target.Key.Kind, report.OutcomeSucceeded)
		if current := stored.Status.CurrentRollout; current != nil {
			r.metrics.Completed(r.clock.Now().Sub(current.StartedAt.Time))
		}
	case v1alpha1.PhaseFailed:
		r.metrics.Restarted(target.Key.Kind, report.OutcomeFailed)
	default:
	}
	if worthAnEvent(phase, before, after) {
		stalled := meta.IsStatusConditionTrue(stored.Status.Conditions, v1alpha1.ConditionStalled)
		r.events.Transitioned(target.Object(), stored, after.Reason, after.Message, stalled)
	}
}

// worthAnEvent leaves out what says nothing to whoever reads the events of a workload.
func worthAnEvent(phase v1alpha1.Phase, before, after *metav1.Condition) bool {
	switch phase {
	case v1alpha1.PhasePending:
		return false
	case v1alpha1.PhaseNoLongerRequired:
		return before != nil // Found fresh at first sight: nothing has happened.
	case v1alpha1.PhaseWaitingForGate:
		return after.Reason != v1alpha1.ReasonQuietPeriod // Seconds before every restart.
	case v1alpha1.PhaseExecuting:
		// The event of the stamp says it.
		return after.Reason != v1alpha1.ReasonStamping && after.Reason != v1alpha1.ReasonRollingOut
	default:
		return true
	}
}
