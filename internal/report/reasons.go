package report

// Reasons of the events, for those who read them.
const (
	EventKicked         = eventKicked
	EventKickSucceeded  = eventKickSucceeded
	EventKickFailed     = eventKickFailed
	EventKickNotNeeded  = eventKickNotNeeded
	EventKickWaiting    = eventKickWaiting
	EventKickBlocked    = eventKickBlocked
	EventStampRemoved   = eventStampRemoved
	EventSourceFlapping = eventSourceFlapping
)
