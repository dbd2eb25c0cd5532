package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// What controller-gen is told to call the manager's roles (roleName), the namespace that the markers use for KICK's
// own, and the name that they use for what is named like the release.
const (
	roleName     = "kick-manager"
	ownNamespace = "kick-system"
	releaseName  = "kick"
)

// clusterScoped are the resources of the markers that no Role can grant. With watchNamespaces KICK does without them.
var clusterScoped = map[string]bool{
	"subjectaccessreviews":            true,
	"tokenreviews":                    true,
	"validatingwebhookconfigurations": true,
}

// gitOpsGroups are the API groups of Argo CD and Flux, whose objects may also be in namespaces that KICK does not work in.
var gitOpsGroups = map[string]bool{
	"argoproj.io":                 true,
	"helm.toolkit.fluxcd.io":      true,
	"kustomize.toolkit.fluxcd.io": true,
}

// The rules about what is in the namespaces that KICK works in are a template of their own, used for each kind of role,
// and among them those about GitOps objects.
const (
	gitOpsRulesName  = "kick.gitOpsRules"
	gitOpsRules      = `{{- include "` + gitOpsRulesName + `" . | nindent 0 }}` + "\n"
	watchedRulesName = "kick.watchedRules"
	watchedRules     = `{{- include "` + watchedRulesName + `" . | nindent 0 }}` + "\n"
	releaseFullname  = `{{ include "kick.fullname" . | quote }}`
)

// role gives the rules to the release's service account. A Role of the markers is for KICK's own namespace, which is
// the release's; a ClusterRole of the markers becomes one, or with watchNamespaces a Role in each of them.
func role(o object) (string, []document, error) {
	const file = "rbac.yaml"
	kind, name := dig[string](o, "kind"), dig[string](o, "metadata", "name")
	if name != roleName {
		return "", nil, fmt.Errorf("%s %q: want every role to be called %q", kind, name, roleName)
	}
	if kind == "ClusterRole" {
		documents, err := workingRole(o)
		return file, documents, err
	}
	if namespace := dig[string](o, "metadata", "namespace"); namespace != ownNamespace {
		return "", nil, fmt.Errorf("a Role in namespace %q: the chart only grants rights in all namespaces or in KICK's own, %q",
			namespace, ownNamespace)
	}
	rules, err := ruleText(rulesOf(o))
	own := document{
		apiVersion: dig[string](o, "apiVersion"),
		kind:       kind,
		name:       `{{ include "kick.roleName" . }}`,
		namespace:  `{{ include "kick.namespace" . | quote }}`,
		body:       "rules:\n{{- if .Values.watchNamespaces }}\n" + watchedRules + "{{- end }}\n" + rules,
	}
	return file, []document{own, bindingOf(own)}, err
}

// workingRole is the rights in the namespaces that KICK works in.
func workingRole(o object) ([]document, error) {
	var inside, gitOps, across []object
	for _, rule := range rulesOf(o) {
		if isGitOps(rule) {
			gitOps = append(gitOps, rule)
			continue
		}
		within, beyond := splitRule(rule)
		inside, across = append(inside, within...), append(across, beyond...)
	}
	gitOpsText, err := ruleText(gitOps)
	if err != nil {
		return nil, err
	}
	insideText, err := ruleText(inside)
	if err != nil {
		return nil, err
	}
	acrossText, err := ruleText(across)
	if err != nil {
		return nil, err
	}
	cluster := document{
		apiVersion: dig[string](o, "apiVersion"),
		kind:       "ClusterRole",
		name:       `{{ include "kick.roleName" . }}`,
		when:       "not .Values.watchNamespaces",
		body:       "rules:\n" + watchedRules + acrossText,
	}
	each := cluster
	each.kind, each.when = "Role", ""
	each.namespace, each.each = `{{ $each | quote }}`, ".Values.watchNamespaces"
	each.body = "rules:\n" + watchedRules
	return []document{
		{define: gitOpsRulesName, body: gitOpsText},
		{define: watchedRulesName, body: insideText + gitOpsRules},
		cluster, bindingOf(cluster),
		each, bindingOf(each),
	}, nil
}

// bindingOf gives a role to the release's service account.
func bindingOf(role document) document {
	binding := role
	binding.kind += "Binding"
	binding.body = `roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ` + role.kind + `
  name: {{ include "kick.roleName" . }}
subjects:
- kind: ServiceAccount
  name: {{ include "kick.serviceAccountName" . | quote }}
  namespace: {{ include "kick.namespace" . | quote }}
`
	return binding
}

func isGitOps(rule object) bool {
	groups := dig[[]any](rule, "apiGroups")
	return len(groups) > 0 && !slices.ContainsFunc(groups, func(group any) bool {
		name, _ := group.(string)
		return !gitOpsGroups[name]
	})
}

// splitRule parts a rule into what a Role can grant and what takes a ClusterRole.
func splitRule(rule object) (inside, across []object) {
	var within, beyond []any
	for _, resource := range dig[[]any](rule, "resources") {
		if name, _ := resource.(string); clusterScoped[name] {
			beyond = append(beyond, resource)
		} else {
			within = append(within, resource)
		}
	}
	if len(within) > 0 {
		inside = append(inside, withResources(rule, within))
	}
	if len(beyond) > 0 {
		across = append(across, withResources(rule, beyond))
	}
	return inside, across
}

func withResources(rule object, resources []any) object {
	part := maps.Clone(rule)
	part["resources"] = resources
	return part
}

// ruleText writes rules as a list. A resourceName of the markers stands for the release's.
func ruleText(rules []object) (string, error) {
	var text strings.Builder
	for _, rule := range rules {
		for _, name := range dig[[]any](rule, "resourceNames") {
			if name != releaseName {
				return "", fmt.Errorf("a rule with resourceName %q: the chart only knows %q, the release's", name, releaseName)
			}
		}
		one, err := marshal(object{"rules": []any{rule}})
		if err != nil {
			return "", err
		}
		one = strings.TrimPrefix(one, "rules:\n")
		text.WriteString(strings.ReplaceAll(one, "resourceNames:\n  - "+releaseName+"\n", "resourceNames:\n  - "+releaseFullname+"\n"))
	}
	return text.String(), nil
}

// rulesOf are the rules of a role.
func rulesOf(role object) []object {
	var rules []object
	for _, item := range dig[[]any](role, "rules") {
		if rule, ok := item.(object); ok {
			rules = append(rules, rule)
		}
	}
	return rules
}
