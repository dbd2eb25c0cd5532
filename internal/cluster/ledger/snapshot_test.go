package ledger_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/ledger"
	"github.com/kick-dev/kick/internal/core/deps"
	"github.com/kick-dev/kick/internal/core/observation"
)

func TestASnapshotTellsTimesAndKeysAndNoDigest(t *testing.T) {
	c := newClient(t, interceptor.Funcs{})
	store := loaded(t, c)
	changed := time.Date(2026, 8, 6, 12, 0, 0, 1000, time.UTC)
	stored := observation.Record{
		ResourceVersion: "7", ChangedAt: changed, Fingerprint: []byte("digest-of-all"), KeyID: "k", Pending: true,
		Keys: observation.Keys{{Name: "gone", ChangedAt: changed}, {Name: "user", Digest: []byte("digest-u"), ChangedAt: changed}},
	}
	if err := put(t, store, key("db"), stored); err != nil {
		t.Fatal(err)
	}
	snapshot, err := ledger.Read(t.Context(), c, "kick-system", "shop")
	if err != nil {
		t.Fatal(err)
	}
	read := snapshot.Get(key("db"))
	if read == nil || !read.ChangedAt.Equal(changed) || read.ResourceVersion != "7" {
		t.Fatalf("read %+v", read)
	}
	reference := deps.Reference{Source: deps.Source{Kind: v1alpha1.Secret, Name: "db"}, RequiredKeys: []string{"user"}}
	if lacks := read.Lacks(reference); lacks != "" {
		t.Errorf("lacks %q, which exists", lacks)
	}
	reference.RequiredKeys = []string{"gone"}
	if lacks := read.Lacks(reference); lacks != "gone" {
		t.Errorf("lacks %q, want the removed key", lacks)
	}
	if text := fmt.Sprintf("%s %+v", read.Fingerprint, read.Keys); strings.Contains(text, "digest") {
		t.Errorf("a digest is told: %s", text)
	}
	if snapshot.Size() != 1 || snapshot.Pending() != 1 || snapshot.Ledgers() != 1 {
		t.Errorf("%d records, %d pending, in %d ledgers", snapshot.Size(), snapshot.Pending(), snapshot.Ledgers())
	}
	other, err := ledger.Read(t.Context(), c, "kick-system", "bank")
	if err != nil || other.Size() != 0 || other.Get(key("db")) != nil {
		t.Errorf("of another namespace: %d records, %v", other.Size(), err)
	}
}
