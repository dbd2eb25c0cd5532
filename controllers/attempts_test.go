package controllers

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/request"
)

// Only for the very decision that was put off, and only until its stamp is tried, is it known that no restart is under way.
func TestARestartThatWasPutOffIsKnownNotToBeUnderWay(t *testing.T) {
	object := func(version string) *v1alpha1.KickRequest {
		return &v1alpha1.KickRequest{ObjectMeta: metav1.ObjectMeta{UID: "1", ResourceVersion: version}}
	}
	for name, tc := range map[string]struct {
		then func(*attempts)
		now  *v1alpha1.KickRequest
		want bool
	}{
		"it waits":                           {func(*attempts) {}, object("5"), true},
		"another process wrote the request":  {func(*attempts) {}, object("6"), false},
		"its stamp was tried":                {func(a *attempts) { a.endPutOff(object("5")) }, object("5"), false},
		"the request was deleted meanwhile":  {func(a *attempts) { a.forget(object("5")) }, object("5"), false},
		"nothing is known of a new request":  {func(*attempts) {}, &v1alpha1.KickRequest{}, false},
		"another decision was put off since": {func(a *attempts) { a.setPutOff(object("7"), time.Now()) }, object("5"), false},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAttempts()
			a.setPutOff(object("5"), time.Now())
			tc.then(a)
			if got := a.wasPutOff(tc.now); got != tc.want {
				t.Errorf("put off: %v, want %v", got, tc.want)
			}
		})
	}
}

// A later change takes the place of the decision, and would otherwise begin the wait anew each time.
func TestARestartThatTakesThePlaceOfAnotherHasWaitedAsLong(t *testing.T) {
	request, began := &v1alpha1.KickRequest{ObjectMeta: metav1.ObjectMeta{UID: "1"}}, time.Now()
	a := newAttempts()
	for waited := time.Duration(0); waited < mostDelay; waited += time.Second {
		since := a.putOffSince(request, began.Add(waited))
		if !since.Equal(began) {
			t.Fatalf("after %s restarts have been put off for %s", waited, began.Add(waited).Sub(since))
		}
		request.ResourceVersion += "1"
		a.setPutOff(request, since)
	}
	a.endPutOff(request)
	if later := began.Add(time.Hour); !a.putOffSince(request, later).Equal(later) {
		t.Error("the next restart counts the wait of the last one")
	}
}

// A stamp is known to be this process's last one until another process decides, which it may do while both believe to lead.
func TestAStampIsForgottenWhenAnotherProcessDecides(t *testing.T) {
	object := func(stamp string) *v1alpha1.KickRequest {
		r := &v1alpha1.KickRequest{ObjectMeta: metav1.ObjectMeta{UID: "1"}}
		if stamp != "" {
			r.Status.CurrentRollout = &v1alpha1.Rollout{Stamp: stamp}
		}
		return r
	}
	for name, tc := range map[string]struct{ onRecord, want string }{
		"the stamp is on record":             {"first", "first"},
		"the next one, of this process, is":  {"second", "first"},
		"one of another process is":          {"foreign", ""},
		"none is, since a policy was edited": {"", "first"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAttempts()
			a.setDecided(object(""), "first")
			a.setIssued(object(""), "first")
			a.setDecided(object(""), "second")
			for range 2 {
				var facts request.Facts
				if a.recall(object(tc.onRecord), &facts); facts.Issued != tc.want {
					t.Errorf("issued: %q, want %q", facts.Issued, tc.want)
				}
			}
		})
	}
}
