package ledger_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/ledger"
	"github.com/kick-dev/kick/internal/cluster/source"
	"github.com/kick-dev/kick/internal/core/deps"
	"github.com/kick-dev/kick/internal/core/observation"
)

// The behaviour of the ledger is tested on a real API server; here are the failures that one does not produce on demand.

func newClient(t *testing.T, funcs interceptor.Funcs) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), funcs)
}

func loaded(t *testing.T, c client.Client) *ledger.Store {
	t.Helper()
	store := ledger.NewStore(c, c, "kick-system")
	if err := store.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	return store
}

func key(name string) source.Key {
	return source.Key{Namespace: "shop", Source: deps.Source{Kind: v1alpha1.Secret, Name: name}}
}

// put changes what is on record.
func put(t *testing.T, store *ledger.Store, key source.Key, record observation.Record) error {
	t.Helper()
	return store.Put(t.Context(), key, store.Get(key), record)
}

func record(version string, pending bool) observation.Record {
	at := time.Date(2026, 8, 6, 12, 0, 0, 123456000, time.UTC)
	return observation.Record{
		ResourceVersion: version, ChangedAt: at, LastWrite: at.Truncate(time.Second),
		Fingerprint: []byte{1, 2}, KeyID: "k", Encoding: 1, Pending: pending,
	}
}

func TestARecordSurvivesTheProcess(t *testing.T) {
	c := newClient(t, interceptor.Funcs{})
	if err := put(t, loaded(t, c), key("db"), record("7", true)); err != nil {
		t.Fatal(err)
	}
	successor := loaded(t, c)
	got := successor.Get(key("db"))
	if got == nil || got.ResourceVersion != "7" || !got.Pending || !got.ChangedAt.Equal(record("7", true).ChangedAt) {
		t.Fatalf("the successor finds %+v", got)
	}
	if first, second := loaded(t, c).Key(), successor.Key(); first.ID != second.ID {
		t.Errorf("the fingerprint key was made anew: %s, %s", first.ID, second.ID)
	}
}

func TestTheKeysOfARecordSurviveTheProcess(t *testing.T) {
	at := time.Date(2026, 8, 6, 12, 0, 0, 123456000, time.UTC)
	for name, keys := range map[string]observation.Keys{
		"none":           {},
		"too many":       nil,
		"one and a gone": {{Name: "a", Digest: []byte{1}, ChangedAt: at}, {Name: "b", ChangedAt: at}},
	} {
		t.Run(name, func(t *testing.T) {
			c, want := newClient(t, interceptor.Funcs{}), record("7", false)
			want.Keys = keys
			if err := put(t, loaded(t, c), key("db"), want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&want, loaded(t, c).Get(key("db"))); diff != "" {
				t.Errorf("the successor finds (-want +got):\n%s", diff)
			}
		})
	}
}

// A ledger object has to stay below what etcd admits, however many keys the sources have.
func TestSourcesOfManyKeysAreSpreadOverLedgers(t *testing.T) {
	c := newClient(t, interceptor.Funcs{})
	store, big := loaded(t, c), record("7", false)
	big.Keys = observation.Keys{}
	for i := range 250 {
		big.Keys = append(big.Keys, observation.KeyRecord{
			Name: fmt.Sprintf("a-rather-long-name-of-a-key-%03d", i), Digest: make([]byte, 8), ChangedAt: big.ChangedAt,
		})
	}
	const sources = 60
	var group sync.WaitGroup
	for i := range sources {
		group.Go(func() {
			if err := put(t, store, key(fmt.Sprintf("s%d", i)), big); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	var list v1alpha1.KickLedgerList
	if err := c.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	records := 0
	for i := range list.Items {
		records += len(list.Items[i].Records)
		if encoded, _ := json.Marshal(list.Items[i]); len(encoded) > 1<<20 {
			t.Errorf("ledger %s has %d bytes", list.Items[i].Name, len(encoded))
		}
	}
	if len(list.Items) < 2 || records != sources {
		t.Errorf("%d ledgers with %d records", len(list.Items), records)
	}
}

func TestARecordIsNotSeenBeforeItIsDurable(t *testing.T) {
	boom := errors.New("boom")
	c := newClient(t, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if _, ok := object.(*v1alpha1.KickLedger); ok {
				return boom
			}
			return c.Create(ctx, object, options...)
		},
	})
	store := loaded(t, c)
	if err := put(t, store, key("db"), record("7", true)); !errors.Is(err, boom) {
		t.Fatalf("put: %v", err)
	}
	if got := store.Get(key("db")); got != nil {
		t.Errorf("a record that was not stored is seen: %+v", got)
	}
}

func TestWritesOfOneNamespaceAreGrouped(t *testing.T) {
	release, writes := make(chan struct{}), 0
	c := newClient(t, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if _, ok := object.(*v1alpha1.KickLedger); ok {
				<-release
			}
			return c.Create(ctx, object, options...)
		},
	})
	store := loaded(t, c)
	store.Written = func() { writes++ }
	const sources = 50
	var started, group sync.WaitGroup
	started.Add(sources)
	for i := range sources {
		group.Go(func() {
			started.Done()
			if err := put(t, store, key(fmt.Sprint(i)), record("1", true)); err != nil {
				t.Error(err)
			}
		})
	}
	started.Wait()
	close(release)
	group.Wait()
	if got := len(store.Keys()); got != sources {
		t.Errorf("%d records, want %d", got, sources)
	}
	if writes > sources/2 {
		t.Errorf("%d writes for %d records that were put together", writes, sources)
	}
}

func TestAReplicaThatLostTheLeadCannotOverwriteItsSuccessor(t *testing.T) {
	c := newClient(t, interceptor.Funcs{})
	old := loaded(t, c)
	if err := put(t, old, key("db"), record("1", false)); err != nil {
		t.Fatal(err)
	}
	successor := loaded(t, c)
	if err := put(t, successor, key("db"), record("2", true)); err != nil {
		t.Fatal(err)
	}
	if err := put(t, old, key("db"), record("3", true)); !apierrors.IsConflict(err) {
		t.Fatalf("the old leader's write: %v, want a conflict", err)
	}
	if got := old.Get(key("db")); got == nil || got.ResourceVersion != "2" {
		t.Errorf("the old leader believes %+v, want what its successor stored", got)
	}
}

// Found by stopping a leader for longer than its lease: what waited for the write that failed was decided on the same old
// records, and went out with the version that the failure had brought.
func TestWhatWaitedForAWriteThatLostIsVoidToo(t *testing.T) {
	writing, goOn := make(chan struct{}), make(chan struct{})
	slow := false
	c := newClient(t, interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
			if slow {
				slow = false
				close(writing)
				<-goOn
			}
			return c.Update(ctx, object, options...)
		},
	})
	old := loaded(t, c)
	for _, name := range []string{"a", "b"} {
		if err := put(t, old, key(name), record("1", false)); err != nil {
			t.Fatal(err)
		}
	}
	before, fails := old.Get(key("b")), make(chan error, 2)
	successor := loaded(t, c)
	slow = true
	go func() { fails <- put(t, old, key("a"), record("2", true)) }()
	<-writing
	for _, name := range []string{"a", "b"} {
		if err := put(t, successor, key(name), record("3", true)); err != nil {
			t.Fatal(err)
		}
	}
	go func() { fails <- old.Put(t.Context(), key("b"), before, record("2", true)) }()
	close(goOn)
	for range 2 {
		if err := <-fails; err == nil {
			t.Error("a change that was decided on an old record was written")
		}
	}
	old.Note(key("b"), *before, record("2", false))
	for _, name := range []string{"a", "b"} {
		if got := loaded(t, c).Get(key(name)).ResourceVersion; got != "3" {
			t.Errorf("the record of %s is at %s, want that of the successor", name, got)
		}
		if got := old.Get(key(name)).ResourceVersion; got != "3" {
			t.Errorf("the former leader remembers %s at %s, want what the successor wrote", name, got)
		}
	}
}

// Found by the crash matrix: the conflict undid that the change was delivered, and nobody looked at it again.
func TestAPendingChangeFoundAfterAConflictIsDeliveredAgain(t *testing.T) {
	conflicts := false
	c := newClient(t, interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
			if conflicts {
				conflicts = false
				return apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("kickledgers").GroupResource(), object.GetName(), nil)
			}
			return c.Update(ctx, object, options...)
		},
	})
	store := loaded(t, c)
	var undecided []source.Key
	store.Undecided = func(keys ...source.Key) { undecided = append(undecided, keys...) }
	for name, pending := range map[string]bool{"a": true, "b": false} {
		if err := put(t, store, key(name), record("1", pending)); err != nil {
			t.Fatal(err)
		}
	}
	store.Note(key("a"), *store.Get(key("a")), record("1", false))
	conflicts = true
	if err := store.Flush(t.Context()); err == nil {
		t.Fatal("the conflict was lost")
	}
	if diff := cmp.Diff([]source.Key{key("a")}, undecided); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestASourceWhoseRecordSomebodyRemovedIsLookedAtAgain(t *testing.T) {
	c := newClient(t, interceptor.Funcs{})
	store := loaded(t, c)
	var undecided []source.Key
	store.Undecided = func(keys ...source.Key) { undecided = append(undecided, keys...) }
	for _, name := range []string{"a", "b", "c"} {
		if err := put(t, store, key(name), record("1", false)); err != nil {
			t.Fatal(err)
		}
	}
	object := &v1alpha1.KickLedger{}
	if err := c.Get(t.Context(), types.NamespacedName{Namespace: "kick-system", Name: "shop"}, object); err != nil {
		t.Fatal(err)
	}
	object.Records = object.Records[1:]
	if err := c.Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	if err := put(t, store, key("c"), record("2", true)); !apierrors.IsConflict(err) {
		t.Fatalf("got %v, want a conflict", err)
	}
	if diff := cmp.Diff([]source.Key{key("a")}, undecided); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestADeletedLedgerIsWrittenAnewFromMemory(t *testing.T) {
	c := newClient(t, interceptor.Funcs{})
	store := loaded(t, c)
	for _, name := range []string{"a", "b"} {
		if err := put(t, store, key(name), record("1", false)); err != nil {
			t.Fatal(err)
		}
	}
	object := &v1alpha1.KickLedger{}
	if err := c.Get(t.Context(), types.NamespacedName{Namespace: "kick-system", Name: "shop"}, object); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	if err := put(t, store, key("a"), record("2", true)); err != nil {
		t.Fatal(err)
	}
	if successor := loaded(t, c); successor.Get(key("a")) == nil || successor.Get(key("b")) == nil {
		t.Error("records were lost with the object")
	}
}

func TestARecordThatCannotBeReadIsLikeNone(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON":          `"Secret db"`,
		"another type":     `{"kind":"Secret","name":"db"}`,
		"a field is wrong": `"{\"kind\":\"Secret\",\"name\":\"db\",\"changedAt\":\"yesterday\"}"`,
		"no name":          `"{\"kind\":\"Secret\"}"`,
		"unknown kind":     `"{\"kind\":\"Pod\",\"name\":\"db\"}"`,
	} {
		t.Run(name, func(t *testing.T) {
			c := newClient(t, interceptor.Funcs{})
			for _, source := range []string{"db", "cache"} {
				if err := put(t, loaded(t, c), key(source), record("7", false)); err != nil {
					t.Fatal(err)
				}
			}
			object := &v1alpha1.KickLedger{}
			if err := c.Get(t.Context(), types.NamespacedName{Namespace: "kick-system", Name: "shop"}, object); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(text), &object.Records[1]); err != nil {
				t.Fatal(err)
			}
			if err := c.Update(t.Context(), object); err != nil {
				t.Fatal(err)
			}
			store := loaded(t, c)
			if store.Get(key("db")) != nil || store.Get(key("cache")) == nil || store.Size() != 1 {
				t.Errorf("on record are %v, want the other source alone", store.Keys())
			}
			snapshot, err := ledger.Read(t.Context(), c, "kick-system", "shop")
			if err != nil || snapshot.Size() != 1 {
				t.Errorf("a snapshot holds %d records (%v), want that of the other source", snapshot.Size(), err)
			}
			if err := put(t, store, key("db"), record("8", false)); err != nil {
				t.Errorf("the source cannot be taken anew: %v", err)
			}
		})
	}
}

func TestDeliveredChangesAreFlushedOnce(t *testing.T) {
	c := newClient(t, interceptor.Funcs{})
	store := loaded(t, c)
	if err := put(t, store, key("db"), record("1", true)); err != nil {
		t.Fatal(err)
	}
	writes := 0
	store.Written = func() { writes++ }
	store.Note(key("db"), *store.Get(key("db")), record("1", false))
	for range 2 {
		if err := store.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if writes != 1 {
		t.Errorf("%d writes, want 1", writes)
	}
	if got := loaded(t, c).Get(key("db")); got.Pending {
		t.Error("the change is still pending")
	}
}

func TestAMetadataNoteIsNotWritten(t *testing.T) {
	c := newClient(t, interceptor.Funcs{})
	store := loaded(t, c)
	if err := put(t, store, key("db"), record("1", false)); err != nil {
		t.Fatal(err)
	}
	writes := 0
	store.Written = func() { writes++ }
	store.Note(key("db"), *store.Get(key("db")), record("2", false))
	if err := store.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if writes != 0 || store.Get(key("db")).ResourceVersion != "2" {
		t.Errorf("%d writes, version %s in memory", writes, store.Get(key("db")).ResourceVersion)
	}
}

func TestALedgerIsShardedAndGoesWithItsLastRecord(t *testing.T) {
	c := newClient(t, interceptor.Funcs{})
	store := loaded(t, c)
	const sources = 1001
	var group sync.WaitGroup
	for i := range sources {
		group.Go(func() {
			if err := put(t, store, key(fmt.Sprint(i)), record("1", false)); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	count := func() (objects, records int) {
		var list v1alpha1.KickLedgerList
		if err := c.List(t.Context(), &list); err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			records += len(list.Items[i].Records)
		}
		return len(list.Items), records
	}
	if objects, records := count(); objects != 2 || records != sources {
		t.Errorf("%d objects hold %d records, want 2 and %d", objects, records, sources)
	}
	successor := loaded(t, c)
	for i := range sources {
		group.Go(func() {
			if err := successor.Forget(t.Context(), key(fmt.Sprint(i))); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if objects, records := count(); objects != 0 {
		t.Errorf("%d objects with %d records are left", objects, records)
	}
}

func keySecret(value string) *corev1.Secret {
	secret := &corev1.Secret{Data: map[string][]byte{"key": []byte(value)}}
	secret.Namespace, secret.Name = "kick-system", ledger.KeySecret
	return secret
}

func TestAKeyThatIsNoKeyIsRefused(t *testing.T) {
	c := newClient(t, interceptor.Funcs{})
	if err := c.Create(t.Context(), keySecret("short")); err != nil {
		t.Fatal(err)
	}
	if err := ledger.NewStore(c, c, "kick-system").Load(t.Context()); err == nil {
		t.Error("a short key was accepted")
	}
}

func TestRecordsThatComeTogetherAreWrittenTogether(t *testing.T) {
	c := newClient(t, interceptor.Funcs{})
	store, writes := loaded(t, c), 0
	store.Written = func() { writes++ }
	records := map[deps.Source]observation.Record{}
	for i := range 20 {
		records[key(fmt.Sprintf("s%d", i)).Source] = record("7", true)
	}
	if err := store.PutAll(t.Context(), "shop", records); err != nil {
		t.Fatal(err)
	}
	if got := len(loaded(t, c).Keys()); got != 20 || writes != 1 {
		t.Errorf("%d records after %d writes, want 20 after one", got, writes)
	}
}

func TestTheKeyIsKeptWhateverBecomesOfItsSecret(t *testing.T) {
	const other = "0123456789abcdef0123456789abcdef"
	for name, tc := range map[string]struct {
		edit     func(context.Context, client.Client, *corev1.Secret) error
		want     ledger.KeyFate
		replaced bool // the key in use
		fails    bool
	}{
		"nothing happened": {
			func(context.Context, client.Client, *corev1.Secret) error { return nil }, ledger.KeyKept, false, false,
		},
		"a label was added": {func(ctx context.Context, c client.Client, s *corev1.Secret) error {
			s.Labels = map[string]string{"a": "b"}
			return c.Update(ctx, s)
		}, ledger.KeyKept, false, false},
		"it was deleted": {func(ctx context.Context, c client.Client, s *corev1.Secret) error {
			return c.Delete(ctx, s)
		}, ledger.KeyRestored, false, false},
		"another key was stored": {func(ctx context.Context, c client.Client, s *corev1.Secret) error {
			s.Data["key"] = []byte(other)
			return c.Update(ctx, s)
		}, ledger.KeyReplaced, true, false},
		"the key was spoilt": {func(ctx context.Context, c client.Client, s *corev1.Secret) error {
			s.Data["key"] = []byte("short")
			return c.Update(ctx, s)
		}, ledger.KeyKept, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClient(t, interceptor.Funcs{})
			store := loaded(t, c)
			before := store.Key()
			stored := keySecret("")
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(stored), stored); err != nil {
				t.Fatal(err)
			}
			if err := tc.edit(t.Context(), c, stored); err != nil {
				t.Fatal(err)
			}
			version := ""
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(stored), stored); err == nil {
				version = stored.ResourceVersion
			}
			fate, err := store.KeepKey(t.Context(), version)
			if fate != tc.want || (err != nil) != tc.fails {
				t.Errorf("the key was %s, error %v, want %s", fate, err, tc.want)
			}
			if replaced := store.Key().ID != before.ID; replaced != tc.replaced {
				t.Errorf("another key is in use: %t, want %t", replaced, tc.replaced)
			}
			if successor := ledger.NewStore(c, c, "kick-system"); !tc.fails {
				if err := successor.Load(t.Context()); err != nil || successor.Key().ID != store.Key().ID {
					t.Errorf("a successor uses key %q, want %q, error %v", successor.Key().ID, store.Key().ID, err)
				}
			}
		})
	}
}
