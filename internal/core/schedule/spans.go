package schedule

import (
	"time"

	"github.com/kick-dev/kick/api/v1alpha1"
)

// Span is a time from an instant up to, and without, another.
type Span struct {
	From, To time.Time
}

// NextClosing finds the first instant after now at which a schedule that is open is not, false if there is none until the
// given end.
func (s Schedule) NextClosing(now, end time.Time) (time.Time, bool) {
	for at := now; ; {
		next := s.nextTurn(at)
		if next.IsZero() || !next.Before(end) {
			return end, false
		}
		if !s.Open(next) {
			return next, true
		}
		at = next
	}
}

// nextTurn returns the first instant after the given one at which an open schedule may close: the next start of a Deny
// window, and the next end of an Allow window.
func (s Schedule) nextTurn(after time.Time) time.Time {
	var next time.Time
	for _, w := range s.windows {
		edge := w.nextEnd(after)
		if w.kind == v1alpha1.WindowDeny {
			edge = w.nextStart(after)
		}
		if !edge.IsZero() && (next.IsZero() || edge.Before(next)) {
			next = edge
		}
	}
	return next
}

// maxSpans bounds how many spans of one schedule are listed.
const maxSpans = 5000

// Openings lists when the schedule is open between two instants, in order, and whether that is all: a schedule that opens
// and closes every minute has too many to list.
func (s Schedule) Openings(from, to time.Time) (spans []Span, all bool) {
	at := from
	for range maxSpans {
		opening := s.NextOpening(at)
		if opening.Never || !opening.At.Before(to) {
			return spans, true
		}
		at = opening.At
		if !opening.Found {
			continue
		}
		closing, _ := s.NextClosing(at, to)
		spans = append(spans, Span{From: at, To: closing})
		if !closing.Before(to) {
			return spans, true
		}
		at = closing
	}
	return spans, false
}

// Active lists when the window is active between two instants. Spans
// that meet are one.
func (w Window) Active(from, to time.Time) []Span {
	var spans []Span
	start := w.nextStart(from.Add(-w.duration))
	for range maxSpans {
		if start.IsZero() || !start.Before(to) {
			break
		}
		span := Span{From: start, To: start.Add(w.duration)}
		if span.From.Before(from) {
			span.From = from
		}
		if span.To.After(to) {
			span.To = to
		}
		if last := len(spans) - 1; last >= 0 && !span.From.After(spans[last].To) {
			spans[last].To = span.To
		} else {
			spans = append(spans, span)
		}
		start = w.nextStart(start)
	}
	return spans
}

// Windows of the schedule that parsed.
func (s Schedule) Windows() []Window { return s.windows }

// Kind says whether the window allows or denies.
func (w Window) Kind() v1alpha1.WindowKind { return w.kind }

// Zone is the time zone of the window.
func (w Window) Zone() *time.Location { return w.zone }
