package freshness

import (
	"time"

	"github.com/kick-dev/kick/internal/core/deps"
)

// Proof says by what a change is known to be carried.
type Proof string

// The proofs, cheapest first, as Judge takes them.
const (
	// Unproven: no evidence says that every Pod carries the change.
	Unproven Proof = "Unproven"
	// ByStamp: the template carries a stamp that KICK issued after it had seen the change.
	ByStamp Proof = "Stamp"
	// ByAge: the workload is no older than the change.
	ByAge Proof = "Age"
	// ByRevision: the revision that all Pods have is no older than the change.
	ByRevision Proof = "Revision"
	// ByPods: each container that reads the source started no earlier than the change, or none runs.
	ByPods Proof = "Pods"
)

// Line is the evidence about one source.
type Line struct {
	deps.Source
	ChangedAt time.Time
	Proof     Proof
	// Bound is the instant up to which the proof proves changes to be carried, zero where it is none of one instant.
	Bound time.Time
	// Readings are the runs of the containers that read the source, where Pods were looked at for it.
	Readings []Reading
}

// Reading is one run of a container that reads a source.
type Reading struct {
	Pod, Container string
	Channel        deps.Channel
	StartedAt      time.Time
	// Bound is the instant as of which it provably has read the source: its start, or before that where the volume may
	// have lagged behind.
	Bound time.Time
	// Carries tells whether that is no earlier than the change.
	Carries bool
}

// Explain gives the evidence about each change, newest first. It takes revision and Pods as they are: what was not read
// proves nothing. With all evidence at hand, exactly the changes are Unproven that Judge finds stale.
func Explain(changes Changes, evidence Evidence) []Line {
	lines := make([]Line, 0, len(changes))
	for _, source := range changes.Newest() {
		lines = append(lines, explain(source, changes[source], evidence))
	}
	return lines
}

func explain(source deps.Source, at time.Time, evidence Evidence) Line {
	line := Line{Source: source, ChangedAt: at}
	wholeTemplate := !evidence.Rollout.Partial && !evidence.Rollout.Manual
	switch {
	case evidence.Carried.covers(source, at):
		line.Proof, line.Bound = ByStamp, evidence.Carried.bound(source)
	case !at.After(evidence.CreatedAt):
		line.Proof, line.Bound = ByAge, evidence.CreatedAt
	case wholeTemplate && evidence.Revision != nil && !at.After(evidence.revisionBound()):
		line.Proof, line.Bound = ByRevision, evidence.revisionBound()
	default:
		line.Readings = readings(evidence.Pods, source, at)
		line.Proof = ByPods
		if !evidence.PodsRead || anyReadBefore(evidence.Pods, source, at) {
			line.Proof = Unproven
		}
	}
	return line
}

// bound is the instant up to which a coverage covers the changes of a source.
func (c Coverage) bound(source deps.Source) time.Time {
	if carried, listed := c.Changes[source]; listed {
		return carried
	}
	return c.Through
}

func readings(pods []Pod, source deps.Source, at time.Time) []Reading {
	var list []Reading
	for _, pod := range pods {
		for _, reader := range pod.readersOf(source) {
			for _, container := range pod.readBy(reader) {
				bound := pod.bound(container, reader.Channel)
				list = append(list, Reading{
					Pod: pod.Name, Container: container.Name, Channel: reader.Channel,
					StartedAt: container.StartedAt, Bound: bound, Carries: !at.After(bound),
				})
			}
		}
	}
	return list
}
