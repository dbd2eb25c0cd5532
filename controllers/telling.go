package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/source"
	"github.com/kick-dev/kick/internal/core/deps"
	"github.com/kick-dev/kick/internal/core/notify"
	"github.com/kick-dev/kick/internal/report"
)

// telling is one look at what a notification has to tell.
type telling struct {
	*kickNotificationReconciler
	notification *v1alpha1.KickNotification
	state        *tellingState

	now      time.Time
	requests map[types.UID]*v1alpha1.KickRequest
	untold   []untold
	// dueAt is when a request that is open will have waited too long, zero for none.
	dueAt time.Time
}

// untold is an event with the request that it is about.
type untold struct {
	notify.Event
	request *v1alpha1.KickRequest
}

// gather finds what has not been told yet, from the requests, from what is recorded on them, and from what was seen of them.
func (t *telling) gather(ctx context.Context) error {
	t.now = t.kickNotificationReconciler.now()
	var list v1alpha1.KickRequestList
	if err := t.client.List(ctx, &list, client.InNamespace(t.notification.Namespace)); err != nil {
		return fmt.Errorf("list the requests of notification %s: %w", client.ObjectKeyFromObject(t.notification), err)
	}
	t.requests = make(map[types.UID]*v1alpha1.KickRequest, len(list.Items))
	for i := range list.Items {
		t.requests[list.Items[i].UID] = &list.Items[i]
	}
	t.state.prune(t.requests, t.notification.Name)
	owner := map[string]*v1alpha1.KickRequest{}
	var events []notify.Event
	for _, request := range t.requests {
		for _, event := range t.about(request) {
			owner[event.ID] = request
			events = append(events, event)
		}
	}
	for _, event := range notify.InOrder(events) {
		t.untold = append(t.untold, untold{Event: event, request: owner[event.ID]})
	}
	return nil
}

// about lists what is untold of one request.
func (t *telling) about(request *v1alpha1.KickRequest) []notify.Event {
	record := t.state.record(request, t.notification.Name)
	events := slices.Clone(record.Pending)
	fresh := t.state.seenOf(request.UID)
	if end := notify.End(request); end != nil {
		fresh = append(fresh, *end)
	}
	for _, end := range fresh {
		if t.asked(end.Type) && !end.Time.Time.Before(t.notification.CreationTimestamp.Time) && record.Untold(end) {
			events = append(events, end)
		}
	}
	if !t.asked(v1alpha1.NotifyWaitingTooLong) {
		return events
	}
	waiting, dueAt := notify.Waiting(request, t.threshold(), t.now)
	if waiting != nil && record.Untold(*waiting) {
		events = append(events, *waiting)
	}
	if !dueAt.IsZero() && (t.dueAt.IsZero() || dueAt.Before(t.dueAt)) {
		t.dueAt = dueAt
	}
	return events
}

func (t *telling) asked(kind v1alpha1.NotificationEvent) bool {
	return slices.Contains(t.notification.Spec.Events, kind)
}

// defaultThreshold is that of the CRD.
const defaultThreshold = time.Hour

func (t *telling) threshold() time.Duration {
	if t.notification.Spec.WaitingThreshold == nil {
		return defaultThreshold
	}
	return t.notification.Spec.WaitingThreshold.Duration
}

// tell sends what is untold, as far as the receiver takes it, and keeps the rest.
func (t *telling) tell(ctx context.Context) (verdict, error) {
	if err := t.flush(ctx); err != nil {
		return t.lastVerdict(), err
	}
	endpoint, fault, err := t.endpoint(ctx)
	if err != nil {
		return t.lastVerdict(), err
	}
	if fault != nil {
		return *fault, t.keep(ctx)
	}
	if t.now.Before(t.state.notBefore) {
		return t.lastVerdict(), t.keep(ctx)
	}
	for range maxSends {
		if len(t.untold) == 0 {
			break
		}
		if moved, err := t.next(ctx, endpoint); err != nil || !moved {
			return t.lastVerdict(), errors.Join(err, t.keep(ctx))
		}
	}
	return t.lastVerdict(), nil
}

// next deals with the first event, and reports whether it is done with.
func (t *telling) next(ctx context.Context, endpoint notify.Endpoint) (bool, error) {
	event, format := t.untold[0], t.notification.Spec.Format
	if event.Expired(t.now) || !t.asked(event.Type) {
		t.metrics.Notified(format, report.MessageDropped)
		ctrl.LoggerFrom(ctx).Info("gave a message up", "request", event.Request, "workload", event.Workload.Name, "event", event.Type,
			"id", event.ID, "reason", "it is too old, or no longer asked for")
		return true, t.settle(ctx)
	}
	message, err := notify.Compose(event.Event, format)
	if err != nil {
		return false, err
	}
	outcome := t.sender.Send(ctx, endpoint, message)
	log := ctrl.LoggerFrom(ctx).WithValues("request", event.Request, "workload", event.Workload.Name, "event", event.Type, "id", event.ID)
	if outcome.Delivered() {
		t.metrics.Notified(format, report.MessageDelivered)
		log.Info("sent a message")
		t.state.succeeded()
		return true, t.settle(ctx)
	}
	if ctx.Err() != nil {
		return false, ctx.Err() // The manager ends; the next one sends it.
	}
	if t.state.failed(event.ID, outcome, t.kickNotificationReconciler.now()) {
		t.metrics.Notified(format, report.MessageDropped)
		log.Info("gave a message up", "reason", outcome.Failure)
		return true, t.settle(ctx)
	}
	t.metrics.Notified(format, report.MessageFailed)
	log.Info("could not send a message; will be tried again", "reason", outcome.Failure, "failures", t.state.failures)
	return false, nil
}

// settle records that the first event is done with.
func (t *telling) settle(ctx context.Context) error {
	event := t.untold[0]
	t.untold = t.untold[1:]
	t.state.unsee(event.ID)
	record := t.state.record(event.request, t.notification.Name)
	return t.write(ctx, event.request, record.Settle(event.Event))
}

// keep records what could not be told, so that it is not lost with this manager, or when the request goes on.
func (t *telling) keep(ctx context.Context) error {
	for _, event := range t.untold {
		record, news := t.state.record(event.request, t.notification.Name).Defer(event.Event)
		if !news {
			continue
		}
		if err := t.write(ctx, event.request, record); err != nil {
			return err
		}
		t.state.unsee(event.ID)
	}
	return nil
}

// write makes a record durable. Until that has succeeded it is remembered: what was told is not told again because the API
// server did not answer.
func (t *telling) write(ctx context.Context, request *v1alpha1.KickRequest, record notify.Record) error {
	t.state.remember(request.UID, record, false)
	text, err := record.Text()
	if err != nil {
		return err
	}
	// The UID keeps it off a later request of the same name.
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"annotations":{%q:%q}}}`,
		request.UID, notify.AnnotationOf(t.notification.Name), text)
	target := &v1alpha1.KickRequest{}
	target.Namespace, target.Name = request.Namespace, request.Name
	err = t.client.Patch(ctx, target, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(v1alpha1.FieldManager))
	if err != nil && !lostRace(err) { // A request that is gone has nothing to be recorded on.
		return fmt.Errorf("record on request %s what was told: %w", client.ObjectKeyFromObject(request), err)
	}
	t.state.remember(request.UID, record, true)
	return nil
}

// flush writes what could not be written before.
func (t *telling) flush(ctx context.Context) error {
	for uid, record := range t.state.unwritten() {
		if err := t.write(ctx, t.requests[uid], record); err != nil {
			return err
		}
	}
	return nil
}

// endpoint reads where to send to, or says why nothing can be sent. The Secret is read only if something is to be sent, or if
// it or the notification has changed.
func (t *telling) endpoint(ctx context.Context) (notify.Endpoint, *verdict, error) {
	name := types.NamespacedName{Namespace: t.notification.Namespace, Name: t.notification.Spec.SecretRef.Name}
	metadata, err := t.sources.Metadata(ctx, source.Key{
		Namespace: name.Namespace, Source: deps.Source{Kind: v1alpha1.Secret, Name: name.Name},
	})
	if err != nil {
		return notify.Endpoint{}, nil, err
	}
	if metadata == nil {
		return t.unusable(v1alpha1.ReasonSecretMissing, "the Secret %s does not exist; create it with the label %s: \"true\"",
			name.Name, v1alpha1.NotificationSecretLabel)
	}
	if metadata.Labels[v1alpha1.NotificationSecretLabel] != "true" && !t.permitted.Secrets[name] {
		return t.unusable(v1alpha1.ReasonSecretNotPermitted, "the Secret %s has no label %s: \"true\", which notifications need; add it",
			name.Name, v1alpha1.NotificationSecretLabel)
	}
	known := t.state.takeOver(t.notification.Generation, metadata.ResourceVersion)
	if known && len(t.untold) == 0 {
		return notify.Endpoint{}, t.state.fault, nil
	}
	secret := &corev1.Secret{}
	if err := t.client.Get(ctx, name, secret); err != nil {
		return notify.Endpoint{}, nil, fmt.Errorf("read the Secret of notification %s: %w",
			client.ObjectKeyFromObject(t.notification), err)
	}
	endpoint, err := notify.Parse(secret.Data)
	if err != nil {
		return t.unusable(v1alpha1.ReasonSecretInvalid, "the Secret %s cannot be used: %w", name.Name, err)
	}
	if !t.permitted.Hosts.Permit(endpoint.URL) {
		return t.unusable(v1alpha1.ReasonHostNotPermitted,
			"whoever runs KICK permits no messages to the host of the URL in the Secret %s; "+
				"have it added to notifications.allowedHosts of the chart (--notification-hosts)", name.Name)
	}
	t.state.fault = nil
	return endpoint, nil, nil
}

func (t *telling) unusable(reason, format string, arguments ...any) (notify.Endpoint, *verdict, error) {
	t.state.fault = &verdict{reason: reason, message: fmt.Errorf(format, arguments...).Error(), stalled: true}
	return notify.Endpoint{}, t.state.fault, nil
}

// lastVerdict is what the last attempt has shown.
func (t *telling) lastVerdict() verdict {
	switch {
	case t.state.fault != nil:
		return *t.state.fault
	case t.state.failure != "":
		then := "; messages are kept and sent again"
		if len(t.untold) == 0 {
			then = "; the message was given up"
		}
		return verdict{reason: v1alpha1.ReasonDeliveryFailing, message: t.state.failure + then, failing: true}
	default:
		return inForce
	}
}

// left is how many events are still to be told.
func (t *telling) left() int { return len(t.untold) }

// recheck is the time until the next look, zero for none.
func (t *telling) recheck() time.Duration {
	var next time.Time
	switch {
	case len(t.untold) > 0 && t.state.fault == nil:
		next = t.state.notBefore // In the past after the turn of others.
	case t.dueAt.IsZero():
		return 0
	default:
		next = t.dueAt
	}
	return max(next.Sub(t.kickNotificationReconciler.now()), time.Millisecond)
}
