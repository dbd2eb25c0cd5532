package controllers

import (
	"context"
	"fmt"
	"slices"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/workload"
	"github.com/kick-dev/kick/internal/core/gitops"
	"github.com/kick-dev/kick/internal/core/policy"
)

// addOwners lets GitOps objects wake the controllers.
func (s *shell) addOwners(mgr ctrl.Manager) error {
	s.owners.Wanted = s.wantedProviders
	s.owners.Changed = func(_ context.Context, keys []workload.Key) { s.wakeRequest.wake(keys...) }
	s.owners.ChangedUnlisted = s.wakeWaiting
	s.owners.Turned = func(ctx context.Context) {
		s.wakeWaiting(ctx)
		s.wakeAsking(ctx)
	}
	return mgr.Add(s.owners)
}

// wantedProviders are the providers that any policy names.
func (s *shell) wantedProviders(ctx context.Context) ([]v1alpha1.GitOpsProvider, error) {
	var providers []v1alpha1.GitOpsProvider
	policies, err := s.askingPolicies(ctx)
	for i := range policies {
		if provider := policies[i].Spec.GitOps.Provider; !slices.Contains(providers, provider) {
			providers = append(providers, provider)
		}
	}
	return providers, err
}

// askingPolicies are the policies that make restarts wait for a GitOps tool.
func (s *shell) askingPolicies(ctx context.Context) ([]v1alpha1.KickPolicy, error) {
	var list v1alpha1.KickPolicyList
	if err := s.client.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list the policies: %w", err)
	}
	return slices.DeleteFunc(list.Items, func(p v1alpha1.KickPolicy) bool {
		parsed, _ := policy.Parse(&p)
		return parsed.Provider == v1alpha1.ProviderNone || p.Namespace == s.options.Namespace
	}), nil
}

// wakeWaiting decides anew about every workload whose request waits for its owner.
func (s *shell) wakeWaiting(ctx context.Context) {
	var list v1alpha1.KickRequestList
	if err := s.client.List(ctx, &list); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list the requests that wait for their owners")
		return
	}
	for i := range list.Items {
		switch list.Items[i].Status.Phase {
		case v1alpha1.PhaseWaitingForOwner, v1alpha1.PhaseWaitingForApplicationSync:
			s.wakeRequest.wake(keyOfRequest(&list.Items[i]))
		default:
		}
	}
}

// wakeAsking reports anew on every policy that asks a GitOps tool.
func (s *shell) wakeAsking(ctx context.Context) {
	policies, err := s.askingPolicies(ctx)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "find the policies that ask a GitOps tool")
		return
	}
	for i := range policies {
		s.wakePolicy.wake(client.ObjectKeyFromObject(&policies[i]))
	}
}

// lacksProvider tells whether a policy names a tool that is not installed: then none of its restarts can run.
func (r *kickPolicyReconciler) lacksProvider(ctx context.Context, p policy.Policy) bool {
	named := p.Provider == v1alpha1.ProviderArgoCD || p.Provider == v1alpha1.ProviderFlux
	return named && r.owners.Presence(ctx, p.Provider) == gitops.Absent
}
