package workload

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/internal/core/deps"
)

// ReferenceIndex is the cache index of workloads by the sources they consume; its values are those of
// deps.Source.String.
const ReferenceIndex = "spec.references"

// Client reads and stamps workloads.
type Client struct {
	// Cache serves slimmed workloads and the ReferenceIndex.
	Cache client.Reader
	// Live reads from the API server.
	Live client.Reader
	// Writer writes stamps.
	Writer client.Writer
}

// References extracts the values of the ReferenceIndex.
func References(object client.Object) []string {
	workload, ok := Of(object)
	if !ok {
		return nil
	}
	var values []string
	for _, reference := range workload.References() {
		values = append(values, reference.String())
	}
	return values
}

// Cached returns the workload from the cache, nil if there is none.
func (c *Client) Cached(ctx context.Context, key Key) (*Workload, error) {
	workload, err := get(ctx, c.Cache, key)
	if workload != nil {
		workload.cached = true
	}
	return workload, err
}

// Read returns the workload from the API server, nil if there is none.
func (c *Client) Read(ctx context.Context, key Key) (*Workload, error) { return get(ctx, c.Live, key) }

func get(ctx context.Context, reader client.Reader, key Key) (*Workload, error) {
	kind, known := kinds[key.Kind]
	if !known {
		return nil, fmt.Errorf("get workload %s: unknown kind", key)
	}
	object := kind.object()
	if err := reader.Get(ctx, key.objectKey(), object); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil //nolint:nilnil // documented: no workload, no error
		}
		return nil, fmt.Errorf("get workload %s: %w", key, err)
	}
	return &Workload{Key: key, object: object, kind: kind}, nil
}

// Consumers returns the workloads of the namespace that consume the source, from the cache.
func (c *Client) Consumers(ctx context.Context, namespace string, source deps.Source) ([]*Workload, error) {
	return c.list(ctx, client.InNamespace(namespace), client.MatchingFields{ReferenceIndex: source.String()})
}

// Consumed tells whether any workload of the namespace consumes the source, from the cache.
func (c *Client) Consumed(ctx context.Context, namespace string, source deps.Source) (bool, error) {
	consumers, err := c.list(ctx, client.InNamespace(namespace), client.MatchingFields{ReferenceIndex: source.String()}, client.Limit(1))
	return len(consumers) > 0, err
}

// InNamespace returns all workloads of the namespace, from the cache.
func (c *Client) InNamespace(ctx context.Context, namespace string) ([]*Workload, error) {
	return c.list(ctx, client.InNamespace(namespace))
}

func (c *Client) list(ctx context.Context, options ...client.ListOption) ([]*Workload, error) {
	var workloads []*Workload
	for name, kind := range kinds {
		list := kind.list()
		if err := c.Cache.List(ctx, list, options...); err != nil {
			return nil, fmt.Errorf("list workloads of kind %s: %w", name, err)
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			if workload, ok := Of(item.(client.Object)); ok {
				workload.cached = true
				workloads = append(workloads, workload)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("list workloads of kind %s: %w", name, err)
		}
	}
	return workloads, nil
}
