// Package report tells the outside what has happened: one constructor per event, one verb per metric. Nothing is
// reported before it is stored, and nothing derived from the content of a source is ever reported.
package report

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/kick-dev/kick/api/v1alpha1"
)

// Reasons of events.
const (
	eventKicked         = "Kicked"
	eventKickSucceeded  = "KickSucceeded"
	eventKickNotNeeded  = "KickNotRequired"
	eventKickWaiting    = "KickWaiting"
	eventKickFailed     = "KickFailed"
	eventKickBlocked    = "KickBlocked"
	eventStampRemoved   = "StampRemoved"
	eventSourceFlapping = "SourceFlapping"
	eventNotification   = "NotificationMoved"
	actionNotify        = "Notify"
	actionRestart       = "Restart"
	actionEvaluate      = "Evaluate"
	maxSourcesInMessage = 4
)

// Events emits the events of KickRequests. Those a user of the workload looks for regard the workload; the others
// regard the request.
type Events struct {
	Recorder events.EventRecorder
}

// Kicked says that the stamp was written.
func (e *Events) Kicked(workload runtime.Object, request *v1alpha1.KickRequest) {
	e.Recorder.Eventf(workload, request, corev1.EventTypeNormal, eventKicked, actionRestart,
		"restarting because of %s", sourceList(request.Status.Causes, request.Status.CausesOmitted))
}

// Transitioned says what a stored status changed, if it is worth an event. The severity follows the condition Stalled:
// Warning where a person has to act, Normal otherwise.
func (e *Events) Transitioned(workload runtime.Object, request *v1alpha1.KickRequest, reason, message string, stalled bool) {
	severity := corev1.EventTypeNormal
	if stalled {
		severity = corev1.EventTypeWarning
	}
	switch phase := request.Status.Phase; {
	case phase == v1alpha1.PhaseSucceeded:
		e.Recorder.Eventf(workload, request, severity, eventKickSucceeded, actionRestart, "%s", message)
	case reason == v1alpha1.ReasonStampRemoved:
		e.Recorder.Eventf(workload, request, severity, eventStampRemoved, actionRestart, "%s", message)
	case phase == v1alpha1.PhaseFailed:
		e.Recorder.Eventf(workload, request, severity, eventKickFailed, actionRestart, "%s: %s", reason, message)
	case phase == v1alpha1.PhaseNoLongerRequired:
		e.Recorder.Eventf(request, workload, severity, eventKickNotNeeded, actionEvaluate, "%s: %s", reason, message)
	case reason == v1alpha1.ReasonMinInterval && flapping(request):
		e.Recorder.Eventf(request, workload, severity, eventSourceFlapping, actionEvaluate, "%s", message)
	case stalled:
		e.Recorder.Eventf(request, workload, severity, eventKickBlocked, actionEvaluate, "%s: %s", reason, message)
	default:
		e.Recorder.Eventf(request, workload, severity, eventKickWaiting, actionEvaluate, "%s: %s", reason, message)
	}
}

// DryRun says what would have been restarted, and because of which changes.
func (e *Events) DryRun(workload runtime.Object, request *v1alpha1.KickRequest) {
	e.Recorder.Eventf(request, workload, corev1.EventTypeNormal, eventKickWaiting, actionEvaluate,
		"%s: would restart because of %s", v1alpha1.ReasonDryRun, sourceList(request.Status.Causes, request.Status.CausesOmitted))
}

// NotificationMoved says that messages get through, or why they do not. The severity is as for requests.
func (e *Events) NotificationMoved(notification runtime.Object, reason, message string, stalled bool) {
	severity := corev1.EventTypeNormal
	if stalled {
		severity = corev1.EventTypeWarning
	}
	e.Recorder.Eventf(notification, nil, severity, eventNotification, actionNotify, "%s: %s", reason, message)
}

// flapping tells whether the sources of a request changed again and again before its minimum interval had passed.
func flapping(request *v1alpha1.KickRequest) bool {
	return request.Status.CurrentRollout != nil && request.Status.CurrentRollout.Streak > 0
}

// sourceList names sources by kind and name.
func sourceList(causes []v1alpha1.SourceChange, omitted int32) string {
	var names []string
	for i, cause := range causes {
		if i == maxSourcesInMessage {
			omitted += int32(len(causes) - i) //nolint:gosec // causes are capped by the API
			break
		}
		names = append(names, fmt.Sprintf("%s %s", cause.Kind, cause.Name))
	}
	list := strings.Join(names, ", ")
	if omitted > 0 {
		list += fmt.Sprintf(" and %d more", omitted)
	}
	return list
}
