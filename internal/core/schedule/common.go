package schedule

import "time"

// NextCommonOpening finds the first instant from now on at which all the schedules are open.
func NextCommonOpening(schedules []Schedule, now time.Time) Opening {
	at := now
	for range maxSteps {
		moved := false
		for _, s := range schedules {
			opening := s.NextOpening(at)
			if !opening.Found {
				return opening
			}
			if opening.At.After(at) {
				at, moved = opening.At, true
			}
		}
		if !moved {
			return Opening{At: at, Found: true}
		}
		if at.Sub(now) > horizon {
			return Opening{Never: true}
		}
	}
	return Opening{At: at}
}
