package controllers

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/ledger"
	"github.com/kick-dev/kick/internal/cluster/source"
	"github.com/kick-dev/kick/internal/cluster/workload"
	"github.com/kick-dev/kick/internal/core/freshness"
	"github.com/kick-dev/kick/internal/core/policy"
)

// scopes answers, from caches and the ledger alone, what the policies say about workloads and sources.
type scopes struct {
	cache     client.Reader
	workloads *workload.Client
	sources   *source.Reader
	ledger    *ledger.Store
	// reserved is KICK's own namespace, which no policy manages.
	reserved string
}

// policies of a namespace, parsed.
func (s *scopes) policies(ctx context.Context, namespace string) ([]policy.Policy, error) {
	if namespace == s.reserved {
		return nil, nil
	}
	var list v1alpha1.KickPolicyList
	if err := s.cache.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list the policies of namespace %s: %w", namespace, err)
	}
	policies := make([]policy.Policy, len(list.Items))
	for i := range list.Items {
		policies[i], _ = policy.Parse(&list.Items[i]) // The policy controller reports the faults.
	}
	return policies, nil
}

// of returns the scope of a workload.
func (s *scopes) of(ctx context.Context, w *workload.Workload) (policy.Scope, error) {
	policies, err := s.policies(ctx, w.Key.Namespace)
	if err != nil {
		return policy.Scope{}, err
	}
	return policy.ScopeOf(policies, w.Labels()), nil
}

// changes returns the recorded change times of the sources in the scope of a workload, and whether there are sources
// that have no record yet.
func (s *scopes) changes(
	ctx context.Context, w *workload.Workload, scope policy.Scope,
) (changes freshness.Changes, unobserved bool, err error) {
	changes = freshness.Changes{}
	if !scope.Managed() {
		return changes, false, nil
	}
	for _, reference := range w.References() {
		key := source.Key{Namespace: w.Key.Namespace, Source: reference.Source}
		metadata, err := s.sources.Metadata(ctx, key)
		if err != nil {
			return nil, false, err
		}
		if metadata == nil || !scope.AdmitsSource(labels.Set(metadata.Labels)) {
			continue
		}
		record := s.ledger.Get(key)
		if record == nil {
			unobserved = true
			continue
		}
		changes[reference.Source] = record.ChangedAt
	}
	return changes, unobserved, nil
}

// consumers returns the managed workloads that consume a source, whatever the labels of the source.
func (s *scopes) consumers(ctx context.Context, key source.Key) ([]consumer, error) {
	policies, err := s.policies(ctx, key.Namespace)
	if err != nil || len(policies) == 0 {
		return nil, err
	}
	workloads, err := s.workloads.Consumers(ctx, key.Namespace, key.Source)
	if err != nil {
		return nil, err
	}
	var consumers []consumer
	for _, w := range workloads {
		if scope := policy.ScopeOf(policies, w.Labels()); scope.Managed() {
			consumers = append(consumers, consumer{workload: w, scope: scope})
		}
	}
	return consumers, nil
}

// consumer is a managed workload with its scope.
type consumer struct {
	workload *workload.Workload
	scope    policy.Scope
}
