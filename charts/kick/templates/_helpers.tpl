{{/*
Every name of the release is defined here and nowhere else: the Certificate, its Secret, the
volume, the DNS names, the CA annotation and the webhook registration must agree.
*/}}

{{- define "kick.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/*
Prefix of all names: the release name, with the chart's name unless it is in there already. Made a
DNS label that starts with a letter, because Services demand that and releases may be named "1.2",
and short enough for the longest suffix below (13 characters).
*/}}
{{- define "kick.fullname" -}}
{{- $name := include "kick.name" . -}}
{{- $full := .Release.Name -}}
{{- if .Values.fullnameOverride -}}
{{- $full = .Values.fullnameOverride -}}
{{- else if not (contains $name .Release.Name) -}}
{{- $full = printf "%s-%s" .Release.Name $name -}}
{{- end -}}
{{- $full = $full | replace "." "-" -}}
{{- if not (regexMatch "^[a-z]" $full) -}}
{{- $full = printf "kick-%s" $full -}}
{{- end -}}
{{- $full | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "kick.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride -}}
{{- end -}}

{{- define "kick.serviceAccountName" -}}
{{- default (include "kick.fullname" .) .Values.serviceAccount.name -}}
{{- end -}}

{{- define "kick.roleName" -}}
{{- include "kick.fullname" . }}-manager
{{- end -}}

{{- define "kick.gitOpsRoleName" -}}
{{- include "kick.fullname" . }}-gitops
{{- end -}}

{{- define "kick.metricsServiceName" -}}
{{- include "kick.fullname" . }}-metrics
{{- end -}}

{{/*
What tells the Service of the metrics from that of the webhooks.
*/}}
{{- define "kick.metricsLabel" -}}
app.kubernetes.io/component: metrics
{{- end -}}

{{- define "kick.webhookServiceName" -}}
{{- include "kick.fullname" . }}-webhook
{{- end -}}

{{- define "kick.webhookCertificateName" -}}
{{- include "kick.fullname" . }}-webhook
{{- end -}}

{{- define "kick.webhookSecretName" -}}
{{- default (printf "%s-webhook-cert" (include "kick.fullname" .)) .Values.webhook.existingSecret -}}
{{- end -}}

{{/*
The release's own CA: an issuer that signs only itself, the CA it signs, and the issuer of that CA.
*/}}
{{- define "kick.selfSignedIssuerName" -}}
{{- include "kick.fullname" . }}-selfsigned
{{- end -}}

{{- define "kick.caName" -}}
{{- include "kick.fullname" . }}-ca
{{- end -}}

{{/*
Not empty when cert-manager issues the webhook's certificate.
*/}}
{{- define "kick.usesCertManager" -}}
{{- if and .Values.webhook.enabled (not .Values.webhook.existingSecret) -}}
true
{{- end -}}
{{- end -}}

{{/*
What makes the API server trust the webhook: cert-manager puts the CA of its certificate into the
registration, the CA of an existing Secret stands there from the start.
*/}}
{{- define "kick.webhookCAAnnotation" -}}
{{- if include "kick.usesCertManager" . -}}
annotations:
  cert-manager.io/inject-ca-from: {{ include "kick.namespace" . }}/{{ include "kick.webhookCertificateName" . }}
{{- end -}}
{{- end -}}

{{- define "kick.webhookCABundle" -}}
{{- with .Values.webhook.caBundle -}}
{{- if contains "-----BEGIN" . -}}
caBundle: {{ trim . | b64enc }}
{{- else -}}
caBundle: {{ regexReplaceAll "\\s" . "" }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
With watchNamespaces the API server calls the webhooks for nothing else. KICK's own namespace is
among them for the sake of a policy that does not belong there.
*/}}
{{- define "kick.watchedOnly" -}}
{{- if .Values.watchNamespaces -}}
- key: kubernetes.io/metadata.name
  operator: In
  values:
  {{- append .Values.watchNamespaces (include "kick.namespace" .) | toYaml | nindent 2 }}
{{- end -}}
{{- end -}}

{{/*
A list of the namespaces of Argo CD's control planes.
*/}}
{{- define "kick.argoCDNamespaces" -}}
{{- default (ternary list (list "argocd") (gt (len .Values.watchNamespaces) 0)) .Values.gitOps.argoCDNamespaces | toYaml -}}
{{- end -}}

{{/*
Who may read the metrics: Authorized, Anyone or None.
*/}}
{{- define "kick.metricsAccess" -}}
{{- default (ternary "None" "Authorized" (gt (len .Values.watchNamespaces) 0)) .Values.metrics.access -}}
{{- end -}}

{{- define "kick.webhookCertDir" -}}
/etc/kick/webhook-certs
{{- end -}}

{{- define "kick.chart" -}}
{{- printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "kick.selectorLabels" -}}
app.kubernetes.io/name: {{ include "kick.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "kick.labels" -}}
{{- $own := dict
  "helm.sh/chart" (include "kick.chart" .)
  "app.kubernetes.io/version" .Chart.AppVersion
  "app.kubernetes.io/managed-by" .Release.Service
-}}
{{- merge $own (include "kick.selectorLabels" . | fromYaml) .Values.commonLabels | toYaml -}}
{{- end -}}

{{- define "kick.podLabels" -}}
{{- merge dict (include "kick.selectorLabels" . | fromYaml) .Values.podLabels .Values.commonLabels | toYaml -}}
{{- end -}}

{{- define "kick.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{/*
Nine tenths of the memory limit in bytes, empty without a limit. The downward API could only give
the whole limit, which the runtime would reach at the moment the kernel kills the process.
*/}}
{{- define "kick.goMemLimit" -}}
{{- $limit := dig "limits" "memory" "" .Values.resources | toString -}}
{{- if $limit -}}
{{- $units := dict "" 1 "k" 1e3 "M" 1e6 "G" 1e9 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 -}}
{{- $unit := regexFind "[A-Za-z]*$" $limit -}}
{{- if not (hasKey $units $unit) -}}
{{- fail (printf "resources.limits.memory: %q must be in bytes or have one of the units k, M, G, Ki, Mi, Gi" $limit) -}}
{{- end -}}
{{- mulf (trimSuffix $unit $limit | float64) (get $units $unit) 0.9 | int64 -}}
{{- end -}}
{{- end -}}

{{/*
What cannot work is refused here, before anything is installed.
*/}}
{{- define "kick.validate" -}}
{{- if and (gt (int .Values.replicas) 1) (not .Values.leaderElection.enabled) -}}
{{- fail (printf "replicas: %d needs leaderElection.enabled: true, because two managers without a leader would restart workloads twice." (int .Values.replicas)) -}}
{{- end -}}
{{- if and (include "kick.usesCertManager" .) (not (.Capabilities.APIVersions.Has "cert-manager.io/v1")) -}}
{{- fail "KICK needs cert-manager, which issues the certificate of its webhooks, but this cluster does not serve cert-manager.io/v1: install cert-manager first, bring a certificate of your own with webhook.existingSecret, or do without with webhook.enabled: false (rendering offline takes --api-versions cert-manager.io/v1)." -}}
{{- end -}}
{{- if and .Values.webhook.existingSecret (not .Values.webhook.caBundle) -}}
{{- fail "webhook.existingSecret needs webhook.caBundle, the CA that issued its certificate, because otherwise the API server trusts no answer of the webhooks." -}}
{{- end -}}
{{- if and .Values.webhook.caBundle (not .Values.webhook.existingSecret) -}}
{{- fail "webhook.caBundle is the CA of webhook.existingSecret, which is empty: cert-manager sees to the CA of the certificates that it issues." -}}
{{- end -}}
{{- if and .Values.watchNamespaces (eq (include "kick.metricsAccess" .) "Authorized") -}}
{{- fail "metrics.access: Authorized asks the API server about each caller, which takes rights in the whole cluster that watchNamespaces does without: say Anyone (with networkPolicy.metricsFrom) or None." -}}
{{- end -}}
{{- if and .Values.metrics.readers (ne (include "kick.metricsAccess" .) "Authorized") -}}
{{- fail (printf "metrics.readers is about metrics.access: Authorized, and access is %s: leave it out." (include "kick.metricsAccess" .)) -}}
{{- end -}}
{{- if and .Values.metrics.serviceMonitor.enabled (eq (include "kick.metricsAccess" .) "None") -}}
{{- fail "metrics.serviceMonitor.enabled needs metrics to be served, and metrics.access is None." -}}
{{- end -}}
{{- if has (include "kick.namespace" .) .Values.watchNamespaces -}}
{{- fail (printf "watchNamespaces names %q, which is KICK's own namespace: nothing in it is ever managed." (include "kick.namespace" .)) -}}
{{- end -}}
{{- end -}}
