// Package calendar shows when a policy is open.
package calendar

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/policy"
	"github.com/kick-dev/kick/internal/core/schedule"
	"github.com/kick-dev/kick/internal/kubectl/picture"
	"github.com/kick-dev/kick/internal/kubectl/text"
)

// Calendar of one policy, over some days.
type Calendar struct {
	Namespace, Policy string
	Now               time.Time
	// Days begin at midnight in the zone of the calendar.
	Days []Day
	Zone *time.Location
	// Openings are when it is open, from the first midnight to the last.
	Openings []schedule.Span
	// All is false where there are too many openings to list.
	All bool
	// Windows in the words of the policy.
	Windows []string
	// Notes say what else matters: a policy that is suspended, a schedule that cannot be read.
	Notes []string
}

// Day is a day of the calendar, whatever its length.
type Day struct {
	From, To time.Time
	// Turns is true where the clocks change on that day.
	Turns bool
	// Open are the openings of the day, on its own clock: minutes since midnight, as clocks show them.
	Open []Bar
}

// Bar is a part of a day.
type Bar struct {
	From, To int
	Span     schedule.Span
}

const minutesPerDay = 24 * 60

// Of makes the calendar of a policy for some days from the one of now on. Without a zone it is that of the windows, if they
// agree, and UTC otherwise.
func Of(of *v1alpha1.KickPolicy, now time.Time, days int, zone *time.Location) Calendar {
	parsed, faults := policy.Parse(of)
	if zone == nil {
		zone = zoneOf(parsed.Schedule)
	}
	c := Calendar{Namespace: of.Namespace, Policy: of.Name, Now: now.In(zone), Zone: zone}
	year, month, day := now.In(zone).Date()
	for i := range days {
		c.Days = append(c.Days, Day{
			From: time.Date(year, month, day+i, 0, 0, 0, 0, zone), To: time.Date(year, month, day+i+1, 0, 0, 0, 0, zone),
		})
	}
	c.Openings, c.All = parsed.Schedule.Openings(c.Days[0].From, c.Days[days-1].To)
	for i := range c.Days {
		c.Days[i].fill(c.Openings, zone)
	}
	for _, w := range of.Spec.Schedule.Windows {
		c.Windows = append(c.Windows, windowText(w))
	}
	c.Notes = notes(of, parsed, c, len(faults) > 0)
	return c
}

func zoneOf(s schedule.Schedule) *time.Location {
	zone := time.UTC
	for i, w := range s.Windows() {
		if i > 0 && w.Zone().String() != zone.String() {
			return time.UTC
		}
		zone = w.Zone()
	}
	return zone
}

func windowText(w v1alpha1.Window) string {
	zone := w.TimeZone
	if zone == "" {
		zone = "UTC"
	}
	return fmt.Sprintf("%s from %q for %s (%s)", w.Kind, w.Cron, w.Duration, zone)
}

func notes(of *v1alpha1.KickPolicy, parsed policy.Policy, c Calendar, faulty bool) []string {
	var notes []string
	switch {
	case faulty && parsed.Schedule.Invalid():
		notes = append(notes, "the schedule cannot be read, so it is never open; the policy's status says why")
	case len(of.Spec.Schedule.Windows) == 0:
		notes = append(notes, "it has no windows, so it is always open")
	case len(c.Openings) == 0:
		notes = append(notes, fmt.Sprintf("it is not open within these %d days", len(c.Days)))
	}
	if of.Spec.Suspend {
		notes = append(notes, "it is suspended: whatever the schedule says, restarts wait")
	}
	if of.Spec.DryRun {
		notes = append(notes, "it is a dry run: nothing is restarted")
	}
	if !c.All {
		notes = append(notes, "it opens and closes too often to show all of it")
	}
	return notes
}

// fill cuts the openings to the day and reads them off its clock. An opening across a change of the clocks is cut there.
func (d *Day) fill(openings []schedule.Span, zone *time.Location) {
	_, before := d.From.Zone()
	_, after := d.To.Add(-time.Nanosecond).Zone()
	d.Turns = before != after
	for _, span := range openings {
		from, to := later(span.From, d.From), earlier(span.To, d.To)
		if !from.Before(to) {
			continue
		}
		for _, part := range even(from.In(zone), to.In(zone)) {
			bar := Bar{From: minuteOf(part.From), To: minuteOf(part.To), Span: span}
			if bar.To <= bar.From {
				bar.To = minutesPerDay // It ends at midnight.
			}
			d.Open = append(d.Open, bar)
		}
	}
}

// even cuts a time at changes of the clocks, to the minute.
func even(from, to time.Time) []schedule.Span {
	var parts []schedule.Span
	start := from
	for at := from; at.Before(to); at = at.Add(time.Minute) {
		next := earlier(at.Add(time.Minute), to)
		_, here := at.Zone()
		_, there := next.Zone()
		if here != there {
			_, offset := at.Zone()
			last := next.In(time.FixedZone("", offset)) // The end as the old clock shows it.
			parts = append(parts, schedule.Span{From: start, To: last})
			start = next
		}
	}
	if start.Before(to) {
		parts = append(parts, schedule.Span{From: start, To: to})
	}
	return parts
}

func minuteOf(at time.Time) int { return at.Hour()*60 + at.Minute() }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

const (
	dayFormat  = "Mon 2006-01-02"
	spanFormat = "Mon 2006-01-02 15:04"
	cell       = 30 // minutes
)

func (c Calendar) title() string {
	return fmt.Sprintf("KickPolicy %s of namespace %s", c.Policy, c.Namespace)
}

func (c Calendar) intro() string {
	var intro strings.Builder
	fmt.Fprintf(&intro, "When restarts may run, in the time of %s.", c.Zone)
	for _, note := range c.Notes {
		intro.WriteString(" Note: " + note + ".")
	}
	for _, window := range c.Windows {
		intro.WriteString(" Window: " + window + ".")
	}
	return intro.String()
}

// WriteText writes the calendar for a terminal: a line for each day, a cell for each half hour.
func (c Calendar) WriteText(out io.Writer) error {
	w := text.NewWriter(out)
	w.Line("%s, in the time of %s", c.title(), c.Zone)
	for _, window := range c.Windows {
		w.Line("  %s", window)
	}
	for _, note := range c.Notes {
		w.Line("Note: %s", note)
	}
	w.Line("\n%-14s  %s", "", "0     3     6     9     12    15    18    21")
	for _, day := range c.Days {
		line := fmt.Sprintf("%-14s  %s", day.From.Format(dayFormat), day.cells())
		if day.Turns {
			line += "  the clocks change"
		}
		w.Line("%s", line)
	}
	w.Line("\n█ open, ▒ open in part, · closed; a cell is half an hour. Now it is %s.", c.Now.Format(time.RFC3339))
	if len(c.Openings) > 0 && len(c.Windows) > 0 {
		w.Line("\nOpenings")
		w.Table(func(row func(cells ...string)) {
			for _, span := range c.Openings {
				from, to := span.From.In(c.Zone), span.To.In(c.Zone)
				row("  "+from.Format(spanFormat), "to "+to.Format(spanFormat), text.Duration(to.Sub(from)))
			}
		})
	}
	return w.Err()
}

func (d Day) cells() string {
	var line strings.Builder
	for start := 0; start < minutesPerDay; start += cell {
		open := 0
		for _, bar := range d.Open {
			open += max(0, min(bar.To, start+cell)-max(bar.From, start))
		}
		switch {
		case open >= cell:
			line.WriteRune('█')
		case open > 0:
			line.WriteRune('▒')
		default:
			line.WriteRune('·')
		}
	}
	return line.String()
}

// Measures of the drawing.
const (
	left, top, right = 120.0, 64.0, 20.0
	hour, row        = 32.0, 24.0
	legend           = 44.0
)

func (c Calendar) drawing() *picture.Drawing {
	width, below := left+24*hour+right, top+float64(len(c.Days))*row
	d := picture.New(int(width), int(below+legend), c.title())
	for h := 0; h <= 24; h += 3 {
		x := left + float64(h)*hour
		d.Line(x, top-6, x, below, "")
		d.Text(x, top-10, "muted mid", fmt.Sprintf("%02d:00", h))
	}
	for i, day := range c.Days {
		y := top + float64(i)*row
		d.Text(left-12, y+16, "end", day.From.Format(dayFormat))
		d.Bar(picture.Box{X: left, Y: y + 3, Width: 24 * hour, Height: row - 6}, "plain", "")
		for _, bar := range day.Open {
			from, to := minute(bar.From), minute(bar.To)
			d.Bar(picture.Box{X: from, Y: y + 3, Width: to - from, Height: row - 6}, "open", c.spanText(bar.Span))
		}
		if day.Turns {
			d.Text(left+24*hour-6, y+16, "muted end", "the clocks change")
		}
		if !c.Now.Before(day.From) && c.Now.Before(day.To) {
			x := minute(minuteOf(c.Now))
			d.Line(x, y, x, y+row, "now")
		}
	}
	y := below + 26
	d.Bar(picture.Box{X: left, Y: y - 11, Width: 24, Height: 14}, "open", "")
	d.Text(left+32, y, "muted", "open")
	d.Bar(picture.Box{X: left + 84, Y: y - 11, Width: 24, Height: 14}, "plain", "")
	d.Text(left+116, y, "muted", "closed")
	d.Line(left+180, y-12, left+180, y+4, "now")
	d.Text(left+190, y, "muted", "now")
	d.Text(left+24*hour, y, "muted end", "times of "+c.Zone.String())
	return d
}

func minute(m int) float64 { return left + float64(m)/60*hour }

func (c Calendar) spanText(span schedule.Span) string {
	return fmt.Sprintf("open %s to %s", span.From.In(c.Zone).Format(spanFormat), span.To.In(c.Zone).Format(spanFormat))
}

// WriteSVG writes the calendar as a drawing.
func (c Calendar) WriteSVG(out io.Writer) error { return c.drawing().WriteSVG(out) }

// WriteHTML writes the calendar as a page.
func (c Calendar) WriteHTML(out io.Writer) error {
	page := picture.Page{Title: c.title(), Intro: c.intro(), Drawing: c.drawing(), Head: []string{"Opens", "Closes", "For"}}
	for _, span := range c.Openings {
		page.Rows = append(page.Rows, []string{
			span.From.In(c.Zone).Format(spanFormat), span.To.In(c.Zone).Format(spanFormat), text.Duration(span.To.Sub(span.From)),
		})
	}
	return page.WriteHTML(out)
}
