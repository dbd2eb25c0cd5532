// Package preview puts into words what a policy would do that is not stored yet.
package preview

import (
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/schedule"
	"github.com/kick-dev/kick/internal/kubectl/explain"
	"github.com/kick-dev/kick/internal/kubectl/text"
)

// Report about one policy.
type Report struct {
	Namespace string `json:"namespace"`
	Policy    string `json:"policy"`
	// Replaces is true where a policy of that name is stored.
	Replaces bool `json:"replaces"`
	// Force is Acting, DryRun or Suspended.
	Force    string   `json:"force"`
	Warnings []string `json:"warnings,omitempty"`
	Schedule Schedule `json:"schedule"`
	// Workloads that the policy would manage, nil where the cluster was not asked.
	Workloads []Workload `json:"workloads,omitempty"`
	// Released are the workloads that the stored policy of that name manages and this one would not.
	Released []string `json:"released,omitempty"`
	// Unseen is what could not be seen.
	Unseen []string `json:"unseen,omitempty"`
	// Offline is true where the cluster was not asked.
	Offline bool `json:"offline,omitempty"`
}

// Schedule says when a policy is open.
type Schedule struct {
	Windows int  `json:"windows"`
	Open    bool `json:"open"`
	// Until is when it closes, or opens; nil if not within 366 days.
	Until *time.Time `json:"until,omitempty"`
}

// Workload that a policy would manage.
type Workload struct {
	Name    string           `json:"name"`
	Sources []explain.Source `json:"sources,omitempty"`
	// Others are the policies that select it, too.
	Others  []string        `json:"others,omitempty"`
	Verdict explain.Verdict `json:"verdict"`
	// Decision is what KICK would do at once.
	Decision explain.Decision `json:"decision"`
}

// ScheduleOf says when a schedule is open.
func ScheduleOf(s schedule.Schedule, now time.Time) Schedule {
	const horizon = 366 * 24 * time.Hour
	shown := Schedule{Windows: len(s.Windows()), Open: s.Open(now)}
	if shown.Open {
		if at, closes := s.NextClosing(now, now.Add(horizon)); closes {
			shown.Until = &at
		}
	} else if opening := s.NextOpening(now); opening.Found {
		shown.Until = &opening.At
	}
	return shown
}

// WriteText writes the report for people.
func (r Report) WriteText(out io.Writer, now time.Time) error {
	w := text.NewWriter(out)
	does := "is valid, and would be new"
	switch {
	case r.Offline:
		does = "is valid"
	case r.Replaces:
		does = "is valid, and would replace the one of that name"
	}
	w.Line("KickPolicy %s of namespace %s %s", r.Policy, r.Namespace, does)
	switch r.Force {
	case "Suspended":
		w.Line("It is suspended: changes are seen, and restarts wait.")
	case "DryRun":
		w.Line("It is a dry run: it says what it would restart, and restarts nothing.")
	}
	w.Line("Schedule: %s", r.Schedule.text(now))
	for _, warning := range r.Warnings {
		w.Line("Warning: %s", warning)
	}
	if r.Offline {
		return w.Err()
	}
	r.writeUnseen(w)
	r.writeWorkloads(w)
	return w.Err()
}

func (s Schedule) text(now time.Time) string {
	switch {
	case s.Windows == 0:
		return "always open, since it has no windows"
	case s.Open && s.Until == nil:
		return "open, and does not close within 366 days"
	case s.Open:
		return fmt.Sprintf("open now, closes %s (in %s)", s.Until.Format(time.RFC3339), duration.HumanDuration(s.Until.Sub(now)))
	case s.Until == nil:
		return "closed, and does not open within 366 days"
	default:
		return fmt.Sprintf("closed now, opens %s (in %s)", s.Until.Format(time.RFC3339), duration.HumanDuration(s.Until.Sub(now)))
	}
}

func (r Report) writeUnseen(w *text.Writer) {
	if len(r.Unseen) == 0 {
		return
	}
	w.Line("\nNot seen")
	for _, unseen := range r.Unseen {
		w.Line("  - %s", unseen)
	}
}

func (r Report) writeWorkloads(w *text.Writer) {
	if len(r.Workloads) == 0 {
		w.Line("\nIt selects no workload that is there now.")
	} else {
		w.Line("\nWorkloads it would manage: %d", len(r.Workloads))
		w.Table(func(row func(cells ...string)) {
			row("  WORKLOAD", "PODS", "AT ONCE", "OTHER POLICIES", "SOURCES THAT COUNT")
			for _, workload := range r.Workloads {
				row("  "+workload.Name, string(workload.Verdict.Outcome), next(workload.Decision), orNone(workload.Others),
					sources(workload.Sources))
			}
		})
	}
	for _, name := range r.Released {
		w.Line("No longer managed by it: %s", name)
	}
	stale := 0
	for _, workload := range r.Workloads {
		if workload.Verdict.Outcome == explain.Stale {
			stale++
		}
	}
	if stale > 0 {
		w.Line("\nWorkloads whose Pods do not provably carry the content of their sources: %d. Each would be restarted once.", stale)
	}
}

func next(decision explain.Decision) string {
	switch decision.Action {
	case explain.ActionRestart:
		return "restart"
	case explain.ActionWait, explain.ActionFollow:
		if decision.Reason == "" {
			return "wait"
		}
		return "wait: " + decision.Reason
	case explain.ActionUnknown:
		return "?"
	default:
		return "nothing"
	}
}

func sources(list []explain.Source) string {
	var names []string
	for _, source := range list {
		if strings.HasPrefix(source.Name, string(v1alpha1.Manual)) {
			continue // A restart by hand is no source that a policy covers.
		}
		switch source.Standing {
		case explain.Counts, explain.Unread, explain.Unobserved:
			names = append(names, source.Name)
		case explain.Unseen:
			names = append(names, source.Name+" (?)")
		case explain.Missing:
			names = append(names, source.Name+" (missing)")
		default: // It does not count.
		}
	}
	return orNone(names)
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "-"
	}
	return strings.Join(names, ", ")
}
