package explain

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/kick-dev/kick/internal/kubectl/text"
)

// WriteText writes the report for people.
func (r Report) WriteText(out io.Writer) error {
	w := text.NewWriter(out)
	w.Line("%s in namespace %s", r.Workload, r.Namespace)
	w.Table(func(row func(cells ...string)) {
		row("  Policies:", policies(r))
		if r.Request != nil {
			row("  Request:", requestLine(r.Request))
		} else {
			row("  Request:", "none")
		}
		row("  Rollout:", r.Rollout)
	})
	if len(r.Unseen) > 0 {
		w.Line("\nNot seen")
		for _, unseen := range r.Unseen {
			w.Line("  - %s", unseen)
		}
	}
	r.writeSources(w)
	r.writeEvidence(w)
	w.Line("\nLatest change: %s", latest(r.LatestChange))
	w.Line("Verdict: %s: %s", r.Verdict.Outcome, r.Verdict.Text)
	r.writeGate(w)
	r.writeDecision(w)
	return w.Err()
}

func policies(r Report) string {
	if len(r.Policies) == 0 {
		return "none selects the workload"
	}
	names := strings.Join(r.Policies, ", ")
	switch r.Force {
	case "Suspended":
		return names + " (suspended)"
	case "DryRun":
		return names + " (dry run)"
	default:
		return names
	}
}

func requestLine(request *Request) string {
	if request.Reason == "" {
		return request.Name + ": new, KICK has not looked at it yet"
	}
	return fmt.Sprintf("%s: %s, %s: %s", request.Name, request.Phase, request.Reason, request.Message)
}

var standings = map[Standing]string{
	Counts: "yes", Ignored: "no", NotCovered: "no", Missing: "-", Unobserved: "not yet", Unread: "yes", Unseen: "?",
}

func (r Report) writeSources(w *text.Writer) {
	w.Line("\nSources")
	if len(r.Sources) == 0 {
		w.Line("  none: the Pod template refers to no Secret and no ConfigMap")
		return
	}
	w.Table(func(row func(cells ...string)) {
		row("  NAME", "CHANGED", "COUNTS", "READ BY", "KEYS", "NOTE")
		for _, source := range r.Sources {
			changed, keys := "-", "all"
			if source.ChangedAt != nil {
				changed = stamp(*source.ChangedAt)
			}
			if len(source.Keys) > 0 {
				keys = strings.Join(source.Keys, ",")
			}
			note := source.Detail
			if note == "" && source.Writers != "" {
				note = "written by " + source.Writers
			}
			row("  "+source.Name, changed, standings[source.Standing], strings.Join(source.ReadBy, ", "), keys, note)
		}
	})
}

func (r Report) writeEvidence(w *text.Writer) {
	if len(r.Evidence) == 0 {
		return
	}
	w.Line("\nEvidence that the Pods carry them")
	for _, evidence := range r.Evidence {
		w.Line("  %s, changed %s", evidence.Source, stamp(evidence.ChangedAt))
		w.Line("    %s", evidence.Text)
		for _, line := range evidence.Lines {
			w.Line("      %s", line)
		}
	}
}

func (r Report) writeGate(w *text.Writer) {
	if len(r.Gate) == 0 {
		return
	}
	w.Line("\nGate")
	w.Table(func(row func(cells ...string)) {
		for _, link := range r.Gate {
			if link.Open {
				row("  open", link.Name, link.Detail)
				continue
			}
			detail := link.Reason + ": " + link.Detail
			if link.OpensAt != "" && !strings.Contains(detail, link.OpensAt) {
				detail += " (until " + link.OpensAt + ")"
			}
			row("  CLOSED", link.Name, detail)
		}
	})
}

var actions = map[Action]string{
	ActionNothing: "nothing to do", ActionWait: "wait", ActionRestart: "restart now", ActionFollow: "follow the rollout",
	ActionUnknown: "cannot be told",
}

func (r Report) writeDecision(w *text.Writer) {
	decision := r.Decision
	state := ""
	if decision.Phase != "" {
		state = fmt.Sprintf(" (%s, %s)", decision.Phase, decision.Reason)
	}
	w.Line("\nDecision: %s%s: %s", actions[decision.Action], state, decision.Message)
	if decision.RecheckAt != nil {
		w.Line("Decided again at %s, or when something happens", decision.RecheckAt.UTC().Format(time.RFC3339))
	}
}

func latest(at *time.Time) string {
	if at == nil {
		return "none on record"
	}
	return stamp(*at)
}
