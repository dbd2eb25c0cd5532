package facts

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/source"
	"github.com/kick-dev/kick/internal/cluster/workload"
	"github.com/kick-dev/kick/internal/core/deps"
	"github.com/kick-dev/kick/internal/core/freshness"
	"github.com/kick-dev/kick/internal/core/observation"
	"github.com/kick-dev/kick/internal/core/policy"
	"github.com/kick-dev/kick/internal/core/request"
)

// Records is what is on record of the sources. The ledger keeps it.
type Records interface {
	// Get returns the record of a source, nil if there is none.
	Get(source.Key) *observation.Record
}

// recordsWith are records with another one in the place of one of them.
type recordsWith struct {
	Records
	key    source.Key
	record observation.Record
}

// Get implements Records.
func (r recordsWith) Get(key source.Key) *observation.Record {
	if key != r.key {
		return r.Records.Get(key)
	}
	record := r.record
	return &record
}

// Scopes answers, from caches and the ledger alone, what the policies say about workloads and sources.
type Scopes struct {
	// Cache serves policies.
	Cache     client.Reader
	Workloads *workload.Client
	Sources   *source.Reader
	Records   Records
	// Reserved is KICK's own namespace, which no policy manages.
	Reserved string
	// Watched are the namespaces that KICK works in; nil stands for all.
	Watched []string
	// Unseen is asked about a source whose metadata may not be read, with the refusal: it returns what is known of it all
	// the same, nil for nothing. Without it a refusal is an error, as it is for KICK itself.
	Unseen func(source.Key, error) *observation.Record
}

// Inside returns those of the sources that are in namespaces KICK works in. What is on record of others, from a time
// when KICK worked there, stays as it is.
func (s *Scopes) Inside(keys []source.Key) []source.Key {
	if s.Watched == nil {
		return keys
	}
	return slices.DeleteFunc(keys, func(key source.Key) bool { return !slices.Contains(s.Watched, key.Namespace) })
}

// Policies of a namespace, parsed.
func (s *Scopes) Policies(ctx context.Context, namespace string) ([]policy.Policy, error) {
	if namespace == s.Reserved {
		return nil, nil
	}
	var list v1alpha1.KickPolicyList
	if err := s.Cache.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list the policies of namespace %s: %w", namespace, err)
	}
	policies := make([]policy.Policy, len(list.Items))
	for i := range list.Items {
		policies[i], _ = policy.Parse(&list.Items[i]) // The policy controller reports the faults.
	}
	return policies, nil
}

// Of returns the scope of a workload.
func (s *Scopes) Of(ctx context.Context, w *workload.Workload) (policy.Scope, error) {
	policies, err := s.Policies(ctx, w.Key.Namespace)
	if err != nil {
		return policy.Scope{}, err
	}
	return policy.ScopeOf(policies, w.Labels()), nil
}

// Observed returns what is on record of the sources in the scope of a workload.
func (s *Scopes) Observed(ctx context.Context, w *workload.Workload, scope policy.Scope) (request.Observed, error) {
	observed := request.Observed{
		Changes: freshness.Changes{},
		Keys:    map[deps.Source]map[string]time.Time{},
		Writers: map[deps.Source]string{},
	}
	if !scope.Managed() {
		return observed, nil
	}
	for _, reference := range w.References() {
		key := source.Key{Namespace: w.Key.Namespace, Source: reference.Source}
		metadata, err := s.Sources.Metadata(ctx, key)
		if apierrors.IsForbidden(err) && s.Unseen != nil {
			if record := s.Unseen(key, err); record != nil {
				observed.Changes[key.Source] = record.ChangedAt
			}
			continue
		}
		if err != nil {
			return observed, err
		}
		switch {
		case metadata == nil && reference.Required:
			observed.Missing = append(observed.Missing, fmt.Sprintf("the %s %s", key.Kind, key.Name))
		case metadata != nil && scope.AdmitsSource(labels.Set(metadata.Labels)):
			s.observe(&observed, reference, key, metadata, scope)
		}
	}
	return observed, nil
}

// observe adds one existing source in scope to what is on record.
func (s *Scopes) observe(
	observed *request.Observed, reference deps.Reference, key source.Key, metadata *metav1.PartialObjectMetadata, scope policy.Scope,
) {
	record := s.Records.Get(key)
	if record == nil {
		observed.Unobserved = true
		return
	}
	if record.ResourceVersion != metadata.ResourceVersion {
		observed.Unread = append(observed.Unread, fmt.Sprintf("the %s %s", key.Kind, key.Name))
	}
	if lacks := record.Lacks(reference); lacks != "" {
		observed.Missing = append(observed.Missing, fmt.Sprintf("the key %s of the %s %s", lacks, key.Kind, key.Name))
	}
	changedAt, keys := ChangeFor(scope, reference, metadata, record)
	if !changedAt.IsZero() {
		observed.Changes[reference.Source] = changedAt
		observed.Keys[reference.Source] = keys
		observed.Writers[reference.Source] = source.Writers(metadata)
	}
}

// ChangeFor returns when a source last changed as far as the consumer is concerned, with the keys if only those count.
func ChangeFor(
	scope policy.Scope, reference deps.Reference, metadata *metav1.PartialObjectMetadata, record *observation.Record,
) (time.Time, map[string]time.Time) {
	if scope.ByKey(labels.Set(metadata.Labels)) {
		return record.Consumed(reference)
	}
	return record.ChangedAt, nil
}

// Consumers returns the managed workloads that consume a source, whatever the labels of the source.
func (s *Scopes) Consumers(ctx context.Context, key source.Key) ([]Consumer, error) {
	policies, err := s.Policies(ctx, key.Namespace)
	if err != nil || len(policies) == 0 {
		return nil, err
	}
	workloads, err := s.Workloads.Consumers(ctx, key.Namespace, key.Source)
	if err != nil {
		return nil, err
	}
	var consumers []Consumer
	for _, w := range workloads {
		if scope := policy.ScopeOf(policies, w.Labels()); scope.Managed() {
			consumers = append(consumers, Consumer{Workload: w, Scope: scope})
		}
	}
	return consumers, nil
}

// Consumer is a managed workload with its scope.
type Consumer struct {
	Workload *workload.Workload
	Scope    policy.Scope
}
