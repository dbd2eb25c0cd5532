package explain

import (
	"fmt"
	"strings"
	"time"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/gate"
	"github.com/kick-dev/kick/internal/core/policy"
	"github.com/kick-dev/kick/internal/core/request"
)

func linksOf(in Input, explanation request.Explanation) []Link {
	if !in.Facts.Scope.Managed() {
		return nil
	}
	var links []Link
	for _, answer := range explanation.Gate {
		link := Link{Name: string(answer.Name), Open: answer.Block == nil}
		if answer.Block != nil {
			link.Reason, link.Detail, link.OpensAt = answer.Block.Reason, answer.Block.Message, answer.Block.OpensAt
			if link.OpensAt == "" && answer.Name != gate.LinkOwner && answer.Name != gate.LinkSync && !answer.Block.RecheckAt.IsZero() {
				link.OpensAt = answer.Block.RecheckAt.UTC().Format(time.RFC3339)
			}
		} else {
			link.Detail = allowing(answer.Name, in, explanation)
		}
		links = append(links, link)
	}
	return links
}

// allowing says why a link allows a restart.
func allowing(name gate.Name, in Input, explanation request.Explanation) string {
	scope := in.Facts.Scope
	manual := in.Facts.Manual
	switch name {
	case gate.LinkSuspend:
		return "a policy that is not suspended selects the workload"
	case gate.LinkDryRun:
		if scope.DryRun() {
			return "a dry run, and nothing to restart"
		}
		return "no dry run"
	case gate.LinkSchedule:
		return openSchedule(scope, in.Now, manual)
	case gate.LinkMissing:
		if len(in.Facts.Missing) > 0 {
			return "asked only for stale Pods; missing: " + strings.Join(in.Facts.Missing, ", ")
		}
		return "all that new Pods need exists"
	case gate.LinkOwner, gate.LinkSyncWindows, gate.LinkSync:
		return ownerAllows(scope, in)
	case gate.LinkQuiet:
		return quietEnough(scope, explanation.Latest, in.Now)
	case gate.LinkMinInterval:
		if interval := scope.MinInterval(); interval > 0 {
			return fmt.Sprintf("the last restart, if any, was more than %s ago", interval)
		}
		return "none asked for"
	case gate.LinkConcurrency:
		return "no limit is reached"
	default:
		return ""
	}
}

func openSchedule(scope policy.Scope, now time.Time, manual *v1alpha1.ManualRestart) string {
	var until time.Time
	windows := 0
	for _, p := range scope.Policies {
		windows += len(p.Schedule.Windows())
		if !p.Schedule.Open(now) {
			if manual != nil && manual.Override {
				return fmt.Sprintf("closed, and overridden by %s", manual.RequestedBy)
			}
			continue
		}
		const horizon = 366 * 24 * time.Hour
		if closing, closes := p.Schedule.NextClosing(now, now.Add(horizon)); closes && (until.IsZero() || closing.Before(until)) {
			until = closing
		}
	}
	switch {
	case windows == 0:
		return "no windows, so always open"
	case until.IsZero():
		return "open, and does not close within 366 days"
	default:
		return "open until " + until.Format(time.RFC3339)
	}
}

func ownerAllows(scope policy.Scope, in Input) string {
	if len(scope.Providers()) == 0 {
		return "no policy asks a GitOps tool"
	}
	if owner := gate.OwnerOf(scope, &in.Facts.Owners); owner != nil {
		return fmt.Sprintf("%s %s/%s allows it", owner.Kind, owner.Namespace, owner.Name)
	}
	if in.Facts.Manual != nil && in.Facts.Manual.Override {
		return "overridden by " + in.Facts.Manual.RequestedBy
	}
	return "answered by the link before"
}

func quietEnough(scope policy.Scope, latest, now time.Time) string {
	period, _ := scope.Quiet()
	switch {
	case period == 0:
		return "none asked for"
	case latest.IsZero():
		return fmt.Sprintf("%s without a change are asked for", period)
	default:
		return fmt.Sprintf("the last change came %s ago, and %s are asked for", now.Sub(latest).Truncate(time.Second), period)
	}
}
