package chart

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
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
		"an unknown level":           {`logging: {level: verbose}`, "/logging/level"},
		"an unknown pull policy":     {`image: {pullPolicy: Sometimes}`, "/image/pullPolicy"},
		"half a digest":              {`image: {digest: "sha256:abc"}`, "/image/digest"},
		"a privileged port":          {`webhook: {port: 443}`, "/webhook/port"},
		"a port out of range":        {`metrics: {port: 65536}`, "/metrics/port"},
		"a name that is no name":     {`fullnameOverride: My_Kick`, "/fullnameOverride"},
		"a memory limit of no size":  {`resources: {limits: {memory: lots}}`, "/resources/limits/memory"},
		"a resource nobody knows":    {`resources: {limits: {mem: 1Gi}}`, "mem"},
		"a label that is a number":   {`podLabels: {build: 7}`, "/podLabels/build"},
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
		"two leaders": {
			release{values: `leaderElection: {enabled: false}`}, "replicas: 2 needs leaderElection.enabled: true",
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

// schemaNode is the part of a JSON schema that describes one value.
type schemaNode struct {
	Description string
	Default     any
	Properties  map[string]schemaNode
}

func TestTheSchemaDocumentsEveryValueAndItsDefault(t *testing.T) {
	var schema schemaNode
	read(t, "values.schema.json", func(data []byte) error { return json.Unmarshal(data, &schema) })
	var values map[string]any
	read(t, "values.yaml", func(data []byte) error { return yaml.Unmarshal(data, &values) })
	delete(schema.Properties, "global") // set by Helm, never by the chart
	compare(t, "", schema, values)
}

func compare(t *testing.T, path string, node schemaNode, value any) {
	t.Helper()
	if path != "" && node.Description == "" {
		t.Errorf("%s has no description", path)
	}
	if node.Default != nil || len(node.Properties) == 0 {
		if !reflect.DeepEqual(node.Default, value) {
			t.Errorf("%s is %v in values.yaml, the schema says %v", path, value, node.Default)
		}
		return
	}
	children, _ := value.(map[string]any)
	for key, child := range node.Properties {
		if _, found := children[key]; !found {
			t.Errorf("%s/%s is in the schema, not in values.yaml", path, key)
			continue
		}
		compare(t, path+"/"+key, child, children[key])
	}
	for key := range children {
		if _, found := node.Properties[key]; !found {
			t.Errorf("%s/%s is in values.yaml, not in the schema", path, key)
		}
	}
}

func read(t *testing.T, file string, parse func([]byte) error) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(chartDir, file))
	if err != nil {
		t.Fatal(err)
	}
	if err := parse(data); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

func isCRD(o runtime.Object) bool {
	_, ok := o.(*apiextensionsv1.CustomResourceDefinition)
	return ok
}
