package controllers

import (
	"time"

	"golang.org/x/time/rate"
	"k8s.io/client-go/util/workqueue"
)

const (
	// firstRetry is the pause after the first failure of a key. It doubles with each further one in a row.
	firstRetry = 5 * time.Millisecond
	// longestRetry bounds that pause. A source of which one consumer can never have its request fails for as long as that is
	// so, and when the next change meets an error that would pass, all its other consumers wait for the next try.
	longestRetry = time.Minute
	// retryRate and retryBurst bound the tries of all keys together, per second: as usual for controllers.
	retryRate  = 10
	retryBurst = 100
)

// retries says when a controller tries again what has failed.
func retries[key comparable]() workqueue.TypedRateLimiter[key] {
	return workqueue.NewTypedMaxOfRateLimiter(
		workqueue.NewTypedItemExponentialFailureRateLimiter[key](firstRetry, longestRetry),
		&workqueue.TypedBucketRateLimiter[key]{Limiter: rate.NewLimiter(retryRate, retryBurst)},
	)
}
