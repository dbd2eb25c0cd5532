// Package freshness decides whether the running Pods of a workload provably carry the last change of every source in
// scope: Λ(w), σ(w) and stale(w), §6 of the model.
//
// The model gives one start time σ per workload. This package asks each source against the containers that read
// it, which is the same comparison made finer: what only one container reads cannot make another one stale. Each
// rule below yields a bound that is true whatever the clocks say, and a change at the very instant of a bound counts
// as carried (the comparison is strict).
package freshness

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/kick-dev/kick/internal/core/deps"
	"github.com/kick-dev/kick/internal/core/rollout"
)

// Changes holds the time of the last relevant change of each source: Ω restricted to D(w).
type Changes map[deps.Source]time.Time

// Latest is Λ(w), the zero time for no change at all.
func (c Changes) Latest() time.Time {
	var latest time.Time
	for _, at := range c {
		if at.After(latest) {
			latest = at
		}
	}
	return latest
}

// Without returns the changes that are not covered.
func (c Changes) Without(coverage Coverage) Changes {
	return c.filter(func(source deps.Source, at time.Time) bool { return !coverage.covers(source, at) })
}

// And returns these changes and others, each source at the later of its times.
func (c Changes) And(others Changes) Changes {
	all := maps.Clone(c)
	if all == nil {
		all = Changes{}
	}
	for source, at := range others {
		if at.After(all[source]) {
			all[source] = at
		}
	}
	return all
}

// After returns the changes later than the bound.
func (c Changes) After(bound time.Time) Changes {
	return c.filter(func(_ deps.Source, at time.Time) bool { return at.After(bound) })
}

func (c Changes) filter(keep func(deps.Source, time.Time) bool) Changes {
	kept := Changes{}
	for source, at := range c {
		if keep(source, at) {
			kept[source] = at
		}
	}
	return kept
}

// Newest returns the sources from the newest change to the oldest, ties in the order of sources.
func (c Changes) Newest() []deps.Source {
	sources := make([]deps.Source, 0, len(c))
	for source := range c {
		sources = append(sources, source)
	}
	slices.SortFunc(sources, func(a, b deps.Source) int {
		return cmp.Or(c[b].Compare(c[a]), a.Compare(b))
	})
	return sources
}

// Coverage is a set of changes that some Pods are known to carry, with all older changes of the same sources.
type Coverage struct {
	Changes Changes
	// Through covers the sources that Changes had no room for: their changes up to this instant are carried. It is the
	// zero time where nothing was left out.
	Through time.Time
}

func (c Coverage) covers(source deps.Source, at time.Time) bool {
	if carried, listed := c.Changes[source]; listed {
		return !at.After(carried)
	}
	return !c.Through.IsZero() && !at.After(c.Through)
}

// Evidence is what is known of a workload's Pods. Revision and Pods cost reads, so they may be missing at first; the
// verdict says when they are needed.
type Evidence struct {
	// CreatedAt is when the workload object was created: none of its Pods is older.
	CreatedAt time.Time
	// Rollout is the state of the present rollout.
	Rollout rollout.State
	// Carried are the changes that the present template's stamp is known to cover. It is set only when KICK issued the
	// stamp that the template carries: any other stamp proves nothing.
	Carried Coverage
	// Stamp is the restartedAt annotation on the present template, whoever wrote it.
	Stamp string
	// Revision is the revision of the present template, nil when not found.
	Revision *rollout.Revision
	// RevisionRead is true once Revision has been looked up.
	RevisionRead bool
	// Pods are the live Pods of the workload.
	Pods []Pod
	// PodsRead is true once Pods have been listed.
	PodsRead bool
	// PodsLate is true where the list may be a moment behind: that a Pod is stale can be told by it, that all are fresh can
	// not.
	PodsLate bool
}

// Outcome is the kind of a verdict.
type Outcome int

// The outcomes. NeedsRevision and NeedsPods ask for more evidence and are no judgement.
const (
	Fresh Outcome = iota
	Stale
	NeedsRevision
	NeedsPods
)

// Verdict is the result of a judgement.
type Verdict struct {
	Outcome Outcome
	// Stale are the changes that some running container does not provably carry.
	Stale Changes
}

// Judge compares the changes with the evidence, cheapest evidence first. The rollout must be complete: while one is
// in progress there is no stable set of Pods to judge.
func Judge(changes Changes, evidence Evidence) Verdict {
	open := changes.Without(evidence.Carried).After(evidence.CreatedAt)
	if len(open) == 0 {
		return Verdict{Outcome: Fresh}
	}
	if !evidence.Rollout.Partial && !evidence.Rollout.Manual {
		if !evidence.RevisionRead && !evidence.predates(open) {
			return Verdict{Outcome: NeedsRevision}
		}
		if evidence.Revision != nil {
			open = open.After(evidence.revisionBound())
		}
	}
	if len(open) == 0 {
		return Verdict{Outcome: Fresh}
	}
	if !evidence.PodsRead {
		return Verdict{Outcome: NeedsPods}
	}
	stale := open.filter(func(source deps.Source, at time.Time) bool {
		return anyReadBefore(evidence.Pods, source, at)
	})
	switch {
	case len(stale) > 0:
		return Verdict{Outcome: Stale, Stale: stale}
	case evidence.PodsLate:
		return Verdict{Outcome: NeedsPods}
	default:
		return Verdict{Outcome: Fresh}
	}
}

// JudgeTemplate compares the changes with the present template instead of the running Pods: the question for a
// rollout that is stuck, where only a change newer than the template is a reason to roll another one.
func JudgeTemplate(changes Changes, evidence Evidence) Verdict {
	open := changes.Without(evidence.Carried).After(evidence.CreatedAt)
	if len(open) == 0 {
		return Verdict{Outcome: Fresh}
	}
	if !evidence.RevisionRead {
		return Verdict{Outcome: NeedsRevision}
	}
	if evidence.Revision != nil {
		open = open.After(evidence.revisionBound())
	}
	if len(open) == 0 {
		return Verdict{Outcome: Fresh}
	}
	return Verdict{Outcome: Stale, Stale: open}
}

// predates tells whether the present revision is known to be older than each of the changes, beyond the precision of the
// API server's dates: then it cannot prove that they are carried.
func (e Evidence) predates(changes Changes) bool {
	known := e.Rollout.RevisedBy
	return !known.IsZero() && len(changes.After(known.Add(time.Second))) == len(changes)
}

// revisionBound is when the present revision came to be. The API server dates it in whole seconds; a stamp that lies
// within that second was on the template before the revision was made, and tells it more exactly. That is also why the
// word of a stamp whose author is not known can be taken here: it cannot gain a second by it.
func (e Evidence) revisionBound() time.Time {
	created := e.Revision.CreatedAt
	stamp, err := time.Parse(time.RFC3339Nano, e.Stamp)
	if err == nil && stamp.After(created) && stamp.Before(created.Add(time.Second)) {
		return stamp
	}
	return created
}

// anyReadBefore tells whether in some Pod a container may have read the source before the instant, and not since.
func anyReadBefore(pods []Pod, source deps.Source, at time.Time) bool {
	return slices.ContainsFunc(pods, func(pod Pod) bool { return pod.readBefore(source, at) })
}
