// Package source reads Secrets and ConfigMaps: their metadata from a cache that holds nothing else, their content by
// one targeted read at a time. Content is digested at once and never kept.
package source

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/deps"
	"github.com/kick-dev/kick/internal/core/fingerprint"
	"github.com/kick-dev/kick/internal/core/observation"
)

// Key names a source.
type Key struct {
	Namespace string
	deps.Source
}

// String is "namespace/Kind/name".
func (k Key) String() string { return k.Namespace + "/" + k.Source.String() }

func (k Key) objectKey() types.NamespacedName {
	return types.NamespacedName{Namespace: k.Namespace, Name: k.Name}
}

// Metadata returns an empty object of a source kind that holds metadata alone, for watches and reads of the cache.
func Metadata(kind v1alpha1.SourceKind) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: string(kind)})
	return object
}

// KeyOf names the source whose metadata an object of the given kind holds.
func KeyOf(kind v1alpha1.SourceKind, object client.Object) Key {
	return Key{
		Namespace: object.GetNamespace(),
		Source:    deps.Source{Kind: kind, Name: object.GetName()},
	}
}

// LastWrite is λ: the latest of the creation of an object and the writes that the API server dates in its
// managedFields, in whole seconds. Entries of managers that own no content are left out: whoever only annotates a
// source has not written what its consumers read.
func LastWrite(object client.Object) time.Time {
	latest := object.GetCreationTimestamp().Time
	for _, entry := range object.GetManagedFields() {
		if entry.Time != nil && entry.Time.After(latest) && ownsContent(entry.FieldsV1) {
			latest = entry.Time.Time
		}
	}
	return latest
}

// Writers names the field managers that own content of an object.
func Writers(object client.Object) string {
	var writers []string
	for _, entry := range object.GetManagedFields() {
		if entry.Manager != "" && ownsContent(entry.FieldsV1) {
			writers = append(writers, entry.Manager)
		}
	}
	slices.Sort(writers)
	return strings.Join(slices.Compact(writers), ", ")
}

// ownsContent tells whether a set of fields holds any that counts as content. One that does not say is taken to.
func ownsContent(fields *metav1.FieldsV1) bool {
	if fields == nil {
		return true
	}
	var owned map[string]json.RawMessage
	if err := json.Unmarshal(fields.GetRawBytes(), &owned); err != nil {
		return true
	}
	for _, name := range []string{"f:data", "f:binaryData", "f:type", "f:immutable"} {
		if _, ok := owned[name]; ok {
			return true
		}
	}
	return false
}

// Reader reads sources.
type Reader struct {
	// Cache serves metadata.
	Cache client.Reader
	// Live reads from the API server.
	Live client.Reader
}

// Metadata returns the metadata of a source from the cache, nil if it does not exist.
func (r *Reader) Metadata(ctx context.Context, key Key) (*metav1.PartialObjectMetadata, error) {
	object := Metadata(key.Kind)
	if err := r.Cache.Get(ctx, key.objectKey(), object); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil //nolint:nilnil // documented: no source, no error
		}
		return nil, fmt.Errorf("get the metadata of %s: %w", key, err)
	}
	return object, nil
}

// Sight reads a source from the API server and digests its content. It reports false if the source does not exist. What is
// read is no older than its metadata in the cache and than the version on record, empty for none, and may be behind by a moment.
func (r *Reader) Sight(ctx context.Context, key Key, under fingerprint.Key, recorded string) (observation.Sight, bool, error) {
	shown, err := r.Metadata(ctx, key)
	if err != nil {
		return observation.Sight{}, false, err
	}
	object, content, err := r.read(ctx, key, notOlderThan(shown, recorded))
	if apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
		object, content, err = r.read(ctx, key, &client.GetOptions{}) // etcd was set back to an earlier state.
	}
	if apierrors.IsNotFound(err) {
		return observation.Sight{}, false, nil
	}
	if err != nil {
		return observation.Sight{}, false, fmt.Errorf("read %s: %w", key, err)
	}
	return observation.Sight{
		ResourceVersion: object.GetResourceVersion(),
		LastWrite:       LastWrite(object),
		Fingerprint:     under.Digest(content),
		KeyID:           under.ID,
		Keys:            under.KeyDigests(content),
	}, true, nil
}

// notOlderThan asks for an object that is as new as its metadata. The API server has that in its cache and need not ask etcd.
// Where a newer version is on record, another API server has shown it: one that is behind would show what was there before as a
// change, so the object is read as of the moment.
//
// Source: https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions, "Not older than".
func notOlderThan(shown *metav1.PartialObjectMetadata, recorded string) *client.GetOptions {
	if shown == nil {
		return &client.GetOptions{}
	}
	if recorded != "" {
		if order, err := resourceversion.CompareResourceVersion(shown.ResourceVersion, recorded); err != nil || order <= 0 {
			return &client.GetOptions{}
		}
	}
	return &client.GetOptions{Raw: &metav1.GetOptions{ResourceVersion: shown.ResourceVersion}}
}

func (r *Reader) read(ctx context.Context, key Key, options *client.GetOptions) (client.Object, fingerprint.Content, error) {
	if key.Kind == v1alpha1.Secret {
		secret := &corev1.Secret{}
		err := r.Live.Get(ctx, key.objectKey(), secret, options)
		return secret, fingerprint.Content{
			Kind:      key.Kind,
			Type:      string(secret.Type),
			Immutable: secret.Immutable != nil && *secret.Immutable,
			Data:      secret.Data,
		}, err
	}
	configMap := &corev1.ConfigMap{}
	err := r.Live.Get(ctx, key.objectKey(), configMap, options)
	text := make(map[string][]byte, len(configMap.Data))
	for name, value := range configMap.Data {
		text[name] = []byte(value)
	}
	return configMap, fingerprint.Content{
		Kind:       key.Kind,
		Immutable:  configMap.Immutable != nil && *configMap.Immutable,
		Data:       text,
		BinaryData: configMap.BinaryData,
	}, err
}
