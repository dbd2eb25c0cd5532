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

{{- define "kick.serviceAccountName" -}}
{{- default (include "kick.fullname" .) .Values.serviceAccount.name -}}
{{- end -}}

{{- define "kick.roleName" -}}
{{- include "kick.fullname" . }}-manager
{{- end -}}

{{- define "kick.metricsServiceName" -}}
{{- include "kick.fullname" . }}-metrics
{{- end -}}

{{- define "kick.webhookServiceName" -}}
{{- include "kick.fullname" . }}-webhook
{{- end -}}

{{- define "kick.webhookCertificateName" -}}
{{- include "kick.fullname" . }}-webhook
{{- end -}}

{{- define "kick.webhookSecretName" -}}
{{- include "kick.fullname" . }}-webhook-cert
{{- end -}}

{{- define "kick.webhookIssuerName" -}}
{{- include "kick.fullname" . }}-selfsigned
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
helm.sh/chart: {{ include "kick.chart" . | quote }}
{{ include "kick.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
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
{{- if not (.Capabilities.APIVersions.Has "cert-manager.io/v1") -}}
{{- fail "KICK needs cert-manager, which issues the certificate of its webhook, but this cluster does not serve cert-manager.io/v1: install cert-manager first (or render offline with --api-versions cert-manager.io/v1)." -}}
{{- end -}}
{{- end -}}
