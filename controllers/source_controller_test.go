package controllers

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/facts"
	"github.com/kick-dev/kick/internal/cluster/ledger"
	"github.com/kick-dev/kick/internal/cluster/source"
	"github.com/kick-dev/kick/internal/core/deps"
	"github.com/kick-dev/kick/internal/core/fingerprint"
	"github.com/kick-dev/kick/internal/core/observation"
)

func TestTheConsumersOfASettledSourceAreNotLookedFor(t *testing.T) {
	kept := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(kept).Build()
	key := source.Key{Namespace: "shop", Source: deps.Source{Kind: v1alpha1.Secret, Name: "db"}}
	for name, tc := range map[string]struct {
		change  func(*observation.Record)
		settled bool
	}{
		"at the version on record":            {func(*observation.Record) {}, true},
		"at another version":                  {func(r *observation.Record) { r.ResourceVersion += "1" }, false},
		"with a change that is not delivered": {func(r *observation.Record) { r.Pending = true }, false},
		"recorded under another key":          {func(r *observation.Record) { r.KeyID = "another" }, false},
		"recorded in an earlier encoding":     {func(r *observation.Record) { r.Encoding-- }, false},
		"without a record":                    {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			store := ledger.NewStore(c, c, "kick-system")
			if err := store.Load(t.Context()); err != nil {
				t.Fatal(err)
			}
			// Whoever looks for consumers finds that nothing serves workloads.
			r := &sourceReconciler{
				scopes: &facts.Scopes{}, sources: &source.Reader{Cache: c}, ledger: store, sweep: &waker[source.Key]{},
			}
			shown, err := r.sources.Metadata(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			before := store.Get(key)
			if tc.change == nil {
				if err := store.Forget(t.Context(), key); err != nil {
					t.Fatal(err)
				}
			} else {
				record := observation.Record{
					ResourceVersion: shown.ResourceVersion, KeyID: store.Key().ID, Encoding: fingerprint.Encoding, Fingerprint: []byte{1},
				}
				tc.change(&record)
				if err := store.Put(t.Context(), key, before, record); err != nil {
					t.Fatal(err)
				}
			}
			looked := true
			func() {
				defer func() { _ = recover() }()
				_, err := r.Reconcile(t.Context(), key)
				looked = err != nil
			}()
			if looked == tc.settled {
				t.Errorf("consumers were looked for: %v", looked)
			}
		})
	}
}
