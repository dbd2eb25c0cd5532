package controllers

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/notify"
)

// maxSeen bounds what is remembered of ends that may not be in the status of their requests any more. Beyond it only those
// that are still there are told.
const maxSeen = 256

// tellings remembers how each notification gets on. What must not be lost is on the requests.
type tellings struct {
	mu     sync.Mutex
	states map[types.NamespacedName]*tellingState
}

func newTellings() *tellings { return &tellings{states: map[types.NamespacedName]*tellingState{}} }

// of returns the state of a notification.
func (t *tellings) of(name types.NamespacedName) *tellingState {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.states[name] == nil {
		t.states[name] = &tellingState{records: map[types.UID]remembered{}}
	}
	return t.states[name]
}

// pending notes how many events a notification has left, and returns the number of all.
func (t *tellings) pending(state *tellingState, count int) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	state.left = count
	return t.total()
}

// forget drops a notification that is gone, and returns the number of events of the others.
func (t *tellings) forget(name types.NamespacedName) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.states, name)
	return t.total()
}

func (t *tellings) total() int {
	sum := 0
	for _, state := range t.states {
		sum += state.left
	}
	return sum
}

// tellingState is what is remembered of one notification. But for the ends that were seen, only its own worker touches it.
type tellingState struct {
	left int

	// Of the last attempt.
	failures  int
	failure   string
	notBefore time.Time
	refusedID string
	refusals  int

	// What the attempts depend on, and what is wrong with it.
	generation    int64
	secretVersion string
	fault         *verdict

	records map[types.UID]remembered

	mu   sync.Mutex
	seen []seenEnd
}

// remembered is a record that the cache may not show yet.
type remembered struct {
	notify.Record
	written bool
}

// seenEnd is an end that a request reported.
type seenEnd struct {
	request types.UID
	event   notify.Event
}

// see remembers an end, in case the request goes on before it is told.
func (s *tellingState) see(request types.UID, event notify.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, seenEnd{request: request, event: event})
	s.seen = s.seen[max(0, len(s.seen)-maxSeen):]
}

// seenOf lists the ends of a request that were seen and are not done with.
func (s *tellingState) seenOf(request types.UID) []notify.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	var events []notify.Event
	for _, end := range s.seen {
		if end.request == request {
			events = append(events, end.event)
		}
	}
	return events
}

// unsee drops an end that is told or recorded.
func (s *tellingState) unsee(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = slices.DeleteFunc(s.seen, func(end seenEnd) bool { return end.event.ID == id })
}

// record is what was told about a request.
func (s *tellingState) record(request *v1alpha1.KickRequest, notification string) notify.Record {
	if known, ok := s.records[request.UID]; ok {
		return known.Record
	}
	return notify.RecordOf(request, notification)
}

func (s *tellingState) remember(request types.UID, record notify.Record, written bool) {
	s.records[request] = remembered{Record: record, written: written}
}

// unwritten are the records that are not durable.
func (s *tellingState) unwritten() map[types.UID]notify.Record {
	records := map[types.UID]notify.Record{}
	for uid, known := range s.records {
		if !known.written {
			records[uid] = known.Record
		}
	}
	return records
}

// prune drops what the requests show themselves, and what is about requests that are gone.
func (s *tellingState) prune(requests map[types.UID]*v1alpha1.KickRequest, notification string) {
	for uid, known := range s.records {
		request := requests[uid]
		if request == nil {
			delete(s.records, uid)
			continue
		}
		if text, err := known.Text(); err == nil && known.written && request.Annotations[notify.AnnotationOf(notification)] == text {
			delete(s.records, uid)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = slices.DeleteFunc(s.seen, func(end seenEnd) bool { return requests[end.request] == nil })
}

// takeOver notes which notification and Secret an attempt is made with, and reports whether they are those of the last one.
// With others there is no reason to wait. A Secret that was deleted and made anew has another version.
func (s *tellingState) takeOver(generation int64, secretVersion string) bool {
	known := s.generation == generation && s.secretVersion == secretVersion
	if !known {
		s.generation, s.secretVersion = generation, secretVersion
		s.failures, s.failure, s.notBefore = 0, "", time.Time{}
	}
	return known
}

func (s *tellingState) succeeded() {
	s.failures, s.failure, s.notBefore = 0, "", time.Time{}
	s.refusedID, s.refusals = "", 0
}

// failed notes a failure, and reports whether the event is to be given up.
func (s *tellingState) failed(id string, outcome notify.Outcome, now time.Time) bool {
	if outcome.Refused {
		if s.refusedID != id {
			s.refusedID, s.refusals = id, 0
		}
		if s.refusals++; s.refusals >= notify.MaxRefusals {
			s.failures, s.notBefore = 0, time.Time{}
			return true
		}
	}
	s.failures++
	s.failure = outcome.Failure
	s.notBefore = now.Add(notify.Pause(s.failures))
	return false
}
