package controllers

import (
	"time"

	"k8s.io/client-go/util/workqueue"
)

const (
	// firstRetry is the pause after the first failure of a key. It doubles with each further one in a row.
	firstRetry = 5 * time.Millisecond
	// longestRetry bounds that pause. A source of which one consumer can never have its request fails for as long as that is
	// so, and when the next change meets an error that would pass, all its other consumers wait for the next try.
	longestRetry = time.Minute
)

// retries says when a controller tries again what has failed: each key for itself, as is the default for a priority queue. A
// rate for all keys together would have thousands of them wait for minutes after an outage of the API server.
func retries[key comparable]() workqueue.TypedRateLimiter[key] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[key](firstRetry, longestRetry)
}
