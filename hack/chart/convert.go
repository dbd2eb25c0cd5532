package main

import (
	"fmt"
	"strings"

	"github.com/kick-dev/kick/webhooks/registration"
)

// What controller-gen is told to call the manager's roles (roleName), and the namespace that the
// markers use for KICK's own.
const (
	roleName     = "kick-manager"
	ownNamespace = "kick-system"
)

// crd keeps the CRD when the release is uninstalled: deleting it would delete every policy, request and
// ledger, and a later install would have to guess what changed meanwhile.
func crd(o object) (string, []document, error) {
	file := fmt.Sprintf("crd.%s.yaml", dig[string](o, "spec", "names", "plural"))
	annotations := map[string]string{"helm.sh/resource-policy": "keep"}
	for key, value := range dig[object](o, "metadata", "annotations") {
		annotations[key] = fmt.Sprint(value)
	}
	body, err := marshal(object{"spec": o["spec"]})
	return file, []document{{
		apiVersion:  dig[string](o, "apiVersion"),
		kind:        dig[string](o, "kind"),
		name:        dig[string](o, "metadata", "name"),
		annotations: annotations,
		when:        ".Values.crds.install",
		body:        body,
	}}, err
}

// role gives the rules to the release's service account. A Role of the markers is for KICK's own namespace,
// which is the release's.
func role(o object) (string, []document, error) {
	kind, name := dig[string](o, "kind"), dig[string](o, "metadata", "name")
	if name != roleName {
		return "", nil, fmt.Errorf("%s %q: want every role to be called %q", kind, name, roleName)
	}
	namespace := dig[string](o, "metadata", "namespace")
	if kind == "Role" && namespace != ownNamespace {
		return "", nil, fmt.Errorf("a Role in namespace %q: the chart only grants rights in all namespaces or in KICK's own, %q",
			namespace, ownNamespace)
	}
	rules, err := marshal(object{"rules": o["rules"]})
	granted := document{
		apiVersion: dig[string](o, "apiVersion"),
		kind:       kind,
		name:       `{{ include "kick.roleName" . }}`,
		namespaced: kind == "Role",
		body:       rules,
	}
	binding := granted
	binding.kind += "Binding"
	binding.body = `roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ` + kind + `
  name: {{ include "kick.roleName" . }}
subjects:
- kind: ServiceAccount
  name: {{ include "kick.serviceAccountName" . | quote }}
  namespace: {{ .Release.Namespace | quote }}
`
	return "rbac.yaml", []document{granted, binding}, err
}

// webhook sends the API server to the release's Service and has cert-manager fill in the CA.
func webhook(o object) (string, []document, error) {
	var body strings.Builder
	body.WriteString("webhooks:\n")
	for _, item := range dig[[]any](o, "webhooks") {
		hook, ok := item.(object)
		if !ok {
			return "", nil, fmt.Errorf("webhook is a %T, want an object", item)
		}
		path := dig[string](hook, "clientConfig", "service", "path")
		if path == "" {
			return "", nil, fmt.Errorf("webhook %v: no clientConfig.service.path", hook["name"])
		}
		delete(hook, "clientConfig")
		rest, err := conditioned(hook)
		if err != nil {
			return "", nil, err
		}
		body.WriteString(`- clientConfig:
    service:
      name: {{ include "kick.webhookServiceName" . }}
      namespace: {{ .Release.Namespace | quote }}
      path: ` + path + `
      port: 443
` + indent(rest))
	}
	return "webhook.yaml", []document{{
		apiVersion: dig[string](o, "apiVersion"),
		kind:       dig[string](o, "kind"),
		name:       `{{ include "kick.fullname" . | quote }}`,
		annotations: map[string]string{
			"cert-manager.io/inject-ca-from": `{{ .Release.Namespace }}/{{ include "kick.webhookCertificateName" . }}`,
		},
		body: body.String(),
	}}, nil
}

// Stand-ins for what only a release knows, replaced after the rest was escaped.
const (
	someNamespace = "NAMESPACE"
	someAccount   = "ACCOUNT"
)

// conditioned writes a webhook with what the markers cannot say: when the API server calls it, in which namespaces, and,
// for the guard, what happens when nobody answers.
func conditioned(hook object) (string, error) {
	name := dig[string](hook, "name")
	if conditions := registration.MatchConditions(name, someAccount); conditions != nil {
		hook["matchConditions"] = conditions
	}
	if selector := registration.NamespaceSelector(name, someNamespace); selector != nil {
		hook["namespaceSelector"] = selector
	}
	if name == registration.Guard {
		delete(hook, "failurePolicy")
	}
	text, err := marshal(hook)
	if name == registration.Guard {
		text += "failurePolicy: {{ .Values.webhook.guard.failurePolicy }}\n"
	}
	return strings.NewReplacer(
		someAccount, `system:serviceaccount:{{ .Release.Namespace }}:{{ include "kick.serviceAccountName" . }}`,
		someNamespace, "{{ .Release.Namespace | quote }}",
	).Replace(text), err
}
