package gitops

import (
	"fmt"
	"slices"
	"time"

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kick-dev/kick/api/v1alpha1"
)

// The kinds of sync windows. Any other value is neither and has no effect.
const (
	windowAllow = "allow"
	windowDeny  = "deny"
)

// maxWindowSteps and windowHorizon bound the search for an opening.
const (
	maxWindowSteps = 2000
	windowHorizon  = 366 * 24 * time.Hour
)

// SyncWindow is a sync window of an AppProject as it is stored.
type SyncWindow struct {
	Kind     string
	Schedule string
	Duration string
	TimeZone string
	// Applications, Namespaces and Clusters are globs of what it applies to.
	Applications, Namespaces, Clusters []string
	// AndOperator makes all of these lists have to match, where one is enough otherwise.
	AndOperator bool
	// ManualSync lets syncs that a person asked for pass.
	ManualSync bool
}

// windows holds while the sync windows of the Application's project do not permit a sync. A restart by KICK counts as
// automated, and as manual if a person asked for it.
func (c *ArgoCD) windows(a *Application, now time.Time, manual bool) *Hold {
	plane := c.Planes[a.ControllerNamespace]
	project, known := plane.Projects[a.ProjectName()]
	name := fmt.Sprintf("AppProject %s/%s", a.ControllerNamespace, a.ProjectName())
	switch {
	case !known:
		return hold(v1alpha1.ReasonProjectUnknown, fmt.Sprintf("%s of %s does not exist", name, a))
	case !project.permits(a.Namespace, a.ControllerNamespace):
		return hold(v1alpha1.ReasonProjectUnknown, fmt.Sprintf("%s does not admit %s: add its namespace to sourceNamespaces", name, a))
	case plane.GlobalsFault != "":
		return hold(v1alpha1.ReasonConfigurationError, fmt.Sprintf(
			"the setting globalProjects of the Argo CD in namespace %s cannot be read: %s", a.ControllerNamespace, plane.GlobalsFault))
	}
	return plane.evaluate(&project, a, windowQuery{now: now, manual: manual})
}

// windowQuery is when, and for whom, windows are asked.
type windowQuery struct {
	now    time.Time
	manual bool
}

// evaluate asks the windows that match the Application: those of its project and of the projects that one inherits from.
func (p *Plane) evaluate(project *Project, a *Application, query windowQuery) *Hold {
	var matching []window
	for _, source := range append([]Project{*project}, p.inherited(project)...) {
		for _, stored := range source.Windows {
			if !stored.matches(a) {
				continue
			}
			parsed, err := stored.parse()
			if err != nil {
				return hold(v1alpha1.ReasonConfigurationError, fmt.Sprintf("a sync window of AppProject %s/%s cannot be read: %s",
					a.ControllerNamespace, source.Name, err))
			}
			matching = append(matching, parsed)
		}
	}
	if permitted(matching, query.now, query.manual) {
		return nil
	}
	closed := hold(v1alpha1.ReasonOutsideSchedule, fmt.Sprintf("the sync windows of AppProject %s/%s are closed for %s",
		a.ControllerNamespace, project.Name, a))
	opensAt, recheckAt := opening(matching, query)
	closed.OpensAt, closed.RecheckAt = opensAt, recheckAt
	if !opensAt.IsZero() {
		closed.Message += ", until " + opensAt.Format(time.RFC3339)
	}
	return closed
}

// inherited returns the global projects whose selectors match the labels of the project (argoproj/argo-cd,
// util/argo/argo.go).
func (p *Plane) inherited(project *Project) []Project {
	var globals []Project
	for _, global := range p.Globals {
		source, known := p.Projects[global.Project]
		if known && global.Selector.Matches(labels.Set(project.Labels)) {
			globals = append(globals, source)
		}
	}
	return globals
}

// matches tells whether a window applies to the Application: to its name, to the name or URL of its cluster as the spec
// has it, or to its destination namespace.
func (w *SyncWindow) matches(a *Application) bool {
	clusters := slices.DeleteFunc([]string{a.Destination.Name, a.Destination.Server}, func(text string) bool { return text == "" })
	some, every := false, true
	for _, list := range []struct{ patterns, texts []string }{
		{w.Applications, []string{a.Name}},
		{w.Clusters, clusters},
		{w.Namespaces, []string{a.Destination.Namespace}},
	} {
		matched := slices.ContainsFunc(list.patterns, func(pattern string) bool {
			return slices.ContainsFunc(list.texts, func(text string) bool { return matches(pattern, text) })
		})
		some = some || matched
		every = every && (matched || len(list.patterns) == 0)
	}
	if !w.AndOperator {
		return some
	}
	return some && every
}

// window is a parsed sync window.
type window struct {
	kind     string
	starts   cron.Schedule
	duration time.Duration
	zone     *time.Location
	manual   bool
}

// windowParser is the parser of Argo CD.
var windowParser = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// parse reads a window as Argo CD does. A time zone it does not know is UTC.
func (w *SyncWindow) parse() (window, error) {
	starts, err := windowParser.Parse(w.Schedule)
	if err != nil {
		return window{}, fmt.Errorf("schedule %q: %w", w.Schedule, err)
	}
	duration, err := time.ParseDuration(w.Duration)
	if err != nil {
		return window{}, fmt.Errorf("duration %q: %w", w.Duration, err)
	}
	zone, err := time.LoadLocation(w.TimeZone)
	if err != nil {
		zone = time.UTC
	}
	return window{kind: w.Kind, starts: starts, duration: duration, zone: zone, manual: w.ManualSync}, nil
}

// wall is the instant on the clocks of the window's zone, read as if it were UTC: the offset of the present is applied to
// starts in the past and in the future, too. That differs from a calendar where clocks change, and is what Argo CD does.
func (w window) wall(at time.Time) time.Time { return at.UTC().Add(w.offset(at)) }

func (w window) offset(at time.Time) time.Duration {
	_, seconds := at.In(w.zone).Zone()
	return time.Duration(seconds) * time.Second
}

// activeAt tells whether a start lies less than the duration before the instant. Both ends are excluded. A schedule that
// never fires is always active, as it is for Argo CD: the start it does not find is in the year 1.
func (w window) activeAt(at time.Time) bool {
	wall := w.wall(at)
	return w.starts.Next(wall.Add(-w.duration)).Before(wall)
}

// permitted tells whether windows permit a sync: an active deny window forbids it, an active allow window permits it, and
// with neither it is permitted unless there is an allow window.
func permitted(windows []window, at time.Time, manual bool) bool {
	var denied, allowed, closed bool
	deniedManual, closedManual := true, true
	for _, w := range windows {
		active := w.activeAt(at)
		switch {
		case w.kind == windowDeny && active:
			denied, deniedManual = true, deniedManual && w.manual
		case w.kind == windowAllow && active:
			allowed = true
		case w.kind == windowAllow:
			closed, closedManual = true, closedManual && w.manual
		}
	}
	switch {
	case denied:
		return manual && deniedManual
	case allowed || !closed:
		return true
	default:
		return manual && closedManual
	}
}

// opening searches for the next instant at which the windows permit a sync. It returns zero times where they never do,
// and only a time to search again where the search was long.
func opening(windows []window, query windowQuery) (opensAt, recheckAt time.Time) {
	if soon := query.now.Add(time.Second); permitted(windows, soon, query.manual) {
		return soon, soon // A window that begins at this very instant is active after it.
	}
	at := query.now
	for range maxWindowSteps {
		edge := nextEdge(windows, at)
		if edge.IsZero() || edge.Sub(query.now) > windowHorizon {
			return time.Time{}, time.Time{}
		}
		// A window is active after its start and no longer at its end.
		for _, instant := range []time.Time{edge, edge.Add(time.Second)} {
			if permitted(windows, instant, query.manual) {
				return edge, instant
			}
		}
		at = edge.Add(time.Second)
	}
	return time.Time{}, at
}

// nextEdge is the first instant after the given one at which a window may begin or end.
func nextEdge(windows []window, after time.Time) time.Time {
	var next time.Time
	for _, w := range windows {
		for _, edge := range w.edges(after) {
			if edge.After(after) && (next.IsZero() || edge.Before(next)) {
				next = edge.In(w.zone)
			}
		}
	}
	return next
}

// edges are the next start of the window, its present end, and the next change of the clocks, which moves both.
func (w window) edges(at time.Time) []time.Time {
	var edges []time.Time
	if _, change := at.In(w.zone).ZoneBounds(); !change.IsZero() {
		edges = append(edges, change)
	}
	wall, offset := w.wall(at), w.offset(at)
	next := w.starts.Next(wall)
	if next.IsZero() {
		return nil // It is always active.
	}
	edges = append(edges, next.Add(-offset))
	if last := w.lastStart(wall); !last.IsZero() {
		edges = append(edges, last.Add(w.duration-offset))
	}
	return edges
}

// lastStart is the latest start that keeps the window active, the zero time if none does. It looks back further and
// further, since schedules are searched forwards only.
func (w window) lastStart(wall time.Time) time.Time {
	for back := min(time.Minute, w.duration); back > 0; back = min(2*back, w.duration) {
		var last time.Time
		for start := w.starts.Next(wall.Add(-back)); start.Before(wall); start = w.starts.Next(start) {
			last = start
		}
		if !last.IsZero() || back == w.duration {
			return last
		}
	}
	return time.Time{}
}
