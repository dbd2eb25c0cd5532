package policy_test

import (
	"slices"
	"testing"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/policy"
)

func TestParseReadsWhatGitOpsAsksFor(t *testing.T) {
	no := false
	for name, tc := range map[string]struct {
		gitOps            v1alpha1.GitOps
		provider          v1alpha1.GitOpsProvider
		requireReconciled bool
	}{
		"nothing":               {v1alpha1.GitOps{}, v1alpha1.ProviderNone, true},
		"a provider":            {v1alpha1.GitOps{Provider: v1alpha1.ProviderFlux}, v1alpha1.ProviderFlux, true},
		"windows and no status": {v1alpha1.GitOps{Provider: v1alpha1.ProviderArgoCD, RequireReconciled: &no}, v1alpha1.ProviderArgoCD, false},
	} {
		t.Run(name, func(t *testing.T) {
			parsed, _ := policy.Parse(&v1alpha1.KickPolicy{Spec: v1alpha1.KickPolicySpec{GitOps: tc.gitOps}})
			if parsed.Provider != tc.provider || parsed.RequireReconciled != tc.requireReconciled {
				t.Errorf("provider %s, requireReconciled %t", parsed.Provider, parsed.RequireReconciled)
			}
			scope := policy.Scope{Policies: []policy.Policy{parsed}}
			var want []v1alpha1.GitOpsProvider
			if tc.provider != v1alpha1.ProviderNone {
				want = append(want, tc.provider)
			}
			if got := scope.Providers(); !slices.Equal(got, want) {
				t.Errorf("the scope waits for %v, want %v", got, want)
			}
		})
	}
}
