package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/facts"
	"github.com/kick-dev/kick/internal/cluster/ledger"
	"github.com/kick-dev/kick/internal/cluster/servertime"
	"github.com/kick-dev/kick/internal/cluster/source"
	"github.com/kick-dev/kick/internal/cluster/workload"
	"github.com/kick-dev/kick/internal/core/observation"
	"github.com/kick-dev/kick/internal/core/request"
	"github.com/kick-dev/kick/internal/report"
)

// raceDelay is the pause before a decision is made again that lost a race against another writer.
const raceDelay = 100 * time.Millisecond

// kickRequestReconciler drives the request of one workload: gather, decide, store, act. Its keys are workloads, with or
// without a request.
type kickRequestReconciler struct {
	scopes    *facts.Scopes
	workloads *workload.Client
	ledger    *ledger.Store
	requests  *requests
	coalescer *coalescer
	clock     *servertime.Clock
	settings  request.Settings
	events    *report.Events
	metrics   *report.Metrics
	traces    *report.Traces

	gatherer *facts.Gatherer
	attempts *attempts
	judged   *judged
	slots    *slots
	rush     *rush
}

// Reconcile implements reconcile.TypedReconciler.
func (r *kickRequestReconciler) Reconcile(ctx context.Context, key workload.Key) (ctrl.Result, error) {
	defer r.rush.decided(key)
	result, err := r.reconcile(ctx, key)
	if lostRace(err) || errors.Is(err, workload.ErrMoved) {
		ctrl.LoggerFrom(ctx).V(1).Info("deciding again", "because", err.Error())
		return ctrl.Result{RequeueAfter: raceDelay}, nil
	}
	return result, err
}

func (r *kickRequestReconciler) reconcile(ctx context.Context, key workload.Key) (ctrl.Result, error) {
	if err := r.load(ctx); err != nil {
		return ctrl.Result{}, err
	}
	target, err := r.workloads.Cached(ctx, key)
	if err != nil {
		return ctrl.Result{}, err
	}
	if target == nil {
		r.gatherer.Revisions.Forget(key)
		r.gatherer.Moves.Forget(key)
		r.judged.forget(key)
		r.slots.forget(key)
		return ctrl.Result{}, r.orphaned(ctx, key)
	}
	present, err := r.requests.get(ctx, key)
	if err != nil {
		return ctrl.Result{}, err
	}
	if present != nil && present.Spec.TargetRef.UID != target.UID() {
		if err := r.discard(ctx, present); err != nil {
			return ctrl.Result{}, err
		}
		present = nil
	}
	if present == nil {
		r.slots.forget(key)
		return ctrl.Result{}, r.consider(ctx, target)
	}
	return r.advance(ctx, present, target)
}

// load takes over what earlier leaders left.
func (r *kickRequestReconciler) load(ctx context.Context) error {
	if err := r.ledger.Load(ctx); err != nil {
		return err
	}
	return r.slots.load(ctx, r.requests.client, r.workloads, r.scopes)
}

// orphaned removes the request of a workload that is gone, if it was made by hand: others go with their owner.
func (r *kickRequestReconciler) orphaned(ctx context.Context, key workload.Key) error {
	present, err := r.requests.get(ctx, key)
	if err != nil || present == nil || len(present.OwnerReferences) > 0 {
		return err
	}
	return r.discard(ctx, present)
}

// discard removes a request whose workload is gone. The cache may only not show yet the workload that a request made by
// hand is about, so that is looked up.
func (r *kickRequestReconciler) discard(ctx context.Context, present *v1alpha1.KickRequest) error {
	if len(present.OwnerReferences) == 0 {
		live, err := r.workloads.Read(ctx, keyOfRequest(present))
		if err != nil {
			return err
		}
		if live != nil && live.UID() == present.Spec.TargetRef.UID {
			return fmt.Errorf("decide about request %s: %w", client.ObjectKeyFromObject(present), workload.ErrMoved)
		}
	}
	return r.requests.remove(ctx, present)
}

// consider makes a request for a workload that has none, if its Pods are stale: it may have come into scope with a
// source that changed before.
func (r *kickRequestReconciler) consider(ctx context.Context, target *workload.Workload) error {
	g := r.gatherer.Begin(target)
	if err := g.Refresh(ctx); err != nil {
		return err
	}
	if r.judged.covers(target, g.Facts.Changes) {
		return nil
	}
	for {
		stale, need := request.Warranted(g.Facts)
		switch {
		case need != request.NeedNothing:
			if exists, err := g.Supply(ctx, need); err != nil || !exists {
				return err
			}
		case stale:
			return r.coalescer.ensure(ctx, facts.Consumer{Workload: g.Workload, Scope: g.Facts.Scope})
		default:
			if g.Facts.Evidence.Rollout.Complete {
				r.judged.remember(target, g.Facts.Changes)
			}
			return nil
		}
	}
}

// advance takes an existing request one step further.
func (r *kickRequestReconciler) advance(
	ctx context.Context, present *v1alpha1.KickRequest, target *workload.Workload,
) (ctrl.Result, error) {
	g := r.gatherer.Begin(target)
	if err := r.prepare(ctx, g, present); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.clock.Confirm(ctx); err != nil {
		return ctrl.Result{}, fmt.Errorf("ask the API server for the time: %w", err)
	}
	for {
		now := r.clock.Now()
		step := request.Next(present.Status, g.Facts, r.settings, now)
		if step.Need == request.NeedNothing {
			r.slots.settle(g.Workload.Key, g.Facts.Scope, &step.Status)
			return r.apply(ctx, present, g, step, now)
		}
		if exists, err := g.Supply(ctx, step.Need); err != nil || !exists {
			return ctrl.Result{}, err
		}
	}
}

// prepare gathers about a request what costs no request to the API server.
func (r *kickRequestReconciler) prepare(ctx context.Context, g *facts.Gathering, present *v1alpha1.KickRequest) error {
	g.Restarts = true
	g.Unsettled = request.Unsettled(&present.Status, g.Workload.Stamp()) && !r.attempts.wasPutOff(present)
	g.Facts.RequestGeneration, g.Facts.Manual = present.Generation, present.Spec.Manual
	r.attempts.recall(present, &g.Facts)
	if err := g.Refresh(ctx); err != nil {
		return err
	}
	g.AskOwners(ctx)
	return nil
}

// foresee reads ahead what will be needed to decide about a workload once the record of a source is the given one. Nothing
// depends on it but how soon the decision is made.
func (r *kickRequestReconciler) foresee(ctx context.Context, key workload.Key, changed source.Key, record observation.Record) {
	target, err := r.workloads.Cached(ctx, key)
	if err != nil || target == nil {
		return
	}
	present, err := r.requests.get(ctx, key)
	if err != nil || present == nil || present.Spec.TargetRef.UID != target.UID() {
		return
	}
	g := r.gatherer.BeginWith(target, changed, record)
	if err := r.prepare(ctx, g, present); err != nil {
		return
	}
	g.ReadAhead(ctx, request.Next(present.Status, g.Facts, r.settings, r.clock.Now()).Need)
}

// apply stores the status of a step and then carries out its action, if it has one.
func (r *kickRequestReconciler) apply(
	ctx context.Context, present *v1alpha1.KickRequest, g *facts.Gathering, step request.Step, now time.Time,
) (ctrl.Result, error) {
	if step.Delete {
		return ctrl.Result{}, r.requests.remove(ctx, present)
	}
	stored := present
	if !equality.Semantic.DeepEqual(present.Status, step.Status) {
		var err error
		if stored, err = r.requests.saveStatus(ctx, present, step.Status); err != nil {
			return ctrl.Result{}, err
		}
		r.traces.Moved(present, stored, now)
		r.announce(ctx, present, stored, g.Workload)
	}
	if step.Stamp != "" {
		r.attempts.setDecided(stored, step.Stamp)
		if delay := r.putOff(stored, g, now); delay > 0 {
			return ctrl.Result{RequeueAfter: delay}, nil
		}
		return r.stamp(ctx, stored, g.Workload, step.Stamp)
	}
	r.attempts.endPutOff(stored)
	if step.RecheckAt.IsZero() {
		return ctrl.Result{}, nil
	}
	again := max(step.RecheckAt.Sub(now), time.Millisecond)
	if request.Restarting(&stored.Status) {
		return unhurriedly(again), nil
	}
	return ctrl.Result{RequeueAfter: again}, nil
}

// putOff puts a restart on record off in a rush, if it can be decided about again without asking the API server. It returns for
// how long, zero for not at all.
func (r *kickRequestReconciler) putOff(stored *v1alpha1.KickRequest, g *facts.Gathering, now time.Time) time.Duration {
	since := r.attempts.putOffSince(stored, now)
	delay := r.rush.delay(g.Workload.Key, since, now)
	if delay == 0 || !g.Keep() {
		return 0
	}
	r.attempts.setPutOff(stored, since)
	return delay
}

// unhurriedly looks again at a restart under way. What becomes of it can wait for restarts that are due, also where it is
// told before: the queue keeps the higher priority of two.
func unhurriedly(after time.Duration) ctrl.Result {
	return ctrl.Result{RequeueAfter: after, Priority: ptr.To(handler.LowPriority)}
}

// stamp writes the decided stamp to the workload.
func (r *kickRequestReconciler) stamp(
	ctx context.Context, stored *v1alpha1.KickRequest, target *workload.Workload, value string,
) (ctrl.Result, error) {
	r.attempts.endPutOff(stored)
	err := r.workloads.Stamp(ctx, target, value)
	switch {
	case err == nil:
		r.attempts.setIssued(stored, value)
		r.metrics.Restarted(target.Key.Kind, report.OutcomeStamped)
		if latest := stored.Status.LatestObservedDependencyChange; latest != nil {
			r.metrics.Stamped(r.clock.Now().Sub(latest.Time))
		}
		r.events.Kicked(target.Object(), stored)
		ctrl.LoggerFrom(ctx).Info("restarted the workload", "stamp", value)
		return unhurriedly(r.settings.RolloutDeadline), nil
	case refused(err):
		r.attempts.setDenied(stored, value, err.Error(), r.clock.Now())
		r.metrics.Restarted(target.Key.Kind, report.OutcomeDenied)
		return ctrl.Result{RequeueAfter: time.Millisecond}, nil
	default:
		return ctrl.Result{}, err
	}
}

// refused tells an answer that trying again at once will not change: a missing right, an admission policy.
func refused(err error) bool {
	return errors.Is(err, workload.ErrDropped) || apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsMethodNotSupported(err)
}

// keyOfRequest names the workload of a request.
func keyOfRequest(object *v1alpha1.KickRequest) workload.Key {
	target := object.Spec.TargetRef
	return workload.Key{Namespace: object.Namespace, Kind: target.Kind, Name: target.Name}
}
