//go:build wrongclock

package main

import (
	"os"
	"strings"
	"time"

	"k8s.io/utils/clock"
)

// clockEnv names a file that holds by how much the clock of the node is wrong, as a Go duration. It is read at each look
// at the clock. Only test builds know it.
const clockEnv = "KICK_TEST_CLOCK"

// localClock is a clock that can be set.
func localClock() clock.PassiveClock { return wrongClock{} }

type wrongClock struct{}

// Now implements clock.PassiveClock.
func (wrongClock) Now() time.Time {
	content, _ := os.ReadFile(os.Getenv(clockEnv))
	offset, _ := time.ParseDuration(strings.TrimSpace(string(content))) // Right, where there is no file.
	return time.Now().Round(0).Add(offset)
}

// Since implements clock.PassiveClock.
func (c wrongClock) Since(instant time.Time) time.Duration { return c.Now().Sub(instant) }
