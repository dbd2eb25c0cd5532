package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What controller-gen writes, cut down: one file of each kind.
const (
	sampleCRD = `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  annotations:
    controller-gen.kubebuilder.io/version: v0.0.0
  name: things.kick.dev
spec:
  names: {kind: Thing, plural: things}
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        description: 'the template {{ .Name }} of a thing'
        maximum: 9223372036854775807
`
	sampleRoles = `---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: kick-manager
rules:
- apiGroups: [""]
  resources: [secrets]
  verbs: [get]
- apiGroups: [authorization.k8s.io]
  resources: [localsubjectaccessreviews, subjectaccessreviews]
  verbs: [create]
- apiGroups: [argoproj.io]
  resources: [applications]
  verbs: [list]
- apiGroups: [admissionregistration.k8s.io]
  resourceNames: [kick]
  resources: [validatingwebhookconfigurations]
  verbs: [get]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: kick-manager
  namespace: kick-system
rules:
- apiGroups: [kick.dev]
  resources: [kickledgers]
  verbs: [create]
`
	sampleWebhooks = `---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: validating-webhook-configuration
webhooks:
- admissionReviewVersions: [v1]
  clientConfig:
    service: {name: webhook-service, namespace: system, path: /validate}
  failurePolicy: Fail
  name: other.kick.dev
- admissionReviewVersions: [v1]
  clientConfig:
    service: {name: webhook-service, namespace: system, path: /guard}
  failurePolicy: Fail
  name: guard.kick.dev
`
)

const wantCRD = header + `{{- if .Values.crds.enabled }}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: things.kick.dev
  labels:
    {{- include "kick.labels" . | nindent 4 }}
  annotations:
    controller-gen.kubebuilder.io/version: v0.0.0
    helm.sh/resource-policy: keep
spec:
  names:
    kind: Thing
    plural: things
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        description: the template {{ "{{" }} .Name }} of a thing
        maximum: 9223372036854775807
{{- end }}
`

const wantRBAC = header + `{{- define "kick.gitOpsRules" -}}
- apiGroups:
  - argoproj.io
  resources:
  - applications
  verbs:
  - list
{{- end }}
{{- define "kick.watchedRules" -}}
- apiGroups:
  - ""
  resources:
  - secrets
  verbs:
  - get
- apiGroups:
  - authorization.k8s.io
  resources:
  - localsubjectaccessreviews
  verbs:
  - create
{{- include "kick.gitOpsRules" . | nindent 0 }}
{{- end }}
{{- if not .Values.watchNamespaces }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ include "kick.roleName" . }}
  labels:
    {{- include "kick.labels" . | nindent 4 }}
rules:
{{- include "kick.watchedRules" . | nindent 0 }}
- apiGroups:
  - authorization.k8s.io
  resources:
  - subjectaccessreviews
  verbs:
  - create
- apiGroups:
  - admissionregistration.k8s.io
  resourceNames:
  - {{ include "kick.fullname" . | quote }}
  resources:
  - validatingwebhookconfigurations
  verbs:
  - get
{{- end }}
{{- if not .Values.watchNamespaces }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ include "kick.roleName" . }}
  labels:
    {{- include "kick.labels" . | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ include "kick.roleName" . }}
` + wantSubjects + `{{- end }}
{{- range $each := .Values.watchNamespaces }}
{{- with $ }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ include "kick.roleName" . }}
  namespace: {{ $each | quote }}
  labels:
    {{- include "kick.labels" . | nindent 4 }}
rules:
{{- include "kick.watchedRules" . | nindent 0 }}
{{- end }}
{{- end }}
{{- range $each := .Values.watchNamespaces }}
{{- with $ }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ include "kick.roleName" . }}
  namespace: {{ $each | quote }}
  labels:
    {{- include "kick.labels" . | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ include "kick.roleName" . }}
` + wantSubjects + `{{- end }}
{{- end }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ include "kick.roleName" . }}
  namespace: {{ include "kick.namespace" . | quote }}
  labels:
    {{- include "kick.labels" . | nindent 4 }}
rules:
{{- if .Values.watchNamespaces }}
{{- include "kick.watchedRules" . | nindent 0 }}
{{- end }}
- apiGroups:
  - kick.dev
  resources:
  - kickledgers
  verbs:
  - create
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ include "kick.roleName" . }}
  namespace: {{ include "kick.namespace" . | quote }}
  labels:
    {{- include "kick.labels" . | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ include "kick.roleName" . }}
` + wantSubjects

const wantSubjects = `subjects:
- kind: ServiceAccount
  name: {{ include "kick.serviceAccountName" . | quote }}
  namespace: {{ include "kick.namespace" . | quote }}
`

const wantWebhook = header + `{{- if .Values.webhook.enabled }}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: {{ include "kick.fullname" . | quote }}
  labels:
    {{- include "kick.labels" . | nindent 4 }}
  {{- with include "kick.webhookCAAnnotation" . }}{{ nindent 2 . }}{{ end }}
webhooks:
- clientConfig:
    service:
      name: {{ include "kick.webhookServiceName" . }}
      namespace: {{ include "kick.namespace" . | quote }}
      path: /validate
      port: 443
    {{- with include "kick.webhookCABundle" . }}{{ nindent 4 . }}{{ end }}
  admissionReviewVersions:
  - v1
  failurePolicy: Fail
  name: other.kick.dev
  {{- if .Values.watchNamespaces }}
  namespaceSelector:
    matchExpressions:
    {{- with include "kick.watchedOnly" . }}{{ nindent 4 . }}{{ end }}
  {{- end }}
- clientConfig:
    service:
      name: {{ include "kick.webhookServiceName" . }}
      namespace: {{ include "kick.namespace" . | quote }}
      path: /guard
      port: 443
    {{- with include "kick.webhookCABundle" . }}{{ nindent 4 . }}{{ end }}
  admissionReviewVersions:
  - v1
  matchConditions:
  - expression: request.userInfo.username != "system:serviceaccount:{{ include "kick.namespace" . }}:{{ include "kick.serviceAccountName" . }}"
    name: not-by-kick
  - expression: object.?spec.?template.?metadata.?annotations[?"kubectl.kubernetes.io/restartedAt"].hasValue()
      && object.?spec.?template.?metadata.?annotations[?"kubectl.kubernetes.io/restartedAt"]
      != oldObject.?spec.?template.?metadata.?annotations[?"kubectl.kubernetes.io/restartedAt"]
    name: restart-written
  name: guard.kick.dev
  namespaceSelector:
    matchExpressions:
    - key: kubernetes.io/metadata.name
      operator: NotIn
      values:
      - kube-system
      - kube-node-lease
      - {{ include "kick.namespace" . | quote }}
    {{- with include "kick.watchedOnly" . }}{{ nindent 4 . }}{{ end }}
  failurePolicy: {{ .Values.webhook.guard.failurePolicy }}
{{- end }}
`

// config writes a config folder; edit changes the three samples first.
func config(t *testing.T, edit func(files map[string]string)) string {
	t.Helper()
	files := map[string]string{
		"crd/bases/kick.dev_things.yaml": sampleCRD,
		"rbac/role.yaml":                 sampleRoles,
		"webhook/manifests.yaml":         sampleWebhooks,
	}
	if edit != nil {
		edit(files)
	}
	folder := t.TempDir()
	for name, text := range files {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func TestTheTemplateFolderHoldsExactlyWhatWasGenerated(t *testing.T) {
	out := filepath.Join(t.TempDir(), "generated")
	if err := write(out, map[string]string{"crd.gone.yaml": "a CRD that no longer exists"}); err != nil {
		t.Fatal(err)
	}
	if err := run(config(t, nil), out); err != nil {
		t.Fatal(err)
	}

	want := map[string]string{"crd.things.yaml": wantCRD, "rbac.yaml": wantRBAC, "webhook.yaml": wantWebhook}
	entries, err := os.ReadDir(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(out, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if string(text) != want[entry.Name()] {
			t.Errorf("%s is\n%s\nwant\n%s", entry.Name(), text, want[entry.Name()])
		}
		delete(want, entry.Name())
	}
	for name := range want {
		t.Errorf("%s was not written", name)
	}
}

func TestWhatTheChartCannotExpressIsAnError(t *testing.T) {
	replace := func(file, old, changed string) func(map[string]string) {
		return func(files map[string]string) { files[file] = strings.ReplaceAll(files[file], old, changed) }
	}
	tests := map[string]struct {
		edit func(map[string]string)
		want string
	}{
		"a role of another name": {
			replace("rbac/role.yaml", "name: kick-manager", "name: other"), `"other"`,
		},
		"a role in a stranger's namespace": {
			replace("rbac/role.yaml", "kick-system", "default"), `"default"`,
		},
		"a rule for an object of another name": {
			replace("rbac/role.yaml", "resourceNames: [kick]", "resourceNames: [other]"), `"other"`,
		},
		"a webhook without a path": {
			replace("webhook/manifests.yaml", "/validate", `""`), "path",
		},
		"a CRD without a name": {
			replace("crd/bases/kick.dev_things.yaml", "things.kick.dev", `""`), "name",
		},
		"no webhook at all": {
			func(files map[string]string) { delete(files, "webhook/manifests.yaml") }, "manifests.yaml",
		},
		"text that is no YAML": {
			replace("rbac/role.yaml", "rules:", "rules: }"), "role.yaml",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := generate(config(t, test.edit))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want one that names %s", err, test.want)
			}
		})
	}
}

func TestASelectorOfNamespacesThatTheChartCannotAddToIsAnError(t *testing.T) {
	_, err := namespaces(&metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}})
	if err == nil || !strings.Contains(err.Error(), "matchLabels") {
		t.Errorf("error is %v, want one about matchLabels", err)
	}
}
