package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kick-dev/kick/internal/cluster/owner"
)

func TestGitOpsOptions(t *testing.T) {
	for name, tc := range map[string]struct {
		arguments []string
		want      owner.Options
	}{
		"the defaults": {nil, owner.Options{Namespaces: []string{"shop"}, ArgoCDNamespaces: []string{"argocd"}}},
		"lists": {
			[]string{"--argocd-namespaces=a, b,", "--argocd-local-destinations=production,https://10.0.0.1"},
			owner.Options{
				Namespaces: []string{"shop"}, ArgoCDNamespaces: []string{"a", "b"},
				LocalDestinations: []string{"production", "https://10.0.0.1"},
			},
		},
		"no control plane": {[]string{"--argocd-namespaces="}, owner.Options{Namespaces: []string{"shop"}}},
	} {
		t.Run(name, func(t *testing.T) {
			parsed, err := parseOptions(append(tc.arguments, "--namespace=kick-system"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, parsed.gitOps.reader([]string{"shop"})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
