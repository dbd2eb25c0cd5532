package observation_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kick-dev/kick/internal/core/deps"
	"github.com/kick-dev/kick/internal/core/fingerprint"
	"github.com/kick-dev/kick/internal/core/observation"
)

// content is a source with one-letter values: "a1 b2" holds a=1 and b=2.
func content(t *testing.T, version string, second int, pairs ...string) observation.Sight {
	t.Helper()
	keys := map[string][]byte{}
	for _, pair := range pairs {
		keys[pair[:1]] = []byte(pair[1:])
	}
	return observation.Sight{
		ResourceVersion: version, Fingerprint: fmt.Append(nil, pairs), KeyID: "k", Keys: keys,
		LastWrite: at(time.Duration(second) * time.Second),
	}
}

func consuming(keys ...string) deps.Reference { return deps.Reference{Keys: keys, RequiredKeys: keys} }

// delay is from a write to its observation.
const delay = time.Millisecond

// seen observes sights one after the other.
func seen(sights ...observation.Sight) observation.Record {
	var record *observation.Record
	for _, s := range sights {
		next, _ := observation.Observe(record, s, s.LastWrite.Add(delay))
		record = &next
	}
	return *record
}

func TestAConsumerOfSomeKeysSeesTheirChangesAlone(t *testing.T) {
	record := seen(
		content(t, "1", 0, "a1", "b1", "c1"),
		content(t, "2", 10, "a1", "b2", "c1"), // b changes
		content(t, "3", 20, "a1", "b2"),       // c goes
		content(t, "4", 30, "a1", "b2", "d1"), // d comes
	)
	for name, tc := range map[string]struct {
		reference deps.Reference
		want      time.Duration
		keys      map[string]time.Time
	}{
		"an unchanged key":      {consuming("a"), 0, map[string]time.Time{"a": at(0)}},
		"a changed key":         {consuming("b"), 10*time.Second + delay, map[string]time.Time{"b": at(10*time.Second + delay)}},
		"a removed key":         {consuming("c"), 20*time.Second + delay, map[string]time.Time{"c": at(20*time.Second + delay)}},
		"an added key":          {consuming("d"), 30*time.Second + delay, map[string]time.Time{"d": at(30*time.Second + delay)}},
		"the latest of two":     {consuming("a", "b"), 10*time.Second + delay, map[string]time.Time{"a": at(0), "b": at(10*time.Second + delay)}},
		"the source as a whole": {deps.Reference{Whole: true}, 30*time.Second + delay, nil},
	} {
		t.Run(name, func(t *testing.T) {
			changedAt, keys := record.Consumed(tc.reference)
			if !changedAt.Equal(at(tc.want)) {
				t.Errorf("changed at %s, want %s", changedAt, at(tc.want))
			}
			if diff := cmp.Diff(tc.keys, keys); diff != "" {
				t.Errorf("keys (-want +got):\n%s", diff)
			}
		})
	}
	if changedAt, _ := record.Consumed(consuming("never")); !changedAt.IsZero() {
		t.Errorf("a key that never was changed at %s", changedAt)
	}
}

func TestLacksNamesTheFirstRequiredKeyThatIsMissing(t *testing.T) {
	record := seen(content(t, "1", 0, "a1", "b1"), content(t, "2", 10, "a1"))
	for want, reference := range map[string]deps.Reference{
		"":      consuming("a"),
		"b":     consuming("a", "b"),
		"never": consuming("never"),
	} {
		if got := record.Lacks(reference); got != want {
			t.Errorf("lacks %q, want %q", got, want)
		}
	}
	if got := record.Lacks(deps.Reference{Keys: []string{"b"}}); got != "" {
		t.Errorf("lacks %q, which is optional", got)
	}
}

// More keys than are recorded one by one count as one.
func TestEveryChangeOfASourceOfVeryManyKeysCounts(t *testing.T) {
	many := content(t, "2", 10, "a2")
	many.Keys = nil
	record := seen(content(t, "1", 0, "a1"), many)
	if changedAt, keys := record.Consumed(consuming("a")); !changedAt.Equal(at(10*time.Second+delay)) || keys != nil {
		t.Errorf("changed at %s, keys %v", changedAt, keys)
	}
	if lacks := record.Lacks(consuming("b")); lacks != "" {
		t.Errorf("lacks %q, which cannot be told", lacks)
	}
}

// A lost fingerprint key must not look like a change of every key: that would restart every consumer.
func TestARebasedRecordKeepsTheTimesOfItsKeys(t *testing.T) {
	record := seen(content(t, "1", 0, "a1", "b1"), content(t, "2", 10, "a1", "b2"))
	record.KeyID = "lost"
	same := content(t, "2", 10, "a1", "b2")
	rebased, result := observation.Observe(&record, same, at(time.Hour))
	if changedAt, _ := rebased.Consumed(consuming("a")); result != observation.Rebased || !changedAt.Equal(at(0)) {
		t.Errorf("%s: a changed at %s", result, changedAt)
	}
	written, _ := observation.Observe(&record, content(t, "3", 60, "a2", "b2"), at(time.Hour))
	if changedAt, _ := written.Consumed(consuming("a")); !changedAt.Equal(at(time.Minute)) {
		t.Errorf("written since, and a changed at %s", changedAt)
	}
}

func TestTheMemoryOfRemovedKeysIsBounded(t *testing.T) {
	var record *observation.Record
	for round := range 4 {
		keys := map[string][]byte{}
		for i := range fingerprint.MaxKeys {
			keys[fmt.Sprintf("%d-%d", round, i)] = []byte("x")
		}
		s := observation.Sight{ResourceVersion: fmt.Sprint(round), Fingerprint: fmt.Append(nil, round), KeyID: "k", Keys: keys,
			LastWrite: at(time.Duration(round) * time.Minute)}
		next, _ := observation.Observe(record, s, s.LastWrite.Add(delay))
		record = &next
	}
	if len(record.Keys) != 2*fingerprint.MaxKeys {
		t.Errorf("%d keys", len(record.Keys))
	}
	if _, ok := record.Keys.Of("2-0"); !ok {
		t.Error("the keys removed last are forgotten first")
	}
}

func TestKeysOfSortsAndKeepsTheFirstOfEachName(t *testing.T) {
	got := observation.KeysOf(
		observation.KeyRecord{Name: "b", Digest: []byte{1}}, observation.KeyRecord{Name: "a"}, observation.KeyRecord{Name: "b"},
	)
	if diff := cmp.Diff(observation.Keys{{Name: "a"}, {Name: "b", Digest: []byte{1}}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if none := observation.KeysOf(); none == nil || len(none) != 0 {
		t.Errorf("of no keys: %#v, which stands for too many", none)
	}
}
