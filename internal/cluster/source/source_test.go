package source_test

import (
	"reflect"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/source"
)

// stored is a source as the API server returns its metadata.
func stored(name string) *metav1.PartialObjectMetadata {
	created := metav1.NewTime(time.Date(2026, 8, 6, 12, 0, 0, 0, time.UTC))
	written := metav1.NewTime(created.Add(time.Hour))
	metadata := source.Metadata(v1alpha1.Secret)
	metadata.ObjectMeta = metav1.ObjectMeta{
		Name: name, Namespace: "shop", UID: "u", ResourceVersion: "7", CreationTimestamp: created, Generation: 3,
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

func slim(t *testing.T, metadata *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	t.Helper()
	object, err := source.Slim(metadata)
	if err != nil {
		t.Fatal(err)
	}
	return object.(*metav1.PartialObjectMetadata)
}

func TestSlimKeepsWhatDecisionsLookAtAndNoMore(t *testing.T) {
	want := source.Metadata(v1alpha1.Secret)
	want.ObjectMeta = metav1.ObjectMeta{
		Name: "db", Namespace: "shop", ResourceVersion: "7", Labels: map[string]string{"tier": "db"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "a, b, undated"}},
	}
	once := slim(t, stored("db"))
	if diff := cmp.Diff(want, once); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if writers := source.Writers(once); writers != "a, b, undated" {
		t.Errorf("writers %q", writers)
	}
	if diff := cmp.Diff(want, slim(t, once)); diff != "" {
		t.Errorf("slimmed twice (-want +got):\n%s", diff)
	}
}

func TestSlimSourcesShareWhatTheySayAlike(t *testing.T) {
	first, second := slim(t, stored("db")), slim(t, stored("cache"))
	if &first.ManagedFields[0] != &second.ManagedFields[0] {
		t.Error("each has writers of its own")
	}
	if reflect.ValueOf(first.Labels).Pointer() != reflect.ValueOf(second.Labels).Pointer() {
		t.Error("each has labels of its own")
	}
	if unsafe.StringData(first.Namespace) != unsafe.StringData(second.Namespace) {
		t.Error("each has a namespace of its own")
	}
	unwritten := stored("none")
	unwritten.ManagedFields = nil
	if got := slim(t, unwritten); len(got.ManagedFields) > 0 {
		t.Errorf("of unknown writers: %+v", got.ManagedFields)
	}
}

func TestLastWriteLeavesOutWhoOwnsNoContent(t *testing.T) {
	at := func(hour int) *metav1.Time {
		time := metav1.NewTime(time.Date(2026, 8, 6, hour, 0, 0, 0, time.UTC))
		return &time
	}
	entry := func(hour int, fields string) metav1.ManagedFieldsEntry {
		owned := &metav1.FieldsV1{}
		owned.SetRawString(fields)
		return metav1.ManagedFieldsEntry{Time: at(hour), FieldsV1: owned}
	}
	for name, tc := range map[string]struct {
		entry metav1.ManagedFieldsEntry
		hour  int
	}{
		"data":               {entry(12, `{"f:data":{"f:password":{}}}`), 12},
		"binaryData":         {entry(12, `{"f:binaryData":{}}`), 12},
		"type":               {entry(12, `{"f:type":{}}`), 12},
		"immutable":          {entry(12, `{"f:immutable":{}}`), 12},
		"metadata":           {entry(12, `{"f:metadata":{"f:annotations":{"f:data":{}}}}`), 10},
		"metadata with data": {entry(12, `{"f:metadata":{},"f:data":{}}`), 12},
		"not said":           {metav1.ManagedFieldsEntry{Time: at(12)}, 12},
		"not readable":       {entry(12, `?`), 12},
	} {
		t.Run(name, func(t *testing.T) {
			metadata := source.Metadata(v1alpha1.Secret)
			metadata.CreationTimestamp = *at(10)
			metadata.ManagedFields = []metav1.ManagedFieldsEntry{tc.entry}
			if got := source.LastWrite(metadata); !got.Equal(at(tc.hour).Time) {
				t.Errorf("last write %s, want %s", got, at(tc.hour))
			}
		})
	}
}

func TestLastWriteIsTheCreationOfAnObjectWithoutManagedFields(t *testing.T) {
	metadata := source.Metadata(v1alpha1.ConfigMap)
	metadata.CreationTimestamp = metav1.NewTime(time.Date(2026, 8, 6, 12, 0, 0, 0, time.UTC))
	if got := source.LastWrite(metadata); !got.Equal(metadata.CreationTimestamp.Time) {
		t.Errorf("last write %s", got)
	}
}
