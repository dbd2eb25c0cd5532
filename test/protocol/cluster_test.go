package protocol

import (
	"time"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/deps"
	"github.com/kick-dev/kick/internal/core/observation"
)

var db = deps.Source{Kind: v1alpha1.Secret, Name: "db"}

// tick passes with each step. It is longer than anything the API server dates in whole seconds, so that what is compared
// is the order of events, and odd, so that no event falls on a whole second.
const tick = 10*time.Second + 300*time.Millisecond

// source is the Secret. Its content is its version.
type source struct {
	Version int
	Written time.Time
}

// workload is a Deployment with one Pod.
type workload struct {
	// Version is its resourceVersion; Generation counts templates.
	Version, Generation int
	Stamp               string
	Created             time.Time
	// Revised is when the revision of the present template was made, zero while there is none.
	Revised time.Time
	Pod     pod
}

// pod runs since an instant with what the source held then.
type pod struct {
	Content    int
	Started    time.Time
	Generation int
}

func (w workload) complete() bool { return w.Pod.Generation == w.Generation }

// ledger is what is on record of the source. A record is never modified.
type ledger struct {
	Version int
	Record  *observation.Record
}

// kickRequest is the request of the workload. Its status is never modified.
type kickRequest struct {
	Version int
	Status  *v1alpha1.KickRequestStatus
}

// state is everything: what the API server stores, and what the replicas have in memory.
type state struct {
	Now      time.Time
	Source   source
	Workload workload
	Ledger   ledger
	Request  *kickRequest
	Replicas [2]replica
	// Changes and Crashes are how many may still come.
	Changes, Crashes int
	// Stamped is true once a stamp was written since the last change.
	Stamped bool
}

// second is how the API server dates.
func (s *state) second() time.Time { return s.Now.Truncate(time.Second) }

// change writes the source.
func (s *state) change() {
	s.Changes--
	s.Source = source{Version: s.Source.Version + 1, Written: s.second()}
	s.Stamped = false
}

// roll is the workload controller making the revision, and the kubelet starting its Pod.
func (s *state) roll() {
	w := &s.Workload
	w.Version++
	w.Revised = s.second()
	w.Pod = pod{Content: s.Source.Version, Started: s.second(), Generation: w.Generation}
}

// violation is a broken promise.
type violation string

func (v violation) Error() string { return string(v) }

// settled checks what has to be true once nothing is left to do.
func (s *state) settled() error {
	switch {
	case s.Workload.Pod.Content != s.Source.Version:
		return violation("I2: nothing is left to do, and the Pod runs an older content")
	case s.Ledger.Record == nil || s.Ledger.Record.Pending:
		return violation("I2: nothing is left to do, and the change is not delivered")
	case s.Request != nil && s.Request.Status.Phase != "" && !s.Request.Status.Phase.Terminal():
		return violation("I2: nothing is left to do, and the request is " + string(s.Request.Status.Phase))
	case s.Request != nil && s.Request.Status.Phase == v1alpha1.PhaseFailed:
		return violation("the request failed, and nothing had gone wrong")
	}
	return nil
}
