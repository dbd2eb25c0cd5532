package faults

// Fault is what happens to a request.
type Fault string

// The faults. Those "after" happen when the API server has acted and its answer is on the way.
const (
	KillBefore  Fault = "kill before"
	KillAfter   Fault = "kill after"
	Fail500     Fault = "500"
	Fail409     Fault = "409"
	Fail403     Fault = "403"
	Fail429     Fault = "429"
	ResetBefore Fault = "reset before"
	ResetAfter  Fault = "reset after"
	Delay       Fault = "delay"
	// Hold withholds the request until its plan is released, and then passes it on, however old it is.
	Hold Fault = "hold"
	// CutHalf breaks the answer off after half of what the API server sends at first. On a watch that is what it sends
	// of the objects that exist.
	CutHalf Fault = "cut half way"
)

// Faults are those that fit every call.
var Faults = []Fault{KillBefore, KillAfter, Fail500, Fail409, Fail403, Fail429, ResetBefore, ResetAfter, Delay}

// kills tells whether the fault ends the manager.
func (f Fault) kills() bool { return f == KillBefore || f == KillAfter }

// refusals are the answers that the API server gives instead of acting.
var refusals = map[Fault]struct {
	code   int
	reason string
}{
	Fail500: {500, "InternalError"},
	Fail409: {409, "Conflict"},
	Fail403: {403, "Forbidden"},
	Fail429: {429, "TooManyRequests"},
}
