package gate

import (
	"fmt"

	"github.com/kick-dev/kick/api/v1alpha1"
)

// quiet waits until no change has come for a while, so that changes that belong together lead to one restart. A source
// that never rests does not put the restart off for ever, and a person who asks for one does not wait.
func quiet(input Input) *Block {
	period, most := input.Scope.Quiet()
	if period == 0 || input.Latest.IsZero() || input.Manual {
		return nil
	}
	until := input.Latest.Add(period)
	if end := input.Since.Add(most); until.After(end) {
		until = end
	}
	if !input.Now.Before(until) {
		return nil
	}
	return &Block{
		Phase:     v1alpha1.PhaseWaitingForGate,
		Reason:    v1alpha1.ReasonQuietPeriod,
		Message:   fmt.Sprintf("collecting changes until none has come for %s, for at most %s", period, most),
		RecheckAt: until,
		passing:   true,
	}
}
