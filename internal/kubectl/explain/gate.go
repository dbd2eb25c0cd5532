package explain

import (
	"fmt"
	"strings"
	"time"

	"github.com/kick-dev/kick/internal/core/gate"
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
			link.Detail = allowing(answer.Name, in, explanation.Asked)
		}
		links = append(links, link)
	}
	return links
}

// allowing says why a link allows a restart.
func allowing(name gate.Name, in Input, asked gate.Input) string {
	switch name {
	case gate.LinkSuspend:
		return "a policy that is not suspended selects the workload"
	case gate.LinkDryRun:
		if asked.Scope.DryRun() {
			return "a dry run, and nothing to restart"
		}
		return "no dry run"
	case gate.LinkSchedule:
		return openSchedule(in, asked)
	case gate.LinkMissing:
		if len(asked.Missing) > 0 {
			return "asked only for stale Pods; missing: " + strings.Join(asked.Missing, ", ")
		}
		return "all that new Pods need exists"
	case gate.LinkOwner, gate.LinkSyncWindows, gate.LinkSync:
		return ownerAllows(in, asked)
	case gate.LinkQuiet:
		period, _ := asked.Scope.Quiet()
		return waited(asked, period, fmt.Sprintf("the last change came %s ago, and %s without one are asked for",
			asked.Now.Sub(asked.Latest).Truncate(time.Second), period))
	case gate.LinkMinInterval:
		if asked.Last.At.IsZero() {
			return waited(asked, asked.Scope.MinInterval(), "no restart came before")
		}
		return waited(asked, asked.Scope.MinInterval(), fmt.Sprintf("the last restart was at %s, and the time after it has passed",
			asked.Last.At.UTC().Format(time.RFC3339)))
	case gate.LinkConcurrency:
		return "no limit is reached"
	default:
		return ""
	}
}

// waited says why a link that lets time pass allows a restart: for the reason given, or because there is nothing to wait for.
func waited(asked gate.Input, period time.Duration, passed string) string {
	switch {
	case period == 0:
		return "none asked for"
	case asked.Latest.IsZero():
		return "no change waits for a restart"
	case asked.Manual:
		return "does not hold back a restart by hand"
	default:
		return passed
	}
}

func openSchedule(in Input, asked gate.Input) string {
	var until time.Time
	windows := 0
	for _, p := range asked.Scope.Policies {
		windows += len(p.Schedule.Windows())
		if !p.Schedule.Open(asked.Now) {
			return "closed, and overridden by " + in.Facts.Manual.RequestedBy // Nothing else opens it.
		}
		const horizon = 366 * 24 * time.Hour
		closing, closes := p.Schedule.NextClosing(asked.Now, asked.Now.Add(horizon))
		if closes && (until.IsZero() || closing.Before(until)) {
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

func ownerAllows(in Input, asked gate.Input) string {
	if len(asked.Scope.Providers()) == 0 {
		return "no policy asks a GitOps tool"
	}
	if asked.Override {
		return "overridden by " + in.Facts.Manual.RequestedBy
	}
	if owner := gate.OwnerOf(asked.Scope, &in.Facts.Owners); owner != nil {
		return fmt.Sprintf("%s %s/%s allows it", owner.Kind, owner.Namespace, owner.Name)
	}
	return "answered by the link before"
}
