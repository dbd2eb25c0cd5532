package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/source"
	"github.com/kick-dev/kick/internal/core/notify"
	"github.com/kick-dev/kick/internal/outbound"
	"github.com/kick-dev/kick/internal/report"
)

// +kubebuilder:rbac:groups=kick.dev,resources=kicknotifications,verbs=get;list;watch
// +kubebuilder:rbac:groups=kick.dev,resources=kicknotifications/status,verbs=patch
// +kubebuilder:rbac:groups=kick.dev,resources=kickrequests,verbs=patch

// Notifying is what whoever runs KICK permits to notifications.
type Notifying struct {
	// Hosts are those that messages may go to; without any, none is sent.
	Hosts notify.Hosts
	// Secrets may be used without the label that marks them.
	Secrets map[types.NamespacedName]bool
	// UserAgent is how messages introduce their sender.
	UserAgent string
}

// maxSends is how many messages of one notification go out before others have their turn.
const maxSends = 20

// kickNotificationReconciler sends what there is to tell about the requests of a namespace. It has a queue and workers of
// its own, and no restart waits for it. Its messages leave one at a time for each notification, in the order in which things
// happened; while the receiver takes none, what is to be told is kept on the requests.
type kickNotificationReconciler struct {
	client    client.Client
	sources   *source.Reader
	permitted Notifying
	sender    *outbound.Sender
	tellings  *tellings
	metrics   *report.Metrics
	events    *report.Events
	now       func() time.Time
}

// Reconcile implements reconcile.TypedReconciler.
func (r *kickNotificationReconciler) Reconcile(ctx context.Context, name types.NamespacedName) (ctrl.Result, error) {
	present := &v1alpha1.KickNotification{}
	if err := r.client.Get(ctx, name, present); err != nil {
		r.metrics.NotificationsPending(r.tellings.forget(name))
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	t := &telling{kickNotificationReconciler: r, notification: present, state: r.tellings.of(name)}
	if err := t.gather(ctx); err != nil {
		return ctrl.Result{}, err
	}
	verdict, err := t.tell(ctx)
	r.metrics.NotificationsPending(r.tellings.pending(t.state, t.left()))
	if err := errors.Join(err, r.save(ctx, present, verdict)); err != nil {
		if lostRace(err) {
			return ctrl.Result{RequeueAfter: raceDelay}, nil
		}
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: t.recheck()}, nil
}

// verdict is what the conditions of a notification say.
type verdict struct {
	reason, message string
	// stalled is true where a person has to act, failing where the receiver takes no message at present.
	stalled, failing bool
}

// inForce is the verdict on a notification with which all is well.
var inForce = verdict{reason: v1alpha1.ReasonSucceeded, message: "messages are sent"}

// save stores the conditions, if they have changed, and then says so.
func (r *kickNotificationReconciler) save(ctx context.Context, present *v1alpha1.KickNotification, v verdict) error {
	changed := present.DeepCopy()
	changed.Status.ObservedGeneration = present.Generation
	is := map[bool]metav1.ConditionStatus{true: metav1.ConditionTrue, false: metav1.ConditionFalse}
	for _, c := range []struct {
		kind   string
		status bool
	}{
		{v1alpha1.ConditionReady, !v.stalled && !v.failing},
		{v1alpha1.ConditionReconciling, v.failing},
		{v1alpha1.ConditionStalled, v.stalled},
	} {
		meta.SetStatusCondition(&changed.Status.Conditions, metav1.Condition{
			Type: c.kind, Status: is[c.status], Reason: v.reason, Message: v.message,
			ObservedGeneration: present.Generation, LastTransitionTime: metav1.NewTime(r.now().Truncate(time.Second)),
		})
	}
	if equality.Semantic.DeepEqual(changed.Status, present.Status) {
		return nil
	}
	patch := client.MergeFromWithOptions(present, client.MergeFromWithOptimisticLock{})
	if err := r.client.Status().Patch(ctx, changed, patch, client.FieldOwner(v1alpha1.FieldManager)); err != nil {
		return fmt.Errorf("store the status of notification %s: %w", client.ObjectKeyFromObject(present), err)
	}
	before := meta.FindStatusCondition(present.Status.Conditions, v1alpha1.ConditionReady)
	if before == nil || before.Reason != v.reason {
		ctrl.LoggerFrom(ctx).Info("notification moved", "reason", v.reason, "message", v.message)
		r.events.NotificationMoved(changed, v.reason, v.message, v.stalled)
	}
	return nil
}
