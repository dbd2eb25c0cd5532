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

// Keys is what is remembered of the keys of a source. It is nil for a source of too many keys: then any change counts
// as a change of all.
type Keys map[string]KeyRecord

// KeyRecord is what is remembered of one key.
type KeyRecord struct {
	// Digest of the value, nil for a key that was removed.
	Digest []byte
	// ChangedAt is when the value last changed, appeared or went.
	ChangedAt time.Time
}

// observe returns the keys after a change of the source at the given time.
func (k Keys) observe(seen map[string][]byte, changedAt time.Time) Keys {
	if seen == nil {
		return nil
	}
	next := Keys{}
	for name, digest := range seen {
		if known, ok := k[name]; ok && bytes.Equal(known.Digest, digest) {
			next[name] = known
			continue
		}
		next[name] = KeyRecord{Digest: digest, ChangedAt: changedAt}
	}
	for _, name := range k.removed(seen) {
		removed := k[name]
		if removed.Digest != nil {
			removed = KeyRecord{ChangedAt: changedAt}
		}
		next[name] = removed
	}
	return next
}

// removed lists the keys that are not among those seen, the ones that went last first, as many as are remembered.
func (k Keys) removed(seen map[string][]byte) []string {
	var names []string
	for name := range k {
		if _, present := seen[name]; !present {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		present := func(name string) int { return min(len(k[name].Digest), 1) }
		return cmp.Or(present(b)-present(a), k[b].ChangedAt.Compare(k[a].ChangedAt), cmp.Compare(a, b))
	})
	return names[:min(len(names), maxRemoved)]
}

// rebase returns the keys under new digests: those known keep the time of their last change.
func (k Keys) rebase(seen map[string][]byte, changedAt time.Time) Keys {
	if seen == nil {
		return nil
	}
	next := Keys{}
	for name, digest := range seen {
		known := k[name]
		if known.ChangedAt.IsZero() {
			known.ChangedAt = changedAt
		}
		known.Digest = digest
		next[name] = known
	}
	return next
}

// Consumed returns when what a reference consumes of the source last changed, and each consumed key that ever did with
// its time. Both are empty where none of the keys ever existed.
func (r Record) Consumed(reference deps.Reference) (changedAt time.Time, keys map[string]time.Time) {
	if reference.Whole || r.Keys == nil {
		return r.ChangedAt, nil
	}
	keys = map[string]time.Time{}
	for _, name := range reference.Keys {
		if known, ok := r.Keys[name]; ok {
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
		if r.Keys[name].Digest == nil {
			return name
		}
	}
	return ""
}
