{{/*
Each alert has a paragraph in docs/operations.md that says what to do. Gauges that every replica reports alike are not added
up; series are kept apart by the namespace of KICK, for the sake of clusters with two releases.
*/}}
{{- define "kick.alerts" -}}
{{- $runbook := "https://github.com/kick-dev/kick/blob/main/docs/operations.md#" -}}
- alert: KickNoLeader
  expr: (sum by (namespace) (kick_leader) < 1) or absent(kick_leader)
  for: 5m
  labels:
    severity: critical
  annotations:
    summary: No replica of KICK leads, so nothing is restarted.
    description: Changes are not lost. They are found and answered once a replica leads again.
    runbook_url: {{ $runbook }}kicknoleader
- alert: KickWebhookCertificateExpires
  expr: min by (namespace) (kick_webhook_certificate_expiry_timestamp_seconds) - time() < {{ mul (int .Values.metrics.prometheusRule.certificateDays) 86400 }}
  for: 10m
  labels:
    severity: critical
  annotations:
    summary: "The certificate of KICK's webhooks expires in {{ `{{ $value | humanizeDuration }}` }}."
    description: After that no policy can be written, and nobody but KICK can restart a managed workload.
    runbook_url: {{ $runbook }}kickwebhookcertificateexpires
- alert: KickLedgerWriteErrors
  expr: sum by (namespace) (increase(kick_ledger_write_errors_total[15m])) > 0
  for: 10m
  labels:
    severity: critical
  annotations:
    summary: KICK cannot write its ledger.
    description: Changes that are not on record are not answered until they are.
    runbook_url: {{ $runbook }}kickledgerwriteerrors
- alert: KickRestartFailed
  expr: max by (namespace) (kick_requests{phase="Failed"}) > 0
  labels:
    severity: warning
  annotations:
    summary: "{{ `{{ $value }}` }} restarts by KICK have failed."
    description: The Pods did not become ready after a restart. kubectl get kickrequests -A shows which.
    runbook_url: {{ $runbook }}kickrestartfailed
- alert: KickRequestStalled
  expr: max by (namespace) (kick_requests_stalled) > 0
  for: 15m
  labels:
    severity: warning
  annotations:
    summary: "{{ `{{ $value }}` }} restarts wait for somebody to act."
    description: kubectl get kickrequests -A shows which, and why.
    runbook_url: {{ $runbook }}kickrequeststalled
- alert: KickRequestWaitsTooLong
  expr: max by (namespace) (kick_oldest_waiting_seconds) > {{ mul (int .Values.metrics.prometheusRule.waitingHours) 3600 }}
  for: 5m
  labels:
    severity: warning
  annotations:
    summary: "A restart has been waiting for {{ `{{ $value | humanizeDuration }}` }}."
    description: kubectl get kickrequests -A shows which, for what, and until when.
    runbook_url: {{ $runbook }}kickrequestwaitstoolong
- alert: KickPolicyNotInForce
  expr: max by (namespace) (kick_policies{ready="False"}) > 0
  for: 10m
  labels:
    severity: warning
  annotations:
    summary: "{{ `{{ $value }}` }} KickPolicies are not in force."
    description: kubectl get kickpolicies -A shows which, and why.
    runbook_url: {{ $runbook }}kickpolicynotinforce
- alert: KickNotificationsNotDelivered
  expr: max by (namespace) (kick_notifications_pending) > 0
  for: 30m
  labels:
    severity: warning
  annotations:
    summary: "{{ `{{ $value }}` }} messages of KickNotifications are not delivered."
    description: kubectl get kicknotifications -A shows which, and why.
    runbook_url: {{ $runbook }}kicknotificationsnotdelivered
{{- end -}}
