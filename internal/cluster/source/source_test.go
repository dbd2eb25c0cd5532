package source_test

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/source"
	"github.com/kick-dev/kick/internal/core/deps"
	"github.com/kick-dev/kick/internal/core/fingerprint"
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

// What an API server answers to a version that it has not.
func tooLargeVersion() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusGatewayTimeout, Reason: metav1.StatusReasonTimeout,
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}},
	}}
}

func TestASourceIsReadNoOlderThanItsMetadata(t *testing.T) {
	stored := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}, Data: map[string][]byte{"password": []byte("x")}}
	for name, tc := range map[string]struct {
		cached   *corev1.Secret
		recorded string
		fails    func(version string) error
		asked    []string
		found    bool
	}{
		"its metadata is known":          {stored, "", nil, []string{"999"}, true},
		"nothing is known of it":         {nil, "", nil, []string{""}, true},
		"an older version is on record":  {stored, "998", nil, []string{"999"}, true},
		"a newer version is on record":   {stored, "1000", nil, []string{""}, true},
		"the same version is on record":  {stored, "999", nil, []string{""}, true},
		"a record that was spoilt":       {stored, "new", nil, []string{""}, true},
		"etcd was set back":              {stored, "", failsAt("999", tooLargeVersion()), []string{"999", ""}, true},
		"the API server does not answer": {stored, "", failsAt("999", apierrors.NewServiceUnavailable("away")), []string{"999"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			shown := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme)
			if tc.cached != nil {
				shown = shown.WithObjects(tc.cached.DeepCopy())
			}
			var asked []string
			live := interceptor.NewClient(
				fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(stored.DeepCopy()).Build(),
				interceptor.Funcs{Get: func(
					ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption,
				) error {
					version := (&client.GetOptions{}).ApplyOptions(options).AsGetOptions().ResourceVersion
					asked = append(asked, version)
					if tc.fails != nil {
						if err := tc.fails(version); err != nil {
							return err
						}
					}
					return c.Get(ctx, key, object)
				}},
			)
			reader := &source.Reader{Cache: shown.Build(), Live: live}
			key := source.Key{Namespace: "shop", Source: deps.Source{Kind: v1alpha1.Secret, Name: "db"}}
			_, found, err := reader.Sight(t.Context(), key, fingerprint.Key{}, tc.recorded)
			if found != tc.found || (err == nil) != tc.found {
				t.Errorf("found %v, %v", found, err)
			}
			if !slices.Equal(asked, tc.asked) {
				t.Errorf("asked for versions %q, want %q", asked, tc.asked)
			}
		})
	}
}

func failsAt(version string, err error) func(string) error {
	return func(asked string) error {
		if asked == version {
			return err
		}
		return nil
	}
}
