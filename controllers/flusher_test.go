package controllers

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

func TestDeliveredChangesWaitForCompany(t *testing.T) {
	for name, tc := range map[string]struct {
		// every is the time between two changes, of which so many come.
		every   time.Duration
		changes int
		want    time.Duration
	}{
		"none comes":          {want: flushDelay},
		"a few come":          {every: 2 * time.Second, changes: 3, want: 3*2*time.Second + flushDelay},
		"they never end":      {every: 2 * time.Second, changes: 8, want: longestFlushDelay},
		"the next comes late": {every: flushDelay + time.Second, changes: 1, want: flushDelay},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, began := newFlusher(nil, clock.RealClock{}), time.Now()
				go func() {
					for range tc.changes {
						time.Sleep(tc.every)
						f.schedule()
					}
				}()
				if !f.gather(t.Context()) {
					t.Error("the end of the changes was taken for the shutdown")
				}
				if waited := time.Since(began); waited != tc.want {
					t.Errorf("flushed after %s, want %s", waited, tc.want)
				}
				time.Sleep(time.Minute) // All changes have come then.
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if newFlusher(nil, clock.RealClock{}).gather(ctx) {
			t.Error("the shutdown was not noticed")
		}
	})
}
