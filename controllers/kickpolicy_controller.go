package controllers

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/facts"
	"github.com/kick-dev/kick/internal/cluster/owner"
	"github.com/kick-dev/kick/internal/cluster/source"
	"github.com/kick-dev/kick/internal/cluster/workload"
	"github.com/kick-dev/kick/internal/core/gitops"
	"github.com/kick-dev/kick/internal/core/policy"
)

// samplePeriod is the shortest time between two writes of a policy's counts.
const samplePeriod = time.Minute

// kickPolicyReconciler reports on policies. That a policy acts is no work of its own: the other controllers read
// policies whenever they decide.
type kickPolicyReconciler struct {
	client    client.Client
	scopes    *facts.Scopes
	workloads *workload.Client
	sources   *source.Reader
	owners    *owner.Reader
	now       func() time.Time
	samples   samples
}

// Reconcile implements reconcile.TypedReconciler.
func (r *kickPolicyReconciler) Reconcile(ctx context.Context, name types.NamespacedName) (ctrl.Result, error) {
	present := &v1alpha1.KickPolicy{}
	if err := r.client.Get(ctx, name, present); err != nil {
		r.samples.forget(name)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	parsed, faults := policy.Parse(present)
	status := *present.Status.DeepCopy()
	r.conditions(ctx, &status, present, parsed, faults)
	result, err := r.count(ctx, &status, present, parsed)
	if err != nil || equality.Semantic.DeepEqual(status, present.Status) {
		return result, err
	}
	changed := present.DeepCopy()
	changed.Status = status
	patch := client.MergeFromWithOptions(present, client.MergeFromWithOptimisticLock{})
	if err := r.client.Status().Patch(ctx, changed, patch, client.FieldOwner(v1alpha1.FieldManager)); err != nil {
		if lostRace(err) {
			return ctrl.Result{RequeueAfter: raceDelay}, nil
		}
		return ctrl.Result{}, fmt.Errorf("store the status of policy %s: %w", name, err)
	}
	return result, nil
}

// conditions derives the trio from the faults and the spec.
func (r *kickPolicyReconciler) conditions(
	ctx context.Context, status *v1alpha1.KickPolicyStatus, present *v1alpha1.KickPolicy, parsed policy.Policy, faults field.ErrorList,
) {
	ready, stalled := metav1.ConditionTrue, metav1.ConditionFalse
	reason, message := v1alpha1.ReasonSucceeded, "the policy is in force"
	switch {
	case present.Namespace == r.scopes.Reserved:
		ready, stalled = metav1.ConditionFalse, metav1.ConditionTrue
		reason, message = v1alpha1.ReasonReservedNamespace, "KICK does not manage its own namespace; move the policy to another one"
	case len(faults) > 0:
		ready, stalled = metav1.ConditionFalse, metav1.ConditionTrue
		reason, message = v1alpha1.ReasonSelectorInvalid, faults.ToAggregate().Error()
		if parsed.SelectorsValid {
			reason = v1alpha1.ReasonScheduleInvalid
		}
	case present.Spec.DryRun && !present.Spec.Suspend:
		message = "the policy is in force as a dry run: it restarts nothing"
	case present.Spec.Suspend:
		reason, message = v1alpha1.ReasonSuspended, "changes are observed, restarts wait until spec.suspend is false"
	case r.lacksProvider(ctx, parsed):
		ready, stalled = metav1.ConditionFalse, metav1.ConditionTrue
		reason, message = v1alpha1.ReasonProviderUnavailable, gitops.NotInstalled(parsed.Provider)
	}
	status.ObservedGeneration = present.Generation
	for _, condition := range []metav1.Condition{
		{Type: v1alpha1.ConditionReady, Status: ready},
		{Type: v1alpha1.ConditionReconciling, Status: metav1.ConditionFalse},
		{Type: v1alpha1.ConditionStalled, Status: stalled},
	} {
		condition.Reason, condition.Message = reason, message
		r.set(status, present, condition)
	}
}

func (r *kickPolicyReconciler) set(status *v1alpha1.KickPolicyStatus, present *v1alpha1.KickPolicy, condition metav1.Condition) {
	condition.ObservedGeneration = present.Generation
	condition.LastTransitionTime = metav1.NewTime(r.now().Truncate(time.Second))
	meta.SetStatusCondition(&status.Conditions, condition)
}

// count samples how many workloads and sources the policy covers: at once for a new generation, and otherwise no more
// often than once in a samplePeriod.
func (r *kickPolicyReconciler) count(
	ctx context.Context, status *v1alpha1.KickPolicyStatus, present *v1alpha1.KickPolicy, parsed policy.Policy,
) (ctrl.Result, error) {
	name := client.ObjectKeyFromObject(present)
	fresh := present.Status.ObservedGeneration == present.Generation
	if wait := r.samples.wait(name, r.now()); fresh && wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	found, err := r.survey(ctx, present.Namespace, parsed)
	if err != nil {
		return ctrl.Result{}, err
	}
	r.samples.take(name, r.now())
	status.MatchedWorkloads, status.ObservedSources = &found.workloads, &found.sources
	r.setExclusive(status, present, found.shared)
	return ctrl.Result{}, nil
}

// samples remembers when the counts of each policy were taken.
type samples struct {
	mu    sync.Mutex
	taken map[types.NamespacedName]time.Time
}

// wait is the time until the next sample may be taken, zero or less if it may be now.
func (s *samples) wait(name types.NamespacedName, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken[name].Add(samplePeriod).Sub(now)
}

func (s *samples) forget(name types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.taken, name)
}

func (s *samples) take(name types.NamespacedName, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken == nil {
		s.taken = map[types.NamespacedName]time.Time{}
	}
	s.taken[name] = now
}
