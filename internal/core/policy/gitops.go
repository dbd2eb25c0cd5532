package policy

import (
	"cmp"

	"github.com/kick-dev/kick/api/v1alpha1"
)

// owned reads what the API server defaults: absent means nobody is asked, and that an owner has to be in sync.
func owned(gitOps v1alpha1.GitOps) (provider v1alpha1.GitOpsProvider, requireReconciled bool) {
	provider = cmp.Or(gitOps.Provider, v1alpha1.ProviderNone)
	return provider, gitOps.RequireReconciled == nil || *gitOps.RequireReconciled
}

// Providers are the GitOps tools that restarts of the workload wait for, as the policies in scope name them.
func (s Scope) Providers() []v1alpha1.GitOpsProvider {
	var providers []v1alpha1.GitOpsProvider
	for _, p := range s.Policies {
		if p.Provider != v1alpha1.ProviderNone {
			providers = append(providers, p.Provider)
		}
	}
	return providers
}
