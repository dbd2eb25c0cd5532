package notify

import (
	"fmt"
	"time"
)

// Outcome is how an attempt to deliver a message ended. Its text is made of nothing that the receiver or the URL said, but
// for the number of a status.
type Outcome struct {
	// Failure says what went wrong, empty for a delivery.
	Failure string
	// Refused is true where the receiver finds fault with the message itself, so that sending it again is of little use.
	Refused bool
}

// Delivered tells whether the receiver took the message.
func (o Outcome) Delivered() bool { return o.Failure == "" }

// OutcomeOfStatus judges the HTTP status of an answer.
func OutcomeOfStatus(status int) Outcome {
	switch {
	case status >= 200 && status < 300:
		return Outcome{}
	case status >= 300 && status < 400:
		return Outcome{Failure: fmt.Sprintf("the receiver answers with a redirect, status %d, and redirects are not followed", status)}
	default:
		return Outcome{
			Failure: fmt.Sprintf("the receiver answers with status %d", status),
			Refused: status == 400 || status == 413 || status == 415 || status == 422,
		}
	}
}

// Retries of a message.
const (
	firstPause = time.Second
	lastPause  = 5 * time.Minute
	// MaxRefusals is how often a message is sent that the receiver finds fault with.
	MaxRefusals = 5
)

// Pause is how long to wait after so many failures in a row.
func Pause(failures int) time.Duration {
	pause := firstPause
	for range failures - 1 {
		if pause *= 2; pause >= lastPause {
			return lastPause
		}
	}
	return pause
}
