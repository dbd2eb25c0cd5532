// Package timeline puts changes, waits, stamps and rollouts of workloads on one axis: from requests, which keep the last
// restart, and from events, which keep about the last hour.
package timeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/request"
	"github.com/kick-dev/kick/internal/report"
)

// Kind of an item.
type Kind string

// The kinds. Wait and Rollout last; the others are instants.
const (
	Change  Kind = "change"
	Wait    Kind = "wait"
	Stamp   Kind = "restart"
	Rollout Kind = "rollout"
	Done    Kind = "done"
	Failed  Kind = "failed"
	Opens   Kind = "opens"
)

// Item is something on a lane.
type Item struct {
	Kind Kind      `json:"kind"`
	From time.Time `json:"from"`
	// To is the end of what lasts, zero for an instant. Going is true where it still lasts.
	To    *time.Time `json:"to,omitempty"`
	Going bool       `json:"going,omitempty"`
	Text  string     `json:"text"`
}

// Lane is what is known of one workload, in order.
type Lane struct {
	Namespace string `json:"namespace"`
	Workload  string `json:"workload"`
	Items     []Item `json:"items"`
}

// Timeline of some workloads.
type Timeline struct {
	From  time.Time `json:"from"`
	Now   time.Time `json:"now"`
	Lanes []Lane    `json:"lanes"`
}

// near is how far apart requests and events may date the same thing.
const near = 10 * time.Second

// Of makes the timeline of requests and events since an instant.
func Of(requests []v1alpha1.KickRequest, events []eventsv1.Event, from, now time.Time) Timeline {
	t := Timeline{From: from, Now: now}
	told := eventsByRequest(requests, events)
	for i := range requests {
		r := &requests[i]
		lane := Lane{
			Namespace: r.Namespace, Workload: strings.ToLower(string(r.Spec.TargetRef.Kind)) + "/" + r.Spec.TargetRef.Name,
		}
		lane.changes(&r.Status)
		lane.tell(told[i], now)
		lane.remember(r, now)
		lane.end(&r.Status)
		lane.Items = slices.DeleteFunc(lane.Items, func(item Item) bool {
			return item.From.Before(from) && !item.Going && (item.To == nil || item.To.Before(from))
		})
		slices.SortStableFunc(lane.Items, func(a, b Item) int { return a.From.Compare(b.From) })
		if len(lane.Items) > 0 {
			t.Lanes = append(t.Lanes, lane)
		}
	}
	slices.SortFunc(t.Lanes, func(a, b Lane) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Workload, b.Workload))
	})
	return t
}

// eventsByRequest finds the events of each request, which regard it or its workload.
func eventsByRequest(requests []v1alpha1.KickRequest, events []eventsv1.Event) [][]eventsv1.Event {
	told := make([][]eventsv1.Event, len(requests))
	for i := range requests {
		r := &requests[i]
		for _, event := range events {
			regarding := event.Regarding
			ofRequest := regarding.Kind == "KickRequest" && regarding.Name == r.Name && regarding.UID == r.UID
			ofWorkload := regarding.Kind == string(r.Spec.TargetRef.Kind) && regarding.Name == r.Spec.TargetRef.Name &&
				regarding.UID == r.Spec.TargetRef.UID
			if event.Namespace == r.Namespace && (ofRequest || ofWorkload) {
				told[i] = append(told[i], event)
			}
		}
		slices.SortStableFunc(told[i], func(a, b eventsv1.Event) int { return instantOf(a).Compare(instantOf(b)) })
	}
	return told
}

func instantOf(event eventsv1.Event) time.Time {
	if !event.EventTime.IsZero() {
		return event.EventTime.Time
	}
	return event.CreationTimestamp.Time
}

// tell adds what events tell: each begins a state that the next one ends.
func (l *Lane) tell(events []eventsv1.Event, now time.Time) {
	open := -1 // the item that still lasts
	for _, event := range events {
		at := instantOf(event)
		if open >= 0 {
			l.Items[open].To, l.Items[open].Going, open = &at, false, -1
		}
		switch event.Reason {
		case report.EventKickWaiting, report.EventKickBlocked, report.EventSourceFlapping:
			l.Items = append(l.Items, Item{Kind: Wait, From: at, To: &now, Going: true, Text: event.Note})
			open = len(l.Items) - 1
		case report.EventKicked:
			l.Items = append(l.Items,
				Item{Kind: Stamp, From: at, Text: event.Note},
				Item{Kind: Rollout, From: at, To: &now, Going: true, Text: "the Pods are being replaced"})
			open = len(l.Items) - 1
		case report.EventKickSucceeded, report.EventKickNotNeeded:
			l.Items = append(l.Items, Item{Kind: Done, From: at, Text: event.Note})
		case report.EventKickFailed, report.EventStampRemoved:
			l.Items = append(l.Items, Item{Kind: Failed, From: at, Text: event.Note})
		}
	}
}

// remember adds what the request keeps and no event has told.
func (l *Lane) remember(r *v1alpha1.KickRequest, now time.Time) {
	status := &r.Status
	if current := status.CurrentRollout; current != nil && current.Stamp != "" {
		l.restart(status, current, now)
	}
	ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		return
	}
	if status.Phase.Terminal() && status.CompletedAt != nil {
		l.complete(status, ready.Reason+": "+ready.Message)
	}
	if status.Phase.Waiting() {
		l.wait(status, ready.LastTransitionTime.Time, ready.Reason+": "+ready.Message, now)
	}
}

func (l *Lane) changes(status *v1alpha1.KickRequestStatus) {
	all := slices.Clone(status.Causes)
	if status.CurrentRollout != nil {
		all = append(all, status.CurrentRollout.Covers...)
	}
	var known []Item
	for _, change := range all {
		item := Item{Kind: Change, From: change.ChangedAt.Time, Text: string(change.Kind) + "/" + change.Name}
		if change.Kind == v1alpha1.Manual {
			item.Text = "restart asked for by " + change.Name
		}
		if len(change.Keys) > 0 {
			item.Text += " (" + strings.Join(change.Keys, ", ") + ")"
		}
		name, _, _ := strings.Cut(item.Text, " (")
		same := func(other Item) bool { return other.From.Equal(item.From) && strings.HasPrefix(other.Text, name) }
		if !slices.ContainsFunc(known, same) {
			known = append(known, item)
		}
	}
	l.Items = append(l.Items, known...)
}

func (l *Lane) has(kind Kind, at time.Time) bool {
	return slices.ContainsFunc(l.Items, func(item Item) bool {
		return item.Kind == kind && item.From.Sub(at).Abs() < near
	})
}

func (l *Lane) restart(status *v1alpha1.KickRequestStatus, current *v1alpha1.Rollout, now time.Time) {
	at, err := time.Parse(time.RFC3339Nano, current.Stamp)
	if err != nil || l.has(Stamp, at) {
		return
	}
	l.Items = append(l.Items, Item{Kind: Stamp, From: at, Text: "restartedAt was set"})
	rollout := Item{Kind: Rollout, From: at, Text: "the Pods were being replaced"}
	switch {
	case status.Phase.Terminal() && status.CompletedAt != nil:
		rollout.To = &status.CompletedAt.Time
	case request.Restarting(status):
		rollout.To, rollout.Going, rollout.Text = &now, true, "the Pods are being replaced"
	default:
		return // When it ended the request does not keep.
	}
	l.Items = append(l.Items, rollout)
}

func (l *Lane) complete(status *v1alpha1.KickRequestStatus, text string) {
	kind := Done
	if status.Phase == v1alpha1.PhaseFailed {
		kind = Failed
	}
	if !l.has(kind, status.CompletedAt.Time) {
		l.Items = append(l.Items, Item{Kind: kind, From: status.CompletedAt.Time, Text: text})
	}
}

// end ends what no event has ended and does not go on, by what the request says: events may get lost.
func (l *Lane) end(status *v1alpha1.KickRequestStatus) {
	var ends []time.Time // of waits and rollouts
	if current := status.CurrentRollout; current != nil {
		if at, err := time.Parse(time.RFC3339Nano, current.Stamp); err == nil {
			ends = append(ends, at)
		}
	}
	if status.CompletedAt != nil {
		ends = append(ends, status.CompletedAt.Time)
	}
	for i := range l.Items {
		item := &l.Items[i]
		goesOn := item.Kind == Wait && status.Phase.Waiting() || item.Kind == Rollout && request.Restarting(status)
		if !item.Going || goesOn {
			continue
		}
		item.Going, item.To = false, &item.From // When it ended is not known, unless it is one of these:
		for _, at := range ends {
			if at.After(item.From.Add(near)) {
				item.To = &at
				break
			}
		}
	}
}

func (l *Lane) wait(status *v1alpha1.KickRequestStatus, since time.Time, text string, now time.Time) {
	waits := slices.ContainsFunc(l.Items, func(item Item) bool { return item.Kind == Wait && item.Going })
	if !waits {
		l.Items = append(l.Items, Item{Kind: Wait, From: since, To: &now, Going: true, Text: text})
	}
	if status.Gate == nil {
		return
	}
	if opens, err := time.Parse(time.RFC3339, status.Gate.RequeueAt); err == nil && opens.After(now) {
		l.Items = append(l.Items, Item{Kind: Opens, From: opens, Text: fmt.Sprintf("the schedule opens at %s", status.Gate.RequeueAt)})
	}
}
