package source_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/source"
)

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
