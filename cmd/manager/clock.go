//go:build !wrongclock

package main

import "k8s.io/utils/clock"

// localClock is the clock of the node.
func localClock() clock.PassiveClock { return clock.RealClock{} }
