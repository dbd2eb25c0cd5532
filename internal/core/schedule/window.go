// Package schedule evaluates the windows of a policy: open(t) and the next opening, the first stage of the gate in §7 of
// the model.
//
// A window begins whenever its cron expression matches on the wall clock of its time zone and lasts its duration in
// elapsed time, also across midnight and across a change of the clocks. A start that a zone skips happens when the
// skipped time ends; one that a zone repeats happens each time.
package schedule

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kick-dev/kick/api/v1alpha1"
)

// parser knows the five fields of cron(5), and neither seconds nor descriptors.
var parser = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// cronFields is the number of fields of a cron expression.
const cronFields = 5

// Window is a parsed window of a policy.
type Window struct {
	kind     v1alpha1.WindowKind
	starts   cron.Schedule
	duration time.Duration
	zone     *time.Location
}

// parseWindow checks a window and parses it. Every fault names its field and says what to do.
func parseWindow(window v1alpha1.Window, path *field.Path) (Window, field.ErrorList) {
	var faults field.ErrorList
	starts, err := parseCron(window.Cron)
	if err != nil {
		faults = append(faults, field.Invalid(path.Child("cron"), window.Cron, err.Error()))
	}
	duration, err := time.ParseDuration(window.Duration)
	switch {
	case err != nil:
		faults = append(faults, field.Invalid(path.Child("duration"), window.Duration,
			"must be a duration such as 90m or 2h30m; days are written in hours, 72h"))
	case duration <= 0:
		faults = append(faults, field.Invalid(path.Child("duration"), window.Duration, "must be positive, such as 2h"))
	}
	zone, err := parseZone(window.TimeZone)
	if err != nil {
		faults = append(faults, field.Invalid(path.Child("timeZone"), window.TimeZone, err.Error()))
	}
	if window.Kind != v1alpha1.WindowAllow && window.Kind != v1alpha1.WindowDeny {
		faults = append(faults, field.NotSupported(path.Child("kind"), window.Kind,
			[]v1alpha1.WindowKind{v1alpha1.WindowAllow, v1alpha1.WindowDeny}))
	}
	return Window{kind: window.Kind, starts: starts, duration: duration, zone: zone}, faults
}

func parseCron(expression string) (cron.Schedule, error) {
	switch {
	case strings.Contains(expression, "TZ="):
		return nil, fmt.Errorf("a time zone does not belong into the expression; write it into the field timeZone")
	case strings.HasPrefix(strings.TrimSpace(expression), "@"):
		return nil, fmt.Errorf("descriptors are not supported; write the five fields minute, hour, day of month, month, day of week")
	case len(strings.Fields(expression)) != cronFields:
		return nil, fmt.Errorf("has %d fields; write five: minute, hour, day of month, month, day of week",
			len(strings.Fields(expression)))
	}
	schedule, err := parser.Parse(expression)
	if err != nil {
		return nil, fmt.Errorf("%w; days of the week are 0 (Sunday) to 6 (Saturday), and a range must not wrap around", err)
	}
	return schedule, nil
}

// zones remembers the zones that were loaded, by their names: policies are parsed for every decision, and the database of
// zones is a directory of files. It is as constant as they are.
var zones sync.Map

func parseZone(name string) (*time.Location, error) {
	if name == "" {
		return time.UTC, nil
	}
	if strings.EqualFold(name, "Local") {
		return nil, fmt.Errorf("the zone of the process is no zone; name one, such as Europe/Berlin or UTC")
	}
	if zone, loaded := zones.Load(name); loaded {
		return zone.(*time.Location), nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("is no known time zone; name one of the IANA database, such as Europe/Berlin or UTC")
	}
	zones.Store(name, zone)
	return zone, nil
}

// neverFires tells whether no date matches the expression, such as the 30th of February.
func (w Window) neverFires() bool { return w.starts.Next(epoch).IsZero() }

// epoch is some date to look for starts from.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// activeAt tells whether the window is active: it began no later than at, and less than its duration before.
func (w Window) activeAt(at time.Time) bool {
	start := w.nextStart(at.Add(-w.duration))
	return !start.IsZero() && !start.After(at)
}

// nextEnd returns the first end of a window after the given instant, the zero time if there is none.
func (w Window) nextEnd(after time.Time) time.Time {
	start := w.nextStart(after.Add(-w.duration))
	if start.IsZero() {
		return start
	}
	return start.Add(w.duration)
}

// nextStart returns the first start after the given instant, the zero time if there is none. It goes through the spans
// between changes of the zone's clock, within which the wall clock runs evenly.
func (w Window) nextStart(after time.Time) time.Time {
	for {
		now := spanAt(after, w.zone)
		start := w.starts.Next(now.wall(after))
		if start.IsZero() {
			return start
		}
		if now.endless() || now.instant(start).Before(now.end) {
			return now.instant(start)
		}
		turn := spanAt(now.end, w.zone).wall(now.end)
		skipped := start.Before(turn)
		if skipped || w.starts.Next(turn.Add(-time.Nanosecond)).Equal(turn) {
			return now.end
		}
		after = now.end
	}
}
