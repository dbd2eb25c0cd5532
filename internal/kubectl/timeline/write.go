package timeline

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/kick-dev/kick/internal/kubectl/picture"
	"github.com/kick-dev/kick/internal/kubectl/text"
)

const instantFormat = "2006-01-02 15:04:05"

// WriteText writes the timeline for a terminal, in UTC.
func (t Timeline) WriteText(out io.Writer) error {
	w := text.NewWriter(out)
	if len(t.Lanes) == 0 {
		w.Line("Nothing is known since %s.", t.From.UTC().Format(time.RFC3339))
		return w.Err()
	}
	for i, lane := range t.Lanes {
		if i > 0 {
			w.Line("")
		}
		w.Line("%s in namespace %s", lane.Workload, lane.Namespace)
		w.Table(func(row func(cells ...string)) {
			for _, item := range lane.Items {
				row("  "+item.From.UTC().Format(instantFormat), string(item.Kind), item.length(), item.Text)
			}
		})
	}
	w.Line("\nTimes are UTC; now it is %s.", t.Now.UTC().Format(instantFormat))
	return w.Err()
}

// length is how long an item lasts.
func (i Item) length() string {
	switch {
	case i.To == nil:
		return "-"
	case i.Going:
		return shortly(i.To.Sub(i.From)) + " so far"
	default:
		return shortly(i.To.Sub(i.From))
	}
}

func shortly(d time.Duration) string {
	if d < time.Minute {
		return d.Round(100 * time.Millisecond).String()
	}
	return text.Duration(d.Round(time.Second))
}

// Measures of the drawing.
const (
	top, right = 70.0, 40.0
	span       = 760.0
	row        = 44.0
	legend     = 48.0
	edge       = 16.0

	// Names are as long as they are, within limits.
	narrowest     = 220.0
	letter        = 7.5
	longestName   = 42
	spaceForNames = edge + 12
)

// axis is the time that a drawing covers, and where it begins.
type axis struct {
	from, to time.Time
	left     float64
}

// left is where the names end.
func (t Timeline) left() float64 {
	left := narrowest
	for _, lane := range t.Lanes {
		for _, name := range []string{lane.Workload, lane.Namespace} {
			left = max(left, spaceForNames+letter*float64(min(len(name), longestName)))
		}
	}
	return left
}

// axis begins with the first item and ends with the last.
func (t Timeline) axis() axis {
	a := axis{from: t.Now, to: t.Now, left: t.left()}
	for _, lane := range t.Lanes {
		for _, item := range lane.Items {
			if item.From.Before(a.from) {
				a.from = item.From
			}
			for _, at := range []*time.Time{&item.From, item.To} {
				if at != nil && at.After(a.to) {
					a.to = *at
				}
			}
		}
	}
	if a.from.Before(t.From) {
		a.from = t.From
	}
	margin := max(a.to.Sub(a.from)/40, time.Second)
	a.from, a.to = a.from.Add(-margin), a.to.Add(margin)
	return a
}

func (a axis) x(at time.Time) float64 {
	part := float64(at.Sub(a.from)) / float64(a.to.Sub(a.from))
	return a.left + span*math.Min(1, math.Max(0, part))
}

// steps are distances between ticks that people read easily.
var steps = []time.Duration{
	time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute,
	time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour, 28 * 24 * time.Hour,
}

func (a axis) step() time.Duration {
	const ticks = 8
	for _, step := range steps {
		if a.to.Sub(a.from)/step <= ticks {
			return step
		}
	}
	return a.to.Sub(a.from)
}

func (a axis) format() string {
	switch step := a.step(); {
	case step < time.Minute:
		return "15:04:05"
	case step < 24*time.Hour:
		return "15:04"
	default:
		return "Jan 2"
	}
}

func (t Timeline) title() string { return "What KICK did, and why" }

func (t Timeline) drawing() *picture.Drawing {
	below := top + float64(len(t.Lanes))*row
	a := t.axis()
	d := picture.New(int(a.left+span+right), int(below+legend), t.title())
	d.Text(a.left+span, 26, "muted end", fmt.Sprintf("%s to %s UTC", a.from.UTC().Format(instantFormat), a.to.UTC().Format(instantFormat)))
	for at := a.from.UTC().Truncate(a.step()).Add(a.step()); at.Before(a.to); at = at.Add(a.step()) {
		d.Line(a.x(at), top-8, a.x(at), below, "")
		d.Text(a.x(at), top-14, "muted mid", at.Format(a.format()))
	}
	for i, lane := range t.Lanes {
		lane.draw(d, a, top+float64(i)*row)
	}
	d.Line(a.x(t.Now), top-8, a.x(t.Now), below, "now")
	drawLegend(d, a.left, below+30)
	return d
}

func (l Lane) draw(d *picture.Drawing, a axis, y float64) {
	d.Text(edge, y+20, "", picture.Shorten(l.Workload, longestName))
	d.Text(edge, y+34, "muted", picture.Shorten(l.Namespace, longestName))
	d.Bar(picture.Box{X: a.left, Y: y + 16, Width: span, Height: 12}, "plain", "")
	for _, last := range []bool{true, false} { // Instants are drawn over what lasts.
		for _, item := range l.Items {
			if (item.To != nil) == last {
				item.draw(d, a, y+22)
			}
		}
	}
}

func (i Item) draw(d *picture.Drawing, a axis, y float64) {
	tip := fmt.Sprintf("%s %s: %s", i.From.UTC().Format(instantFormat), i.Kind, i.Text)
	x := a.x(i.From)
	switch i.Kind {
	case Wait:
		d.Bar(picture.Box{X: x, Y: y - 6, Width: a.x(*i.To) - x, Height: 12}, "wait", tip+" ("+i.length()+")")
	case Rollout:
		d.Bar(picture.Box{X: x, Y: y - 6, Width: a.x(*i.To) - x, Height: 12}, "roll", tip+" ("+i.length()+")")
	case Change:
		d.Diamond(x, y, 7, "change", tip)
	case Stamp:
		d.Flag(x, y-4, 12, "stamp", tip)
	case Done:
		d.Circle(x, y, 5, "good", tip)
	case Failed:
		d.Circle(x, y, 5, "bad", tip)
	case Opens:
		d.Diamond(x, y, 5, "open", tip)
	}
}

func drawLegend(d *picture.Drawing, x, y float64) {
	next := func(label string, mark func()) {
		mark()
		d.Text(x+18, y, "muted", label)
		x += 36 + 6.2*float64(len(label))
	}
	next("change", func() { d.Diamond(x+6, y-4, 6, "change", "") })
	next("wait", func() { d.Bar(picture.Box{X: x, Y: y - 9, Width: 14, Height: 10}, "wait", "") })
	next("restart", func() { d.Flag(x+6, y+1, 11, "stamp", "") })
	next("rollout", func() { d.Bar(picture.Box{X: x, Y: y - 9, Width: 14, Height: 10}, "roll", "") })
	next("done", func() { d.Circle(x+6, y-4, 5, "good", "") })
	next("failed", func() { d.Circle(x+6, y-4, 5, "bad", "") })
	next("schedule opens", func() { d.Diamond(x+6, y-4, 5, "open", "") })
	next("now", func() { d.Line(x+6, y-12, x+6, y+4, "now") })
}

// WriteSVG writes the timeline as a drawing.
func (t Timeline) WriteSVG(out io.Writer) error { return t.drawing().WriteSVG(out) }

// WriteHTML writes the timeline as a page.
func (t Timeline) WriteHTML(out io.Writer) error {
	page := picture.Page{
		Title:   t.title(),
		Intro:   "Requests keep the last restart of each workload, and events about the last hour. Times are UTC.",
		Drawing: t.drawing(), Head: []string{"Namespace", "Workload", "When", "What", "For", "Why"},
	}
	for _, lane := range t.Lanes {
		for _, item := range lane.Items {
			page.Rows = append(page.Rows, []string{
				lane.Namespace, lane.Workload, item.From.UTC().Format(instantFormat), string(item.Kind), item.length(), item.Text,
			})
		}
	}
	return page.WriteHTML(out)
}
