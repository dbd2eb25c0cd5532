package main

import (
	"flag"
	"strings"

	"github.com/kick-dev/kick/internal/cluster/owner"
)

// gitOpsOptions are what the command line says about Argo CD and Flux.
type gitOpsOptions struct {
	argoCDNamespaces  []string
	localDestinations []string
}

func (o *gitOpsOptions) bind(flags *flag.FlagSet) {
	o.argoCDNamespaces = []string{"argocd"}
	flags.Func("argocd-namespaces",
		"Namespaces of the control planes of Argo CD, separated by commas. (default argocd)",
		func(text string) error {
			o.argoCDNamespaces = listOf(text)
			return nil
		})
	flags.Func("argocd-local-destinations",
		"Names and URLs under which Argo CD knows this cluster, separated by commas, beside in-cluster and https://kubernetes.default.svc.",
		func(text string) error {
			o.localDestinations = listOf(text)
			return nil
		})
}

// listOf splits a list at its commas.
func listOf(text string) []string {
	var list []string
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			list = append(list, item)
		}
	}
	return list
}

// reader returns what the reader of GitOps objects has to know. Namespaces are those KICK works in, none for all.
func (o *gitOpsOptions) reader(namespaces []string) owner.Options {
	return owner.Options{
		Namespaces: namespaces, ArgoCDNamespaces: o.argoCDNamespaces, LocalDestinations: o.localDestinations,
	}
}
