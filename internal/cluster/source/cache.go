package source

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/intern"
)

// entry is what the cache holds of a source. Clusters have many more Secrets and ConfigMaps than anybody consumes, and a whole
// metav1.ObjectMeta takes five times the memory.
type entry struct {
	// ObjectMeta is what the sources of one namespace with the same writers say alike. They share it: it is never written to.
	*metav1.ObjectMeta
	name    string
	version string
	labels  map[string]string
}

// Slim is a cache transform: of a source it keeps name, version, labels and, as a single managedFields entry, its writers.
// A Cache reads back what it returns.
func Slim(object any) (any, error) {
	metadata, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	return &entry{
		ObjectMeta: alike.Share(metadata.Namespace+"\x00"+Writers(metadata), func(string) *metav1.ObjectMeta { return alikeOf(metadata) }),
		name:       metadata.Name,
		version:    metadata.ResourceVersion,
		labels:     intern.Map(metadata.Labels),
	}, nil
}

// alike holds what sources say alike, by their namespace and writers.
var alike intern.Pool[*metav1.ObjectMeta]

func alikeOf(metadata *metav1.PartialObjectMetadata) *metav1.ObjectMeta {
	shared := &metav1.ObjectMeta{Namespace: intern.String(metadata.Namespace)}
	if writers := Writers(metadata); writers != "" {
		shared.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: intern.String(writers)}}
	}
	return shared
}

// GetName implements metav1.Object.
func (e *entry) GetName() string { return e.name }

// GetResourceVersion implements metav1.Object.
func (e *entry) GetResourceVersion() string { return e.version }

// GetLabels implements metav1.Object.
func (e *entry) GetLabels() map[string]string { return e.labels }

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (e *entry) GetObjectMeta() metav1.Object { return e }

// GetObjectKind implements runtime.Object. The kind is that of the informer.
func (e *entry) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object. What is never written to need not be copied.
func (e *entry) DeepCopyObject() runtime.Object {
	same := *e
	return &same
}

// metadata of the source as the API server would return it, as far as it is kept.
func (e *entry) metadata() metav1.ObjectMeta {
	whole := *e.ObjectMeta
	whole.Name, whole.ResourceVersion, whole.Labels = e.name, e.version, e.labels
	return whole
}

// Cache finds the metadata of sources in the informers of a cache of controller-runtime, which cannot read what Slim makes of
// it. The zero value is ready for use.
type Cache struct {
	mu       sync.RWMutex
	indexers map[v1alpha1.SourceKind][]toolscache.Indexer
}

// NewInformer is a NewInformer of cache.Options.
func (c *Cache) NewInformer(
	lists toolscache.ListerWatcher, example runtime.Object, resync time.Duration, indexers toolscache.Indexers,
) toolscache.SharedIndexInformer {
	kind, ok := kindOf(example)
	if !ok {
		return toolscache.NewSharedIndexInformer(lists, example, resync, indexers)
	}
	// Nobody lists sources, so no index of their namespaces is needed.
	informer := toolscache.NewSharedIndexInformer(lists, example, resync, toolscache.Indexers{})
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.indexers == nil {
		c.indexers = map[v1alpha1.SourceKind][]toolscache.Indexer{}
	}
	c.indexers[kind] = append(c.indexers[kind], informer.GetIndexer())
	return informer
}

// kindOf is the kind of source whose metadata an object holds, false for any other object.
func kindOf(object runtime.Object) (v1alpha1.SourceKind, bool) {
	metadata, ok := object.(*metav1.PartialObjectMetadata)
	if !ok || metadata.APIVersion != "v1" {
		return "", false
	}
	kind := v1alpha1.SourceKind(metadata.Kind)
	return kind, kind == v1alpha1.Secret || kind == v1alpha1.ConfigMap
}

// Reader reads the metadata of single sources from the informers that NewInformer made. The cache that they belong to is asked
// first, so that nothing is read before it was listed.
func (c *Cache) Reader(informers cache.Informers) client.Reader {
	return &cacheReader{Cache: c, informers: informers}
}

type cacheReader struct {
	*Cache
	informers cache.Informers
}

// Get implements client.Reader for objects that Metadata returns.
func (r *cacheReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	kind, ok := kindOf(object)
	if !ok {
		return fmt.Errorf("read %T from the cache of sources: it holds their metadata alone", object)
	}
	if _, err := r.informers.GetInformer(ctx, object); err != nil {
		return fmt.Errorf("wait for the first list of sources of kind %s: %w", kind, err)
	}
	found, err := r.find(kind, key.String())
	if err != nil {
		return err
	}
	if found == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: string(kind)}, key.Name)
	}
	object.(*metav1.PartialObjectMetadata).ObjectMeta = found.metadata()
	return nil
}

// List implements client.Reader: nobody lists sources.
func (r *cacheReader) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("list the cache of sources: it reads single ones alone")
}

// find returns what is cached under a key, nil if there is nothing. Each watched namespace has an informer of its own.
func (c *Cache) find(kind v1alpha1.SourceKind, key string) (*entry, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, indexer := range c.indexers[kind] {
		object, exists, err := indexer.GetByKey(key)
		if err != nil {
			return nil, fmt.Errorf("read the cache of sources of kind %s: %w", kind, err)
		}
		if found, ok := object.(*entry); exists && ok {
			return found, nil
		}
	}
	return nil, nil //nolint:nilnil // documented: nothing cached, no error
}
