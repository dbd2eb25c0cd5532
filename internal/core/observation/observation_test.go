package observation_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/kick-dev/kick/internal/core/fingerprint"
	"github.com/kick-dev/kick/internal/core/observation"
)

var noon = time.Date(2026, 8, 6, 12, 0, 0, 0, time.UTC)

func at(offset time.Duration) time.Time { return noon.Add(offset) }

// known is a record of content "old", written by the server at noon and changed then.
func known() *observation.Record {
	return &observation.Record{
		ResourceVersion: "1", ChangedAt: noon, LastWrite: noon,
		Fingerprint: []byte("old"), KeyID: "k", Encoding: fingerprint.Encoding,
	}
}

func sight(version, content string, lastWrite time.Time) observation.Sight {
	return observation.Sight{ResourceVersion: version, Fingerprint: []byte(content), LastWrite: lastWrite, KeyID: "k"}
}

func TestObserve(t *testing.T) {
	otherKey := known()
	otherKey.KeyID = "lost"
	spoilt := known()
	spoilt.KeyID, spoilt.LastWrite = "lost", at(24*365*time.Hour)
	otherEncoding := known()
	otherEncoding.Encoding = fingerprint.Encoding - 1
	cases := map[string]struct {
		record    *observation.Record
		sight     observation.Sight
		now       time.Time
		want      observation.Result
		changedAt time.Time
		pending   bool
	}{
		"a first sight is dated by the server's last write, however long ago": {
			record: nil, sight: sight("1", "old", noon), now: at(time.Hour),
			want: observation.Baseline, changedAt: noon, pending: true,
		},
		"nothing moved": {
			record: known(), sight: sight("1", "old", noon), now: at(time.Hour),
			want: observation.NoChange, changedAt: noon,
		},
		"only metadata moved": {
			record: known(), sight: sight("2", "old", at(time.Minute)), now: at(time.Minute),
			want: observation.MetaOnly, changedAt: noon,
		},
		"a change seen at once is dated by the observation": {
			record: known(), sight: sight("2", "new", at(time.Minute)), now: at(time.Minute + 300*time.Millisecond),
			want: observation.Relevant, changedAt: at(time.Minute + 300*time.Millisecond), pending: true,
		},
		"a change seen late is dated within the server's second": {
			record: known(), sight: sight("2", "new", at(time.Minute)), now: at(time.Hour),
			want: observation.Relevant, changedAt: at(time.Minute + time.Second - time.Microsecond), pending: true,
		},
		"a clock that has not reached the server's second does not tell when in it the change came": {
			record: known(), sight: sight("2", "new", at(time.Minute)), now: at(time.Minute - 300*time.Millisecond),
			want: observation.Relevant, changedAt: at(time.Minute + time.Second - time.Microsecond), pending: true,
		},
		"nor does one that stands at the beginning of that second": {
			record: known(), sight: sight("2", "new", at(time.Minute)), now: at(time.Minute),
			want: observation.Relevant, changedAt: at(time.Minute + time.Second - time.Microsecond), pending: true,
		},
		"a removed key, which the server does not date, is dated by the observation": {
			record: known(), sight: sight("2", "less", noon), now: at(time.Hour),
			want: observation.Relevant, changedAt: at(time.Hour), pending: true,
		},
		"a second write within one second comes after the first": {
			record: known(), sight: sight("2", "new", noon), now: at(-time.Second),
			want: observation.Relevant, changedAt: at(time.Microsecond), pending: true,
		},
		"stripped managedFields do not date a change back": {
			record: known(), sight: sight("2", "new", at(-24*time.Hour)), now: at(time.Hour),
			want: observation.Relevant, changedAt: at(time.Hour), pending: true,
		},
		"change times are cut to what the API carries": {
			record: known(), sight: sight("2", "less", noon), now: at(time.Hour + 1234*time.Nanosecond),
			want: observation.Relevant, changedAt: at(time.Hour + time.Microsecond), pending: true,
		},
		"a record under a lost key is taken anew without telling the consumers": {
			record: otherKey, sight: sight("1", "x", noon), now: at(time.Hour),
			want: observation.Rebased, changedAt: noon,
		},
		"a record under a lost key of a source written since is delivered at the server's date": {
			record: otherKey, sight: sight("2", "x", at(time.Minute)), now: at(time.Hour),
			want: observation.Rebased, changedAt: at(time.Minute), pending: true,
		},
		"a record of a write that is yet to come, under a lost key, tells of no write before": {
			record: spoilt, sight: sight("2", "x", at(time.Minute)), now: at(time.Hour),
			want: observation.Rebased, changedAt: at(time.Minute), pending: true,
		},
		"a record of another encoding is taken anew": {
			record: otherEncoding, sight: sight("1", "x", noon), now: at(time.Hour),
			want: observation.Rebased, changedAt: noon,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, result := observation.Observe(tc.record, tc.sight, tc.now)
			if result != tc.want {
				t.Errorf("result %s, want %s", result, tc.want)
			}
			if diff := cmp.Diff(tc.changedAt, got.ChangedAt); diff != "" {
				t.Errorf("change time (-want +got):\n%s", diff)
			}
			if got.Pending != tc.pending {
				t.Errorf("pending %v, want %v", got.Pending, tc.pending)
			}
			if got.ResourceVersion != tc.sight.ResourceVersion || !bytes.Equal(got.Fingerprint, tc.sight.Fingerprint) {
				t.Errorf("the record does not hold what was seen: %+v", got)
			}
		})
	}
}

// A metadata-only write moves the server's date. If the record did not follow it, a key removed after that would be
// taken for a dated write and get that too early date: a lost change.
func TestAKeyRemovedAfterAMetadataWriteIsNotDatedByThatWrite(t *testing.T) {
	touched, _ := observation.Observe(known(), sight("2", "old", at(time.Minute)), at(time.Minute))
	removed, result := observation.Observe(&touched, sight("3", "less", at(time.Minute)), at(time.Hour))
	if result != observation.Relevant || !removed.ChangedAt.Equal(at(time.Hour)) {
		t.Errorf("%s at %s, want Relevant at %s", result, removed.ChangedAt, at(time.Hour))
	}
}

// Whatever the clocks do, change times of one source only go forward, and a dated change lies in the server's second
// unless an earlier one lies behind it.
func TestChangeTimesNeverGoBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		record := *known()
		for range rapid.IntRange(1, 10).Draw(t, "writes") {
			lastWrite := at(time.Duration(rapid.IntRange(-5, 60).Draw(t, "lastWrite")) * time.Second)
			now := at(time.Duration(rapid.Int64Range(int64(-time.Minute), int64(time.Minute)).Draw(t, "now")))
			content := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "content")
			next, result := observation.Observe(&record, sight("v", content, lastWrite), now)
			if result == observation.Relevant && !next.ChangedAt.After(record.ChangedAt) {
				t.Fatalf("changed at %s after %s", next.ChangedAt, record.ChangedAt)
			}
			if result != observation.Relevant && !next.ChangedAt.Equal(record.ChangedAt) {
				t.Fatalf("%s moved the change time", result)
			}
			if next.LastWrite.Before(record.LastWrite) {
				t.Fatalf("the last write went back")
			}
			record = next
		}
	})
}
