package controllers

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	ctrlsource "sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/source"
	"github.com/kick-dev/kick/internal/core/notify"
	"github.com/kick-dev/kick/internal/outbound"
)

// notificationWorkers is to how many receivers messages are sent at the same time: the slowness of one is not that of all.
const notificationWorkers = 8

func notificationNames(name types.NamespacedName) []any { return []any{"notification", name.String()} }

func (s *shell) addKickNotificationController(mgr ctrl.Manager) error {
	cache, remembered := mgr.GetCache(), newTellings()
	return builder.TypedControllerManagedBy[types.NamespacedName](mgr).Named("kicknotification").
		WithOptions(controller.TypedOptions[types.NamespacedName]{
			MaxConcurrentReconciles: notificationWorkers, LogConstructor: logs(mgr, "kicknotification", notificationNames),
			RateLimiter: retries[types.NamespacedName](),
		}).
		WatchesRawSource(ctrlsource.TypedKind[client.Object](cache, &v1alpha1.KickNotification{}, notificationItself())).
		WatchesRawSource(ctrlsource.TypedKind[client.Object](cache, &v1alpha1.KickRequest{}, s.notificationsOfRequest(remembered))).
		WatchesRawSource(ctrlsource.TypedKind[client.Object](cache, source.Metadata(v1alpha1.Secret), s.notificationsOfSecret())).
		Complete(&kickNotificationReconciler{
			client:    s.client,
			sources:   s.sources,
			permitted: s.options.Notifying,
			sender:    outbound.New(s.options.Notifying.UserAgent),
			tellings:  remembered,
			metrics:   s.metrics,
			events:    s.events,
			now:       s.options.Clock.Now,
		})
}

func notificationItself() handles[types.NamespacedName] {
	return onChange(func(_ context.Context, object client.Object) []types.NamespacedName {
		return []types.NamespacedName{client.ObjectKeyFromObject(object)}
	}, respecified)
}

// notificationsOfSecret looks at the notifications that use a Secret which appears, goes, or moves.
func (s *shell) notificationsOfSecret() handles[types.NamespacedName] {
	return newcomers(onChange(func(ctx context.Context, object client.Object) []types.NamespacedName {
		var names []types.NamespacedName
		for _, n := range s.notificationsIn(ctx, object.GetNamespace()) {
			if n.Spec.SecretRef.Name == object.GetName() {
				names = append(names, client.ObjectKeyFromObject(&n))
			}
		}
		return names
	}, moved))
}

// notificationsOfRequest tells the notifications of a namespace about a request that appears or moves on. An end is
// remembered, since the request may be open again by the time that there is a worker for it.
func (s *shell) notificationsOfRequest(remembered *tellings) handles[types.NamespacedName] {
	add := func(ctx context.Context, request *v1alpha1.KickRequest, ended *notify.Event, q queue[types.NamespacedName]) {
		for _, n := range s.notificationsIn(ctx, request.Namespace) {
			name := client.ObjectKeyFromObject(&n)
			if ended != nil {
				remembered.of(name).see(request.UID, *ended)
			}
			q.Add(name)
		}
	}
	return handler.TypedFuncs[client.Object, types.NamespacedName]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[client.Object], q queue[types.NamespacedName]) {
			if request, ok := e.Object.(*v1alpha1.KickRequest); ok {
				add(ctx, request, nil, q)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[client.Object], q queue[types.NamespacedName]) {
			before, _ := e.ObjectOld.(*v1alpha1.KickRequest)
			after, _ := e.ObjectNew.(*v1alpha1.KickRequest)
			if before == nil || after == nil || !movedOn(before, after) {
				return
			}
			end := notify.End(after)
			if former := notify.End(before); end != nil && former != nil && former.ID == end.ID {
				end = nil
			}
			add(ctx, after, end, q)
		},
	}
}

// movedOn tells whether there may be something else to tell about a request.
func movedOn(before, after *v1alpha1.KickRequest) bool {
	ready := func(request *v1alpha1.KickRequest) (at int64) {
		if condition := meta.FindStatusCondition(request.Status.Conditions, v1alpha1.ConditionReady); condition != nil {
			at = condition.LastTransitionTime.Unix()
		}
		return at
	}
	return before.Status.Phase != after.Status.Phase || ready(before) != ready(after) ||
		!before.Status.CompletedAt.Equal(after.Status.CompletedAt)
}

func (s *shell) notificationsIn(ctx context.Context, namespace string) []v1alpha1.KickNotification {
	var list v1alpha1.KickNotificationList
	if err := s.client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list the notifications of a namespace", "namespace", namespace)
	}
	return list.Items
}
