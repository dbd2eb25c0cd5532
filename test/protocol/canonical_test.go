package protocol

import (
	"encoding/binary"
	"slices"
	"strconv"
	"time"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/observation"
)

// encoding writes a state down as what decides its future. Of times and versions only the order counts, and of a status
// only what the core looks at again: states that are equal so far are the same.
type encoding struct {
	words []word
	// ordered are the values of which only the order counts.
	ordered [kinds][]int64
}

// word is a value, of a kind.
type word struct {
	kind  kind
	value int64
}

type kind int

const (
	plain kind = iota
	instant
	requestVersion
	ledgerVersion
	workloadVersion
	generation
	kinds
)

func (e *encoding) add(k kind, value int64) {
	e.words = append(e.words, word{k, value})
	if k != plain {
		e.ordered[k] = append(e.ordered[k], value)
	}
}

func (e *encoding) flag(flags ...bool) {
	for _, f := range flags {
		value := int64(0)
		if f {
			value = 1
		}
		e.add(plain, value)
	}
}

func (e *encoding) text(text string) {
	e.add(plain, int64(len(text)))
	for _, b := range []byte(text) {
		e.add(plain, int64(b))
	}
}

func (e *encoding) time(at time.Time) { e.add(instant, at.UnixNano()) }

func (e *encoding) stamp(value string) {
	at, _ := time.Parse(time.RFC3339Nano, value) // None is the zero time.
	e.time(at)
}

func (e *encoding) source(s source) {
	e.add(plain, int64(s.Version))
	e.time(s.Written)
}

func (e *encoding) workload(w workload) {
	e.add(workloadVersion, int64(w.Version))
	e.add(generation, int64(w.Generation))
	e.stamp(w.Stamp)
	e.time(w.Created)
	e.time(w.Revised)
	e.pod(w.Pod)
}

func (e *encoding) pod(p pod) {
	e.add(plain, int64(p.Content))
	e.time(p.Started)
	e.add(generation, int64(p.Generation))
}

func (e *encoding) record(r *observation.Record) {
	e.flag(r != nil)
	if r == nil {
		return
	}
	version, _ := strconv.ParseInt(r.ResourceVersion, 10, 64)
	e.add(plain, version)
	e.text(string(r.Fingerprint))
	e.time(r.ChangedAt)
	e.time(r.LastWrite)
	e.flag(r.Pending)
}

func (e *encoding) ledger(l ledger) {
	e.add(ledgerVersion, int64(l.Version))
	e.record(l.Record)
}

func (e *encoding) request(r *kickRequest) {
	e.flag(r != nil)
	if r != nil {
		e.add(requestVersion, int64(r.Version))
		e.status(r.Status)
	}
}

func (e *encoding) status(s *v1alpha1.KickRequestStatus) {
	e.flag(s != nil)
	if s == nil {
		return
	}
	e.text(string(s.Phase))
	for i := range s.Conditions {
		e.text(s.Conditions[i].Reason)
	}
	rollout := s.CurrentRollout
	e.flag(rollout != nil)
	if rollout == nil {
		return
	}
	e.stamp(rollout.Stamp)
	e.flag(rollout.Issued)
	e.add(plain, int64(rollout.Attempts))
	for i := range rollout.Covers {
		e.time(rollout.Covers[i].ChangedAt.Time)
	}
}

func (e *encoding) replica(r *replica) {
	e.flag(r.Alive, r.Dirty, r.DueSource, r.DueWorkload, r.Job != nil)
	e.source(r.Seen.Source)
	e.workload(r.Seen.Workload)
	e.request(r.Seen.Request)
	e.request(r.Own)
	e.ledger(r.Ledger)
	e.stamp(r.Issued)
	if r.Job != nil {
		e.job(r.Job)
	}
}

func (e *encoding) job(j *job) {
	e.text(string(j.Awaits))
	e.flag(j.Delivers, j.Live, j.Ahead != nil, j.Pods != nil, j.RevisionRead)
	e.record(j.Record)
	e.workload(j.Workload)
	if j.Ahead != nil {
		e.workload(*j.Ahead)
	}
	if j.Pods != nil {
		e.pod(*j.Pods)
	}
	e.request(j.Present)
	e.status(j.Status)
	e.stamp(j.Stamp)
}

// bytes are equal for equal states.
func (e *encoding) bytes() []byte {
	for k := range e.ordered {
		slices.Sort(e.ordered[k])
		e.ordered[k] = slices.Compact(e.ordered[k])
	}
	encoded := make([]byte, 0, 2*len(e.words))
	for _, w := range e.words {
		value := w.value
		if w.kind != plain {
			rank, _ := slices.BinarySearch(e.ordered[w.kind], w.value)
			value = int64(rank)
		}
		encoded = binary.AppendVarint(encoded, value)
	}
	return encoded
}

// canonical is the encoding of a state. The replicas are alike, so it does not matter which is which.
func (s *state) canonical() []byte {
	one, other := s.encode(0, 1), s.encode(1, 0)
	if slices.Compare(other, one) < 0 {
		return other
	}
	return one
}

func (s *state) encode(first, second int) []byte {
	var e encoding
	e.add(plain, int64(s.Changes))
	e.add(plain, int64(s.Crashes))
	e.flag(s.Stamped)
	e.source(s.Source)
	e.workload(s.Workload)
	e.ledger(s.Ledger)
	e.request(s.Request)
	e.replica(&s.Replicas[first])
	e.replica(&s.Replicas[second])
	return e.bytes()
}
