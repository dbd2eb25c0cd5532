// Package observation decides what one sight of a source means and when its content changed: Ω, obs, β and θ, §4 and
// §5 of the model.
package observation

import (
	"bytes"
	"time"

	"github.com/kick-dev/kick/internal/core/fingerprint"
)

// Precision is the resolution of change times. The ledger and the status of requests both carry it in full, so no
// hop between them rounds a change time.
const Precision = time.Microsecond

// Record is what is remembered of a source.
type Record struct {
	// ResourceVersion last seen.
	ResourceVersion string
	// ChangedAt is θ, when the content last changed, in whole units of Precision.
	ChangedAt time.Time
	// LastWrite is the latest λ seen, also that of a metadata-only write: it tells a later write that the API server
	// dated from one that it did not.
	LastWrite time.Time
	// Fingerprint is φ, made under KeyID and Encoding.
	Fingerprint []byte
	KeyID       string
	Encoding    int32
	// Keys is what is remembered of each key, nil for a source of too many.
	Keys Keys
	// Pending is true while the change may not have reached every consumer.
	Pending bool
}

// Sight is a source as the API server returned it.
type Sight struct {
	ResourceVersion string
	// LastWrite is λ: the latest of the creation and the writes that the API server dates in managedFields.
	LastWrite   time.Time
	Fingerprint []byte
	KeyID       string
	// Keys are digests of the values of the keys, nil for a source of too many.
	Keys map[string][]byte
}

// Result classifies a sight.
type Result string

// The classes of §4.
const (
	// Baseline: the source was not known. Its content may be new to the consumers.
	Baseline Result = "Baseline"
	// Rebased: the source was known under another key or encoding, which cannot be compared. Consumers are not told.
	Rebased Result = "Rebased"
	// NoChange: nothing moved.
	NoChange Result = "NoChange"
	// MetaOnly: the object moved and its content did not.
	MetaOnly Result = "MetaOnly"
	// Relevant: the content changed.
	Relevant Result = "Relevant"
)

// implausible is how far in the future no write can lie. A date beyond it, from a record that was spoilt, would keep every
// later write from being told; it counts as none.
const implausible = time.Hour

// Observe compares a sight with the record of the source, nil if there is none, at the time now on the API server's
// clock. It returns the record to keep; for NoChange and MetaOnly that is the old one at the version seen.
func Observe(record *Record, sight Sight, now time.Time) (Record, Result) {
	if record == nil {
		return baseline(sight), Baseline
	}
	if known := *record; known.LastWrite.After(now.Add(implausible)) {
		known.LastWrite = time.Time{}
		record = &known
	}
	if record.KeyID != sight.KeyID || record.Encoding != fingerprint.Encoding {
		return rebase(*record, sight), Rebased
	}
	next := *record
	next.ResourceVersion = sight.ResourceVersion
	next.LastWrite = later(record.LastWrite, sight.LastWrite)
	if bytes.Equal(record.Fingerprint, sight.Fingerprint) {
		if record.ResourceVersion == sight.ResourceVersion {
			return next, NoChange
		}
		return next, MetaOnly
	}
	next.ChangedAt = changeTime(*record, sight.LastWrite, now)
	next.Fingerprint = sight.Fingerprint
	next.Keys = record.Keys.observe(sight.Keys, next.ChangedAt)
	next.Pending = true
	return next, Relevant
}

func baseline(sight Sight) Record {
	return Record{
		ResourceVersion: sight.ResourceVersion,
		ChangedAt:       sight.LastWrite.Truncate(Precision),
		LastWrite:       sight.LastWrite,
		Fingerprint:     sight.Fingerprint,
		KeyID:           sight.KeyID,
		Encoding:        fingerprint.Encoding,
		Keys:            Keys(nil).observe(sight.Keys, sight.LastWrite.Truncate(Precision)),
		Pending:         true,
	}
}

// rebase takes the content under the present key. Whether it differs from the recorded one cannot be told from the
// digests, so the server's dates decide: a source it dates later than the record is delivered at that date, one it
// does not keeps its change time.
func rebase(record Record, sight Sight) Record {
	next := baseline(sight)
	next.Pending = record.Pending || sight.LastWrite.After(record.LastWrite)
	next.ChangedAt = later(next.ChangedAt, record.ChangedAt)
	known := Keys(nil) // Which keys a later write changed cannot be told either.
	if !sight.LastWrite.After(record.LastWrite) {
		next.ChangedAt = record.ChangedAt
		known = record.Keys
	}
	next.Keys = known.rebase(sight.Keys, next.ChangedAt)
	next.LastWrite = later(next.LastWrite, record.LastWrite)
	return next
}

// changeTime dates a change of content. The API server dates most writes, in whole seconds; within that second the
// time of observation is the better evidence. Outside it the server is believed, and the change may have come as late as
// the end of the second: a clock that is not beyond the beginning of the second would otherwise date the change to that
// beginning, and a container that started before the change in that second would count as one that carries it. The
// server does not date a write that only removes a key, a second write in one second, or one that strips managedFields:
// those happened after the recorded write and are dated now. Change times of one source never go back, so that "covered"
// can be told by comparison.
func changeTime(record Record, lastWrite, now time.Time) time.Time {
	now = now.Truncate(Precision)
	changed := later(now, lastWrite)
	if lastWrite.After(record.LastWrite) {
		endOfSecond := lastWrite.Add(time.Second - Precision)
		if changed.After(endOfSecond) || !now.After(lastWrite) {
			changed = endOfSecond
		}
	}
	return later(changed, record.ChangedAt.Add(Precision))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
