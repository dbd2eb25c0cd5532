package observation

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/kick-dev/kick/internal/core/deps"
)

// maxRemoved is how many removed keys are remembered.
const maxRemoved = 256

// Keys is what is remembered of the keys of a source, each name once, sorted by name: a map would take several times the
// memory for the one or two keys that most sources have. It is nil for a source of too many keys: then any change counts as
// a change of all.
type Keys []KeyRecord

// KeyRecord is what is remembered of one key.
type KeyRecord struct {
	Name string
	// Digest of the value, nil for a key that was removed.
	Digest []byte
	// ChangedAt is when the value last changed, appeared or went.
	ChangedAt time.Time
}

// KeysOf puts records of keys in order. Of two with one name the first counts.
func KeysOf(records ...KeyRecord) Keys {
	keys := make(Keys, len(records))
	copy(keys, records)
	slices.SortStableFunc(keys, func(a, b KeyRecord) int { return cmp.Compare(a.Name, b.Name) })
	return slices.CompactFunc(keys, func(a, b KeyRecord) bool { return a.Name == b.Name })
}

// Of returns what is remembered of a key, and whether anything is.
func (k Keys) Of(name string) (KeyRecord, bool) {
	i, known := slices.BinarySearchFunc(k, name, func(r KeyRecord, name string) int { return cmp.Compare(r.Name, name) })
	if !known {
		return KeyRecord{}, false
	}
	return k[i], true
}

// observe returns the keys after a change of the source at the given time.
func (k Keys) observe(seen map[string][]byte, changedAt time.Time) Keys {
	if seen == nil {
		return nil
	}
	next := make([]KeyRecord, 0, len(seen))
	for name, digest := range seen {
		if known, ok := k.Of(name); ok && bytes.Equal(known.Digest, digest) {
			next = append(next, known)
			continue
		}
		next = append(next, KeyRecord{Name: name, Digest: digest, ChangedAt: changedAt})
	}
	for _, removed := range k.removed(seen) {
		if removed.Digest != nil {
			removed = KeyRecord{Name: removed.Name, ChangedAt: changedAt}
		}
		next = append(next, removed)
	}
	return KeysOf(next...)
}

// removed lists the keys that are not among those seen, the ones that went last first, as many as are remembered.
func (k Keys) removed(seen map[string][]byte) []KeyRecord {
	var gone []KeyRecord
	for _, known := range k {
		if _, present := seen[known.Name]; !present {
			gone = append(gone, known)
		}
	}
	slices.SortFunc(gone, func(a, b KeyRecord) int {
		return cmp.Or(min(len(b.Digest), 1)-min(len(a.Digest), 1), b.ChangedAt.Compare(a.ChangedAt), cmp.Compare(a.Name, b.Name))
	})
	return gone[:min(len(gone), maxRemoved)]
}

// rebase returns the keys under new digests: those known keep the time of their last change.
func (k Keys) rebase(seen map[string][]byte, changedAt time.Time) Keys {
	if seen == nil {
		return nil
	}
	next := make([]KeyRecord, 0, len(seen))
	for name, digest := range seen {
		known, _ := k.Of(name)
		if known.ChangedAt.IsZero() {
			known.ChangedAt = changedAt
		}
		next = append(next, KeyRecord{Name: name, Digest: digest, ChangedAt: known.ChangedAt})
	}
	return KeysOf(next...)
}

// Consumed returns when what a reference consumes of the source last changed, and each consumed key that ever did with
// its time. Both are empty where none of the keys ever existed.
func (r Record) Consumed(reference deps.Reference) (changedAt time.Time, keys map[string]time.Time) {
	if reference.Whole || r.Keys == nil {
		return r.ChangedAt, nil
	}
	keys = map[string]time.Time{}
	for _, name := range reference.Keys {
		if known, ok := r.Keys.Of(name); ok {
			keys[name] = known.ChangedAt
			changedAt = later(changedAt, known.ChangedAt)
		}
	}
	return changedAt, keys
}

// Lacks returns the first required key that the source does not have, empty for none.
func (r Record) Lacks(reference deps.Reference) string {
	if r.Keys == nil {
		return ""
	}
	for _, name := range reference.RequiredKeys {
		if known, _ := r.Keys.Of(name); known.Digest == nil {
			return name
		}
	}
	return ""
}
