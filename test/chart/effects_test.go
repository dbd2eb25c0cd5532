package chart

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"
)

// effects give each value of the chart something else than its default, one at a time, upon values that make it matter.
var effects = map[string]struct{ values, upon string }{
	"nameOverride":                           {values: `nameOverride: other`},
	"fullnameOverride":                       {values: `fullnameOverride: other`},
	"namespaceOverride":                      {values: `namespaceOverride: other`},
	"commonLabels":                           {values: `commonLabels: {cost: low}`},
	"watchNamespaces":                        {values: `watchNamespaces: [shop]`},
	"replicas":                               {values: `replicas: 3`},
	"image.repository":                       {values: `image: {repository: local/kick}`},
	"image.tag":                              {values: `image: {tag: v9}`},
	"image.digest":                           {values: `image: {digest: "sha256:0000000000000000000000000000000000000000000000000000000000000000"}`},
	"image.pullPolicy":                       {values: `image: {pullPolicy: Always}`},
	"imagePullSecrets":                       {values: `imagePullSecrets: [{name: pull}]`},
	"serviceAccount.name":                    {values: `serviceAccount: {name: other}`},
	"serviceAccount.annotations":             {values: `serviceAccount: {annotations: {a: b}}`},
	"userRoles.create":                       {values: `userRoles: {create: false}`},
	"crds.enabled":                           {values: `crds: {enabled: false}`},
	"leaderElection.enabled":                 {values: `leaderElection: {enabled: false}`, upon: `replicas: 1`},
	"maxConcurrentRestarts":                  {values: `maxConcurrentRestarts: 3`},
	"requestTTL":                             {values: `requestTTL: 1h`},
	"workers":                                {values: `workers: 3`},
	"gitOps.argoCDNamespaces":                {values: `gitOps: {argoCDNamespaces: [gitops]}`},
	"gitOps.argoCDLocalDestinations":         {values: `gitOps: {argoCDLocalDestinations: [production]}`},
	"notifications.allowedHosts":             {values: `notifications: {allowedHosts: ["*.example.com"]}`},
	"notifications.allowedSecrets":           {values: `notifications: {allowedSecrets: [shop/hook]}`},
	"tracing.endpoint":                       {values: `tracing: {endpoint: "http://collector.observability:4317"}`},
	"kubeAPI.qps":                            {values: `kubeAPI: {qps: 7}`},
	"kubeAPI.burst":                          {values: `kubeAPI: {burst: 7}`},
	"logging.level":                          {values: `logging: {level: debug}`},
	"metrics.access":                         {values: `metrics: {access: None}`},
	"metrics.port":                           {values: `metrics: {port: 1111}`},
	"metrics.readers":                        {values: `metrics: {readers: [{name: prometheus, namespace: monitoring}]}`},
	"metrics.serviceMonitor.enabled":         {values: `metrics: {serviceMonitor: {enabled: true}}`},
	"metrics.serviceMonitor.labels":          {values: `metrics: {serviceMonitor: {labels: {a: b}}}`, upon: monitored},
	"metrics.serviceMonitor.interval":        {values: `metrics: {serviceMonitor: {interval: 15s}}`, upon: monitored},
	"metrics.prometheusRule.enabled":         {values: `metrics: {prometheusRule: {enabled: true}}`},
	"metrics.prometheusRule.labels":          {values: `metrics: {prometheusRule: {labels: {a: b}}}`, upon: monitored},
	"metrics.prometheusRule.waitingHours":    {values: `metrics: {prometheusRule: {waitingHours: 1}}`, upon: monitored},
	"metrics.prometheusRule.certificateDays": {values: `metrics: {prometheusRule: {certificateDays: 1}}`, upon: monitored},
	"metrics.dashboard.enabled":              {values: `metrics: {dashboard: {enabled: true}}`},
	"metrics.dashboard.labels":               {values: `metrics: {dashboard: {labels: {a: b}}}`, upon: monitored},
	"metrics.dashboard.annotations":          {values: `metrics: {dashboard: {annotations: {folder: kick}}}`, upon: monitored},
	"health.port":                            {values: `health: {port: 1111}`},
	"webhook.enabled":                        {values: `webhook: {enabled: false}`},
	"webhook.port":                           {values: `webhook: {port: 1111}`},
	"webhook.guard.failurePolicy":            {values: `webhook: {guard: {failurePolicy: Ignore}}`},
	"webhook.guard.exemptUsers":              {values: `webhook: {guard: {exemptUsers: [root]}}`},
	"webhook.guard.exemptGroups":             {values: `webhook: {guard: {exemptGroups: [sre]}}`},
	"webhook.existingSecret":                 {values: `webhook: {existingSecret: other}`, upon: `webhook: {existingSecret: mine, caBundle: eA==}`},
	"webhook.caBundle":                       {values: `webhook: {caBundle: eQ==}`, upon: `webhook: {existingSecret: mine, caBundle: eA==}`},
	"certManager.issuerRef":                  {values: `certManager: {issuerRef: {name: corporate}}`},
	"resources":                              {values: `resources: {requests: {cpu: 1}}`},
	"extraArgs":                              {values: `extraArgs: [--zap-encoder=console]`},
	"extraEnv":                               {values: `extraEnv: [{name: A, value: b}]`},
	"extraVolumes":                           {values: `extraVolumes: [{name: ca, configMap: {name: ca}}]`},
	"extraVolumeMounts":                      {values: `extraVolumeMounts: [{name: ca, mountPath: /ca}]`},
	"terminationGracePeriodSeconds":          {values: `terminationGracePeriodSeconds: 7`},
	"podDisruptionBudget.enabled":            {values: `podDisruptionBudget: {enabled: false}`},
	"podDisruptionBudget.maxUnavailable":     {values: `podDisruptionBudget: {maxUnavailable: 2}`},
	"networkPolicy.enabled":                  {values: `networkPolicy: {enabled: true}`},
	"networkPolicy.metricsFrom":              {values: `networkPolicy: {metricsFrom: [{podSelector: {}}]}`, upon: `networkPolicy: {enabled: true}`},
	"networkPolicy.egress":                   {values: `networkPolicy: {egress: [{}]}`, upon: `networkPolicy: {enabled: true}`},
	"priorityClassName":                      {values: `priorityClassName: high`},
	"podLabels":                              {values: `podLabels: {a: b}`},
	"podAnnotations":                         {values: `podAnnotations: {a: b}`},
	"nodeSelector":                           {values: `nodeSelector: {a: b}`},
	"tolerations":                            {values: `tolerations: [{operator: Exists}]`},
	"affinity":                               {values: `affinity: {nodeAffinity: {}}`},
	"topologySpreadConstraints":              {values: `topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]`},
}

func TestEveryValueHasAnEffect(t *testing.T) {
	for name, effect := range effects {
		t.Run(name, func(t *testing.T) {
			before := canonical(t, effect.upon)
			if after := canonical(t, overlay(t, effect.upon, effect.values)); slices.Equal(before, after) {
				t.Errorf("%s changes nothing", effect.values)
			}
		})
	}
	for _, name := range valueNames(t) {
		if _, tested := effects[name]; !tested {
			t.Errorf("value %s has no row in this test", name)
		}
	}
}

// canonical is what is rendered, in an order that does not change.
func canonical(t *testing.T, values string) []string {
	t.Helper()
	var all []string
	for _, o := range (release{name: "kick", namespace: "kick-system", values: values}).mustRender(t) {
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(text))
	}
	slices.Sort(all)
	return all
}

// overlay adds values to others as a second values file does.
func overlay(t *testing.T, below, above string) string {
	t.Helper()
	var lower, upper map[string]any
	for text, into := range map[string]*map[string]any{below: &lower, above: &upper} {
		if err := yaml.Unmarshal([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	text, err := yaml.Marshal(merged(lower, upper))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func merged(lower, upper map[string]any) map[string]any {
	all := map[string]any{}
	maps.Copy(all, lower)
	for key, value := range upper {
		inner, both := value.(map[string]any)
		if below, ok := all[key].(map[string]any); ok && both {
			value = merged(below, inner)
		}
		all[key] = value
	}
	return all
}

// schemaNode is the part of a JSON schema that tells values from groups of them.
type schemaNode struct {
	Default    any
	Properties map[string]schemaNode
}

// valueNames are the paths of all values that the schema knows.
func valueNames(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(chartDir, "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var schema schemaNode
	if err := json.Unmarshal(data, &schema); err != nil {
		t.Fatal(err)
	}
	delete(schema.Properties, "global") // Helm's own.
	return schema.names("")
}

func (n schemaNode) names(path string) []string {
	if n.Default != nil {
		return []string{path}
	}
	var all []string
	for key, inner := range n.Properties {
		name := key
		if path != "" {
			name = path + "." + key
		}
		all = append(all, inner.names(name)...)
	}
	return all
}
