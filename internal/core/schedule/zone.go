package schedule

import (
	"slices"
	"time"
)

// margin is more than any change of a zone's clock: the largest so far skipped a whole day (Pacific/Apia, 2011).
const margin = 26 * time.Hour

// wallClock returns what the clocks of a zone show at an instant, as a time in UTC, where arithmetic has no gaps.
func wallClock(at time.Time, zone *time.Location) time.Time {
	local := at.In(zone)
	return time.Date(local.Year(), local.Month(), local.Day(),
		local.Hour(), local.Minute(), local.Second(), local.Nanosecond(), time.UTC)
}

// instantsOf returns the instants at which the clocks of a zone show the wall-clock time, in their order: mostly one,
// two where the clocks went back, and the end of the gap where the time was skipped.
func instantsOf(wall time.Time, zone *time.Location) []time.Time {
	before, after := offsetAt(wall.Add(-margin), zone), offsetAt(wall.Add(margin), zone)
	var instants []time.Time
	for _, offset := range []time.Duration{before, after} {
		if instant := wall.Add(-offset); wallClock(instant, zone).Equal(wall) {
			instants = append(instants, instant)
		}
	}
	if len(instants) == 0 {
		gapEnd, _ := wall.Add(-before).In(zone).ZoneBounds()
		return []time.Time{gapEnd.UTC()}
	}
	slices.SortFunc(instants, time.Time.Compare)
	return slices.CompactFunc(instants, time.Time.Equal)
}

// shiftNear is how far the clocks of a zone are changed within the margin around an instant, 0 if they are not.
func shiftNear(at time.Time, zone *time.Location) time.Duration {
	before, now, after := offsetAt(at.Add(-margin), zone), offsetAt(at, zone), offsetAt(at.Add(margin), zone)
	return max(before, now, after) - min(before, now, after)
}

func offsetAt(at time.Time, zone *time.Location) time.Duration {
	_, seconds := at.In(zone).Zone()
	return time.Duration(seconds) * time.Second
}
