package gate

import (
	"fmt"
	"time"

	"github.com/kick-dev/kick/api/v1alpha1"
)

// Restart is a restart that was made.
type Restart struct {
	// At is when it was stamped, zero for none.
	At time.Time
	// Streak counts the restarts in a row, up to this one, whose sources did not wait out the interval.
	Streak int32
}

// longestInterval is where the minimum interval stops growing, and how long the sources have to rest for it to fall back
// to its first value.
const longestInterval = time.Hour

// interval is the time that has to pass after the restart.
func (r Restart) interval(shortest time.Duration) time.Duration {
	interval := shortest
	for range r.Streak {
		if interval >= longestInterval {
			break
		}
		interval = min(2*interval, longestInterval)
	}
	return interval
}

// NextStreak is that of the next restart, whose first change came at the given time: sources that change before the
// interval has passed are flapping, and the more they do, the longer it gets.
func (r Restart) NextStreak(shortest time.Duration, changedAt time.Time) int32 {
	switch {
	case r.At.IsZero() || !changedAt.Before(r.At.Add(longestInterval)):
		return 0
	case changedAt.Before(r.At.Add(r.interval(shortest))) && r.interval(shortest) < longestInterval:
		return r.Streak + 1
	default:
		return r.Streak
	}
}

// minInterval keeps apart the restarts of one workload, so that a fight over a source does not become an outage. A
// person who asks for a restart does not wait.
func minInterval(input Input) *Block {
	shortest := input.Scope.MinInterval()
	if shortest == 0 || input.Last.At.IsZero() || input.Latest.IsZero() || input.Manual {
		return nil
	}
	interval := input.Last.interval(shortest)
	until := input.Last.At.Add(interval)
	if !input.Now.Before(until) {
		return nil
	}
	block := &Block{
		Phase:     v1alpha1.PhaseWaitingForGate,
		Reason:    v1alpha1.ReasonMinInterval,
		RecheckAt: until,
		passing:   true,
		Message: fmt.Sprintf("restarted at %s; the next restart may follow %s later",
			input.Last.At.UTC().Format(time.RFC3339), interval),
	}
	if input.Last.Streak > 0 {
		block.Message += fmt.Sprintf(", since the sources keep changing (%d times in a row too soon); they are written by %s",
			input.Last.Streak, input.Writers)
	}
	return block
}
