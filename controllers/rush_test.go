package controllers

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kick-dev/kick/internal/cluster/workload"
)

func TestRestartsWaitForTheEndOfARush(t *testing.T) {
	var woken []workload.Key
	r := newRush(func(keys ...workload.Key) { woken = append(woken, keys...) })
	decidedAt := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	first, second := deploymentKey("shop", 1), deploymentKey("bank", 1)
	var ends []func()
	for range rushAbove {
		ends = append(ends, r.record())
	}
	if delay := r.delay(first, decidedAt, decidedAt); delay != 0 {
		t.Errorf("a restart is put off for %s, and there is no rush", delay)
	}
	for n := range 2 {
		r.expect(deploymentKey("app", n))
		r.expect(deploymentKey("app", n)) // Another source of it changed, too.
	}
	for key, waited := range map[workload.Key]time.Duration{first: 0, second: 2 * time.Second} {
		if delay := r.delay(key, decidedAt, decidedAt.Add(waited)); delay != mostDelay-waited {
			t.Errorf("a restart that waits since %s is put off for %s", waited, delay)
		}
	}
	ends[0]()
	if len(woken) > 0 {
		t.Errorf("%v are woken in the middle of a rush", woken)
	}
	r.decided(deploymentKey("app", 0))
	slices.SortFunc(woken, func(a, b workload.Key) int { return strings.Compare(b.Namespace, a.Namespace) })
	if diff := cmp.Diff([]workload.Key{first, second}, woken); diff != "" {
		t.Errorf("woken after the rush (-want +got):\n%s", diff)
	}
	woken = nil
	r.decided(deploymentKey("app", 1))
	for _, end := range ends[1:] {
		end()
	}
	if len(woken) > 0 || r.recording != 0 || len(r.deciding) != 0 {
		t.Errorf("%v are woken twice, or something is still awaited: %+v", woken, r)
	}
}

func TestNoRestartIsPutOffForLong(t *testing.T) {
	r := newRush(func(...workload.Key) {})
	for n := range rushAbove + 1 {
		r.expect(deploymentKey("app", n))
	}
	decidedAt := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for name, waited := range map[string]time.Duration{
		"it has waited":                      mostDelay,
		"nobody looked at it for long":       time.Hour,
		"the clock was set back in the wait": -time.Second,
	} {
		if delay := r.delay(deploymentKey("shop", 1), decidedAt, decidedAt.Add(waited)); delay != 0 {
			t.Errorf("%s: it is put off for another %s", name, delay)
		}
	}
}
