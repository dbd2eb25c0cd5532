package notify

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/kick-dev/kick/api/v1alpha1"
)

// maxPending bounds how many events of one request wait on it: the newest. Beyond it, the oldest is given up.
const maxPending = 4

// Record is what one KickNotification has told about one request, and what it could not tell so far. It is kept in an
// annotation of the request, and goes with it.
type Record struct {
	// Told is the id of the last event of each type that was told, or given up.
	Told map[v1alpha1.NotificationEvent]string `json:"told,omitempty"`
	// Pending are the events that the receiver has not taken yet, oldest first. They may be about an end that the status of
	// the request no longer shows.
	Pending []Event `json:"pending,omitempty"`
}

// AnnotationOf is the annotation of a request that holds the record of a notification.
func AnnotationOf(notification string) string {
	return v1alpha1.NotificationRecordPrefix + notification
}

// RecordOf reads the record of a notification. One that cannot be read counts as empty: it is better to tell twice.
func RecordOf(request *v1alpha1.KickRequest, notification string) Record {
	var record Record
	if err := json.Unmarshal([]byte(request.Annotations[AnnotationOf(notification)]), &record); err != nil {
		return Record{}
	}
	return record
}

// Text is the value of the annotation.
func (r Record) Text() (string, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("write down what was told: %w", err)
	}
	return string(text), nil
}

// Untold tells whether an event is not the last of its type that was told.
func (r Record) Untold(event Event) bool { return r.Told[event.Type] != event.ID }

// Settle records that an event was told, or given up.
func (r Record) Settle(event Event) Record {
	settled := Record{Told: map[v1alpha1.NotificationEvent]string{event.Type: event.ID}}
	for kind, id := range r.Told {
		if kind != event.Type {
			settled.Told[kind] = id
		}
	}
	for _, pending := range r.Pending {
		if pending.ID != event.ID {
			settled.Pending = append(settled.Pending, pending)
		}
	}
	return settled
}

// Defer records that an event could not be told yet. It reports whether that is news.
func (r Record) Defer(event Event) (Record, bool) {
	if slices.ContainsFunc(r.Pending, func(pending Event) bool { return pending.ID == event.ID }) {
		return r, false
	}
	pending := append(slices.Clone(r.Pending), event)
	slices.SortStableFunc(pending, byTime)
	return Record{Told: r.Told, Pending: pending[max(0, len(pending)-maxPending):]}, true
}

// byTime orders events by when they happened.
func byTime(a, b Event) int { return cmp.Or(a.Time.Compare(b.Time.Time), cmp.Compare(a.ID, b.ID)) }

// InOrder sorts events by when they happened, and leaves out what is there twice.
func InOrder(events []Event) []Event {
	slices.SortStableFunc(events, byTime)
	return slices.CompactFunc(events, func(a, b Event) bool { return a.ID == b.ID })
}
