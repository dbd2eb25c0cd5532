package main

import (
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kick-dev/kick/webhooks/registration"
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
		when:        ".Values.crds.enabled",
		body:        body,
	}}, err
}

// webhook sends the API server to the release's Service. Which CA it trusts there, and for which namespaces it calls,
// depends on the values.
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
      namespace: {{ include "kick.namespace" . | quote }}
      path: ` + path + `
      port: 443
    {{- with include "kick.webhookCABundle" . }}{{ nindent 4 . }}{{ end }}
` + indent(rest))
	}
	return "webhook.yaml", []document{{
		apiVersion: dig[string](o, "apiVersion"),
		kind:       dig[string](o, "kind"),
		name:       `{{ include "kick.fullname" . | quote }}`,
		metadata:   `  {{- with include "kick.webhookCAAnnotation" . }}{{ nindent 2 . }}{{ end }}` + "\n",
		when:       ".Values.webhook.enabled",
		body:       body.String(),
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
	if name == registration.Guard {
		delete(hook, "failurePolicy")
	}
	text, err := marshal(hook)
	if err != nil {
		return "", err
	}
	where, err := namespaces(registration.NamespaceSelector(name, someNamespace))
	text += where
	if name == registration.Guard {
		text += "failurePolicy: {{ .Values.webhook.guard.failurePolicy }}\n"
	}
	return strings.NewReplacer(
		someAccount, `system:serviceaccount:{{ include "kick.namespace" . }}:{{ include "kick.serviceAccountName" . }}`,
		someNamespace, `{{ include "kick.namespace" . | quote }}`,
	).Replace(text), err
}

// watchedOnly is what watchNamespaces adds to the conditions on the namespaces that a webhook is called for.
const watchedOnly = `  {{- with include "kick.watchedOnly" . }}{{ nindent 4 . }}{{ end }}` + "\n"

// namespaces writes which namespaces a webhook is called for, beside the values.
func namespaces(selector *metav1.LabelSelector) (string, error) {
	if selector == nil {
		return "{{- if .Values.watchNamespaces }}\nnamespaceSelector:\n  matchExpressions:\n" + watchedOnly + "{{- end }}\n", nil
	}
	if len(selector.MatchLabels) > 0 {
		return "", errors.New("a selector of namespaces by matchLabels: the chart only adds to matchExpressions")
	}
	text, err := marshal(object{"namespaceSelector": selector})
	return text + watchedOnly, err
}
