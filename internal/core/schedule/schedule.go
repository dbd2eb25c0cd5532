package schedule

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kick-dev/kick/api/v1alpha1"
)

// horizon is how far ahead an opening is looked for.
const horizon = 366 * 24 * time.Hour

// maxSteps bounds the search for an opening. What needs more of them, a window that ends and begins again every minute,
// is searched further when the time has come.
const maxSteps = 2000

// Schedule is a set of windows. The zero value is always open.
type Schedule struct {
	windows []Window
	// allowing is true where an Allow window is listed: then the schedule is closed unless one is active. With Deny
	// windows alone it is open unless one is.
	allowing bool
	// closed is true for a schedule that did not parse. What cannot be understood permits nothing.
	closed bool
}

// Parse checks the windows of a policy and parses them. All faults are returned at once; a schedule with faults is
// closed for good. A window that never begins is a fault too, but only keeps itself from ever being active.
func Parse(windows []v1alpha1.Window, path *field.Path) (Schedule, field.ErrorList) {
	var (
		schedule Schedule
		faults   field.ErrorList
	)
	for i, window := range windows {
		parsed, found := parseWindow(window, path.Index(i))
		schedule.allowing = schedule.allowing || window.Kind == v1alpha1.WindowAllow
		switch {
		case len(found) > 0:
			schedule.closed = true
			faults = append(faults, found...)
		case parsed.neverFires():
			faults = append(faults, field.Invalid(path.Index(i).Child("cron"), window.Cron,
				"no date ever matches; look at the day of the month"))
		default:
			schedule.windows = append(schedule.windows, parsed)
		}
	}
	return schedule, faults
}

// Open tells whether a restart may run at the instant: some Allow window is active, where there are any, and no Deny
// window is.
func (s Schedule) Open(at time.Time) bool {
	return !s.closed && s.allowed(at) && !s.active(v1alpha1.WindowDeny, at)
}

// Invalid tells whether the schedule is closed because it did not parse.
func (s Schedule) Invalid() bool { return s.closed }

func (s Schedule) allowed(at time.Time) bool {
	return !s.allowing || s.active(v1alpha1.WindowAllow, at)
}

func (s Schedule) active(kind v1alpha1.WindowKind, at time.Time) bool {
	return slices.ContainsFunc(s.windows, func(w Window) bool { return w.kind == kind && w.activeAt(at) })
}

// Opening is the result of a search for the next instant at which a schedule is open.
type Opening struct {
	// At is the instant, in the time zone of the window that decides it. If Found is false it is the instant until
	// which the schedule is known to be closed.
	At    time.Time
	Found bool
	// Never is true if there is no opening within the horizon of 366 days.
	Never bool
}

// NextOpening finds the first instant from now on at which the schedule is open.
func (s Schedule) NextOpening(now time.Time) Opening {
	if s.closed {
		return Opening{Never: true}
	}
	at := now
	for range maxSteps {
		if s.Open(at) {
			return Opening{At: at, Found: true}
		}
		at = s.nextEdge(at)
		if at.IsZero() || at.Sub(now) > horizon {
			return Opening{Never: true}
		}
	}
	return Opening{At: at}
}

// nextEdge returns the first instant after the given one at which a closed schedule may open: where no Allow window is
// active the next start of one, and otherwise the next end of a Deny window.
func (s Schedule) nextEdge(after time.Time) time.Time {
	allowed := s.allowed(after)
	var next time.Time
	for _, w := range s.windows {
		var edge time.Time
		switch {
		case !allowed && w.kind == v1alpha1.WindowAllow:
			edge = w.nextStart(after)
		case allowed:
			edge = w.nextEnd(after) // also of an Allow window: then the next start counts
		}
		if !edge.IsZero() && (next.IsZero() || edge.Before(next)) {
			next = edge.In(w.zone)
		}
	}
	return next
}
