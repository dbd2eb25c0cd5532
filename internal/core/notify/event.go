// Package notify decides what a KickNotification tells about a KickRequest, and what its messages look like. It sends
// nothing.
//
// What there is to tell is derived from the status of the request, and what has been told is recorded on the request
// itself, so that nothing depends on the memory of a manager: a message is told at least once. Its id is made of the
// request, of what happened and of when it happened, and is the same however often it is told.
package notify

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kick-dev/kick/api/v1alpha1"
)

// Event is something to tell. Its JSON is the body of a message in the format JSON, and the data of a CloudEvent.
type Event struct {
	// ID is the same whenever this event is told, and no other event has it.
	ID string `json:"id"`
	// Type is what happened.
	Type v1alpha1.NotificationEvent `json:"type"`
	// Time is when it happened.
	Time metav1.MicroTime `json:"time"`
	// Namespace of the request and the workload.
	Namespace string `json:"namespace"`
	// Request is the name of the request.
	Request string `json:"request"`
	// Workload is what is restarted.
	Workload Workload `json:"workload"`
	// Phase and Reason are those of the request, Message says them in words.
	Phase   v1alpha1.Phase `json:"phase"`
	Reason  string         `json:"reason"`
	Message string         `json:"message"`
	// Causes are the changes that the restart is about, by name. CausesOmitted counts those that are left out.
	Causes        []v1alpha1.SourceChange `json:"causes,omitempty"`
	CausesOmitted int32                   `json:"causesOmitted,omitempty"`
}

// Workload names a workload.
type Workload struct {
	Kind v1alpha1.WorkloadKind `json:"kind"`
	Name string                `json:"name"`
}

// End is what a request tells by having ended, nil if it has not, or in a way that is not told.
func End(request *v1alpha1.KickRequest) *Event {
	var kind v1alpha1.NotificationEvent
	switch request.Status.Phase {
	case v1alpha1.PhaseSucceeded:
		kind = v1alpha1.NotifySucceeded
	case v1alpha1.PhaseFailed:
		kind = v1alpha1.NotifyFailed
	default:
		return nil
	}
	if request.Status.CompletedAt == nil {
		return nil
	}
	return about(request, kind, *request.Status.CompletedAt)
}

// Waiting is what a request tells by having been open for the threshold, nil if it has not. Then dueAt is when it will
// have been, zero for a request that is not open.
func Waiting(request *v1alpha1.KickRequest, threshold time.Duration, now time.Time) (event *Event, dueAt time.Time) {
	ready := meta.FindStatusCondition(request.Status.Conditions, v1alpha1.ConditionReady)
	if request.Status.Phase.Terminal() || ready == nil {
		return nil, time.Time{}
	}
	dueAt = ready.LastTransitionTime.Add(threshold)
	if now.Before(dueAt) {
		return nil, dueAt
	}
	return about(request, v1alpha1.NotifyWaitingTooLong, metav1.NewMicroTime(dueAt)), time.Time{}
}

func about(request *v1alpha1.KickRequest, kind v1alpha1.NotificationEvent, at metav1.MicroTime) *Event {
	status := &request.Status
	event := &Event{
		ID:        fmt.Sprintf("%s-%s-%d", request.UID, kind, at.UnixMicro()),
		Type:      kind,
		Time:      metav1.NewMicroTime(at.UTC()),
		Namespace: request.Namespace,
		Request:   request.Name,
		Workload:  Workload{Kind: request.Spec.TargetRef.Kind, Name: request.Spec.TargetRef.Name},
		Phase:     status.Phase,
		Causes:    slices.Clone(status.Causes), CausesOmitted: status.CausesOmitted,
	}
	if ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady); ready != nil {
		event.Reason, event.Message = ready.Reason, ready.Message
	}
	return event
}

// MaxAge is after what time an event that could not be told is no longer worth telling.
const MaxAge = 24 * time.Hour

// Expired tells whether an event is too old to be told.
func (e Event) Expired(now time.Time) bool { return now.Sub(e.Time.Time) > MaxAge }
