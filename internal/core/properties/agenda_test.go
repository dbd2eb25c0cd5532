package properties_test

import (
	"slices"
	"time"
)

// agenda is what is going to happen, in the order of time.
type agenda struct {
	entries []entry
}

type entry struct {
	at time.Time
	do func()
}

// add puts an entry behind all those due no later.
func (a *agenda) add(at time.Time, do func()) {
	i, _ := slices.BinarySearchFunc(a.entries, at, func(e entry, at time.Time) int {
		if e.at.After(at) {
			return 1
		}
		return -1
	})
	a.entries = slices.Insert(a.entries, i, entry{at, do})
}

// due takes out the first entry, if it is due by the given time.
func (a *agenda) due(by time.Time) (entry, bool) {
	if len(a.entries) == 0 || a.entries[0].at.After(by) {
		return entry{}, false
	}
	first := a.entries[0]
	a.entries = a.entries[1:]
	return first, true
}
