package schedule

import "time"

// span is a stretch of time in which the clocks of a zone are not changed.
type span struct {
	// offset is what the clocks are ahead of UTC.
	offset time.Duration
	// end is the instant of the next change, the zero time if there is none.
	end time.Time
}

// spanAt returns the span that holds an instant.
func spanAt(at time.Time, zone *time.Location) span {
	local := at.In(zone)
	_, seconds := local.Zone()
	_, end := local.ZoneBounds()
	return span{offset: time.Duration(seconds) * time.Second, end: end.UTC()}
}

func (s span) endless() bool { return s.end.IsZero() }

// wall is what the clocks show at an instant, as a time in UTC, where arithmetic has no gaps.
func (s span) wall(at time.Time) time.Time { return at.UTC().Add(s.offset) }

// instant is when the clocks show a wall-clock time.
func (s span) instant(wall time.Time) time.Time { return wall.Add(-s.offset) }
