package source_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/source"
	"github.com/kick-dev/kick/internal/core/deps"
)

// stored is a source as the API server returns its metadata.
func stored(namespace, name string) *metav1.PartialObjectMetadata {
	created := metav1.NewTime(time.Date(2026, 8, 6, 12, 0, 0, 0, time.UTC))
	written := metav1.NewTime(created.Add(time.Hour))
	metadata := source.Metadata(v1alpha1.Secret)
	metadata.ObjectMeta = metav1.ObjectMeta{
		Name: name, Namespace: namespace, UID: "u", ResourceVersion: "7", CreationTimestamp: created, Generation: 3,
		Labels:          map[string]string{"tier": "db"},
		Annotations:     map[string]string{"big": "annotation"},
		OwnerReferences: []metav1.OwnerReference{{Name: "owner"}},
		Finalizers:      []string{"finalizer"},
		ManagedFields: []metav1.ManagedFieldsEntry{
			{Manager: "undated"}, {Manager: "a", Time: &written}, {Manager: "b", Time: &created},
		},
	}
	return metadata
}

func slim(t *testing.T, object any) client.Object {
	t.Helper()
	slim, err := source.Slim(object)
	if err != nil {
		t.Fatal(err)
	}
	return slim.(client.Object)
}

// listed stands for the informers of a cache, all of which have been listed unless there is an error.
type listed struct {
	cache.Informers
	err error
}

func (l listed) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return nil, l.err
}

// watched is a cache with an informer for each list of sources.
func watched(t *testing.T, lists ...[]*metav1.PartialObjectMetadata) *source.Cache {
	t.Helper()
	c := &source.Cache{}
	for _, sources := range lists {
		indexer := c.NewInformer(&toolscache.ListWatch{}, source.Metadata(v1alpha1.Secret), 0, toolscache.Indexers{}).GetIndexer()
		for _, metadata := range sources {
			if err := indexer.Add(slim(t, metadata)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return c
}

func secretKey(namespace, name string) source.Key {
	return source.Key{Namespace: namespace, Source: deps.Source{Kind: v1alpha1.Secret, Name: name}}
}

func TestTheCacheKeepsWhatDecisionsLookAtAndNoMore(t *testing.T) {
	reader := &source.Reader{Cache: watched(t, []*metav1.PartialObjectMetadata{stored("shop", "db")}).Reader(listed{})}
	want := source.Metadata(v1alpha1.Secret)
	want.ObjectMeta = metav1.ObjectMeta{
		Name: "db", Namespace: "shop", ResourceVersion: "7", Labels: map[string]string{"tier": "db"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "a, b, undated"}},
	}
	got, err := reader.Metadata(t.Context(), secretKey("shop", "db"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if writers := source.Writers(got); writers != "a, b, undated" {
		t.Errorf("writers %q", writers)
	}
}

func TestTheCacheFindsASourceInWhicheverNamespaceIsWatched(t *testing.T) {
	c := watched(t, []*metav1.PartialObjectMetadata{stored("shop", "db")}, []*metav1.PartialObjectMetadata{stored("bank", "db")})
	reader := &source.Reader{Cache: c.Reader(listed{})}
	for _, namespace := range []string{"shop", "bank"} {
		got, err := reader.Metadata(t.Context(), secretKey(namespace, "db"))
		if err != nil || got == nil || got.Namespace != namespace {
			t.Errorf("in %s: %+v, %v", namespace, got, err)
		}
	}
	for name, key := range map[string]source.Key{
		"another name":      secretKey("shop", "other"),
		"another namespace": secretKey("other", "db"),
		"another kind":      {Namespace: "shop", Source: deps.Source{Kind: v1alpha1.ConfigMap, Name: "db"}},
	} {
		if got, err := reader.Metadata(t.Context(), key); err != nil || got != nil {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestTheCacheSaysNothingBeforeItIsListed(t *testing.T) {
	reader := watched(t, nil).Reader(listed{err: errors.New("not listed")})
	err := reader.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "db"}, source.Metadata(v1alpha1.Secret))
	if err == nil || apierrors.IsNotFound(err) {
		t.Errorf("error %v", err)
	}
}

func TestTheCacheHoldsNothingButSources(t *testing.T) {
	reader := watched(t).Reader(listed{})
	pod := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}
	if err := reader.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "db"}, pod); err == nil || apierrors.IsNotFound(err) {
		t.Errorf("error %v", err)
	}
	if err := reader.List(t.Context(), &metav1.PartialObjectMetadataList{}); err == nil {
		t.Error("it lists")
	}
}

func TestASlimSourceTellsEventHandlersWhoItIs(t *testing.T) {
	once := slim(t, stored("shop", "db"))
	if got := source.KeyOf(v1alpha1.Secret, once); got != secretKey("shop", "db") {
		t.Errorf("key %s", got)
	}
	if once.GetResourceVersion() != "7" || once.GetLabels()["tier"] != "db" {
		t.Errorf("version %q, labels %v", once.GetResourceVersion(), once.GetLabels())
	}
	if twice := slim(t, once); twice != once {
		t.Error("it is not slim enough for Slim")
	}
	if copied := once.DeepCopyObject().(client.Object); source.KeyOf(v1alpha1.Secret, copied) != secretKey("shop", "db") || copied == once {
		t.Errorf("its copy is %v", copied)
	}
	if accessor := once.(metav1.ObjectMetaAccessor); accessor.GetObjectMeta().GetName() != "db" {
		t.Errorf("its metadata names %q", accessor.GetObjectMeta().GetName())
	}
}

func TestSlimSourcesShareWhatTheySayAlike(t *testing.T) {
	first, second := slim(t, stored("shop", "db")), slim(t, stored("shop", "cache"))
	if &first.GetManagedFields()[0] != &second.GetManagedFields()[0] {
		t.Error("each has writers of its own")
	}
	if reflect.ValueOf(first.GetLabels()).Pointer() != reflect.ValueOf(second.GetLabels()).Pointer() {
		t.Error("each has labels of its own")
	}
	if unsafe.StringData(first.GetNamespace()) != unsafe.StringData(second.GetNamespace()) {
		t.Error("each has a namespace of its own")
	}
	unwritten := stored("shop", "none")
	unwritten.ManagedFields = nil
	if got := slim(t, unwritten).GetManagedFields(); len(got) > 0 {
		t.Errorf("of unknown writers: %+v", got)
	}
	if got := slim(t, stored("bank", "db")).GetNamespace(); got != "bank" {
		t.Errorf("of another namespace: %q", got)
	}
	if size := reflect.TypeOf(first).Elem().Size(); size > 48 {
		t.Errorf("each takes %d bytes and its strings, and there are very many", size)
	}
}
