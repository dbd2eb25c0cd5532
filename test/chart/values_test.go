package chart

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestAWrongValueFailsTheInstall(t *testing.T) {
	tests := map[string]struct{ values, want string }{
		"an unknown key":             {`replica: 3`, "replica"},
		"an unknown key inside":      {`image: {name: x}`, "name"},
		"an unknown key in a list":   {`imagePullSecrets: [{secret: x}]`, "secret"},
		"a number as text":           {`replicas: "2"`, "/replicas"},
		"a broken number":            {`workers: 1.5`, "/workers"},
		"no worker":                  {`workers: 0`, "/workers"},
		"no request per second":      {`kubeAPI: {qps: 0}`, "/kubeAPI/qps"},
		"text for a switch":          {`leaderElection: {enabled: "yes"}`, "/leaderElection/enabled"},
		"a duration without a unit":  {`requestTTL: "24"`, "/requestTTL"},
		"a duration as a number":     {`requestTTL: 24`, "/requestTTL"},
		"a host that is a URL":       {`notifications: {allowedHosts: ["https://a.test/path"]}`, "/notifications/allowedHosts/0"},
		"a Secret of no namespace":   {`notifications: {allowedSecrets: [hook]}`, "/notifications/allowedSecrets/0"},
		"a collector of no scheme":   {`tracing: {endpoint: "collector:4317"}`, "/tracing/endpoint"},
		"a collector with a path":    {`tracing: {endpoint: "http://a.test:4318/v1/traces"}`, "/tracing/endpoint"},
		"an unknown level":           {`logging: {level: verbose}`, "/logging/level"},
		"an unknown pull policy":     {`image: {pullPolicy: Sometimes}`, "/image/pullPolicy"},
		"half a digest":              {`image: {digest: "sha256:abc"}`, "/image/digest"},
		"a privileged port":          {`webhook: {port: 443}`, "/webhook/port"},
		"a port out of range":        {`metrics: {port: 65536}`, "/metrics/port"},
		"a name that is no name":     {`fullnameOverride: My_Kick`, "/fullnameOverride"},
		"a memory limit of no size":  {`resources: {limits: {memory: lots}}`, "/resources/limits/memory"},
		"a resource nobody knows":    {`resources: {limits: {mem: 1Gi}}`, "mem"},
		"a label that is a number":   {`podLabels: {build: 7}`, "/podLabels/build"},
		"a namespace twice":          {`watchNamespaces: [a, a]`, "/watchNamespaces"},
		"namespaces as text":         {`watchNamespaces: "a,b"`, "/watchNamespaces"},
		"a namespace that is none":   {`watchNamespaces: [Shop]`, "/watchNamespaces/0"},
		"another way to the metrics": {`metrics: {access: Everybody}`, "/metrics/access"},
		"a CA that is none":          {`webhook: {existingSecret: x, caBundle: "-----BEGIN RSA PRIVATE KEY-----"}`, "/webhook/caBundle"},
		"an issuer without a name":   {`certManager: {issuerRef: {kind: ClusterIssuer}}`, "/certManager/issuerRef"},
		"a budget for no drain":      {`podDisruptionBudget: {maxUnavailable: 0}`, "/podDisruptionBudget/maxUnavailable"},
		"a variable without a name":  {`extraEnv: [{value: x}]`, "/extraEnv/0"},
		"a volume of the chart":      {`extraVolumes: [{name: webhook-certs, emptyDir: {}}]`, "/extraVolumes/0/name"},
		"a mount without a path":     {`extraVolumeMounts: [{name: ca}]`, "/extraVolumeMounts/0"},
		"one toleration, not a list": {`tolerations: {key: a}`, "/tolerations"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := release{name: "kick", namespace: "kick-system", values: test.values}.render(t)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: error is %v, want one that names %s", test.values, err, test.want)
			}
		})
	}
}

func TestWhatCannotWorkIsRefusedInOneSentence(t *testing.T) {
	tests := map[string]struct {
		release release
		want    string
	}{
		"no cert-manager": {release{noCertManager: true}, "does not serve cert-manager.io/v1"},
		"readers of open metrics": {
			release{values: `metrics: {access: Anyone, readers: [{name: a, namespace: b}]}`}, "metrics.readers is about metrics.access: Authorized",
		},
		"a monitor of no metrics": {
			release{values: `metrics: {access: None, serviceMonitor: {enabled: true}}`}, "metrics.serviceMonitor.enabled needs metrics",
		},
		"two leaders": {
			release{values: `leaderElection: {enabled: false}`}, "replicas: 2 needs leaderElection.enabled: true",
		},
		"a Secret that nobody trusts": {
			release{values: `webhook: {existingSecret: cert}`}, "webhook.existingSecret needs webhook.caBundle",
		},
		"a CA of nothing": {release{values: `webhook: {caBundle: eA==}`}, "webhook.existingSecret, which is empty"},
		"reviews without a ClusterRole": {
			release{values: `{watchNamespaces: [a], metrics: {access: Authorized}}`}, "say Anyone",
		},
		"its own namespace": {release{values: `watchNamespaces: [kick-system]`}, `names "kick-system"`},
		"its own namespace, moved": {
			release{values: `{watchNamespaces: [shop], namespaceOverride: shop}`}, `names "shop"`,
		},
		"a memory limit in a unit that makes no sense": {
			release{values: `resources: {limits: {memory: 1000m}}`}, `"1000m"`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.release.name, test.release.namespace = "kick", "kick-system"
			_, err := test.release.render(t)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want one that says %s", err, test.want)
			}
		})
	}
}

func TestTheChartWorksAsADependency(t *testing.T) {
	if _, err := (release{name: "shop", namespace: "shop", values: `global: {region: eu}`}).render(t); err != nil {
		t.Errorf("values that Helm passes down from a parent chart: %v", err)
	}
}

func isCRD(o runtime.Object) bool {
	_, ok := o.(*apiextensionsv1.CustomResourceDefinition)
	return ok
}
