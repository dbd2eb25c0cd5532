package webhooks

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/policy"
)

// surroundings is what the advice about a policy looks at, besides the policy.
type surroundings struct {
	now time.Time
	// reserved is true in KICK's own namespace.
	reserved bool
	// policies are the others of the namespace, workloads all of the namespace.
	policies  []policy.Policy
	workloads []neighbour
}

// neighbour is a workload in the namespace of a policy.
type neighbour struct {
	// name is the kind and the name.
	name        string
	labels      labels.Set
	annotations map[string]string
}

// advised is a policy with its surroundings.
type advised struct {
	surroundings
	spec   *v1alpha1.KickPolicySpec
	parsed policy.Policy
	// selected are the workloads that the policy selects, by name.
	selected []neighbour
}

// advise says what is legal about a policy and most likely not meant: one line each, with the path of the field.
func advise(judged *v1alpha1.KickPolicy, parsed policy.Policy, around surroundings) []string {
	a := advised{surroundings: around, spec: &judged.Spec, parsed: parsed}
	for _, workload := range around.workloads {
		if parsed.SelectsWorkload(workload.labels) {
			a.selected = append(a.selected, workload)
		}
	}
	slices.SortFunc(a.selected, func(a, b neighbour) int { return strings.Compare(a.name, b.name) })
	var advice []string
	for _, look := range []func(advised) []string{
		atReservedNamespace, // nothing else matters there
		atEverything,        // often written by mistake for "nothing"
		atOverlap,           // a change here may not have the effect it would have alone
		atOpenings,          // a schedule that waits for ever
		atEndlessWindows,    // a window that is no limit, or forbids for ever
		atQuiet,             // a quiet period that is never waited for
		atGitOps,            // a restart that the tool may undo half way
	} {
		advice = append(advice, look(a)...)
	}
	return advice
}

func atReservedNamespace(a advised) []string {
	if !a.reserved {
		return nil
	}
	return []string{"metadata.namespace: this is KICK's own namespace, where no policy manages anything"}
}

var selectorPath = field.NewPath("spec", "discovery", "workloadSelector")

func atEverything(a advised) []string {
	selector := &a.spec.Discovery.WorkloadSelector
	if len(selector.MatchLabels)+len(selector.MatchExpressions) > 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s: {} selects every Deployment, StatefulSet and DaemonSet of the namespace", selectorPath)}
}

func atOverlap(a advised) []string {
	var advice []string
	for _, other := range a.policies {
		var shared []string
		for _, workload := range a.selected {
			if other.SelectsWorkload(workload.labels) {
				shared = append(shared, workload.name)
			}
		}
		if len(shared) > 0 {
			advice = append(advice, fmt.Sprintf("%s: KickPolicy %s selects %s, too; a restart then needs both policies to permit it",
				selectorPath, other.Name, few(shared)))
		}
	}
	slices.Sort(advice)
	return advice
}

var windowsPath = field.NewPath("spec", "schedule", "windows")

func atOpenings(a advised) []string {
	if !a.parsed.Schedule.NextOpening(a.now).Never {
		return nil
	}
	return []string{fmt.Sprintf("%s: never open within the next 366 days, so no change leads to a restart", windowsPath)}
}

func atEndlessWindows(a advised) []string {
	var advice []string
	for _, i := range a.parsed.Schedule.Endless(a.now) {
		window := a.spec.Schedule.Windows[i]
		advice = append(advice, fmt.Sprintf("%s: begins again before its %s are over, so it is always active",
			windowsPath.Index(i), window.Duration))
	}
	return advice
}

func atQuiet(a advised) []string {
	quiet, most := a.spec.Restart.QuietPeriod, a.spec.Restart.MaxQuiet
	if quiet == nil || most == nil || quiet.Duration <= most.Duration {
		return nil
	}
	return []string{fmt.Sprintf("spec.restart.maxQuiet: %s is less than the quietPeriod of %s, "+
		"so no change waits for the whole quiet period", most.Duration, quiet.Duration)}
}

// Marks of GitOps tools on what they deploy. Argo CD's tracking label is left out, because most Helm charts set the same.
const (
	argoCDTracking    = "argocd.argoproj.io/tracking-id"
	argoCDInstance    = "argocd.argoproj.io/instance"
	fluxKustomization = "kustomize.toolkit.fluxcd.io/name"
	fluxHelmRelease   = "helm.toolkit.fluxcd.io/name"
)

func atGitOps(a advised) []string {
	if a.spec.GitOps.Provider != v1alpha1.ProviderNone && a.spec.GitOps.Provider != "" {
		return nil
	}
	marks := map[v1alpha1.GitOpsProvider][]string{
		v1alpha1.ProviderArgoCD: {argoCDTracking, argoCDInstance},
		v1alpha1.ProviderFlux:   {fluxKustomization, fluxHelmRelease},
	}
	var advice []string
	for _, provider := range []v1alpha1.GitOpsProvider{v1alpha1.ProviderArgoCD, v1alpha1.ProviderFlux} {
		var deployed []string
		for _, workload := range a.selected {
			if slices.ContainsFunc(marks[provider], workload.carries) {
				deployed = append(deployed, workload.name)
			}
		}
		if len(deployed) > 0 {
			advice = append(advice, fmt.Sprintf("spec.gitOps.provider: None, but %s carries the marks of %s, "+
				"for which no restart will wait; %s or Auto would", few(deployed), provider, provider))
		}
	}
	return advice
}

func (n neighbour) carries(mark string) bool {
	_, annotated := n.annotations[mark]
	return annotated || n.labels.Has(mark)
}

// few names the first of a list and counts the others.
func few(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	return fmt.Sprintf("%s (and %d more)", names[0], len(names)-1)
}
