package chart

import (
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

func TestThePodsPassPodSecurityRestricted(t *testing.T) {
	pod := deployment(t, "").Spec.Template
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	result := policy.AggregateCheckResults(evaluator.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec))
	if !result.Allowed {
		t.Errorf("refused: %s: %s", result.ForbiddenReason(), result.ForbiddenDetail())
	}
	if root := pod.Spec.Containers[0].SecurityContext.ReadOnlyRootFilesystem; root == nil || !*root {
		t.Error("the root file system is writable")
	}
}

func TestEveryFlagFollowsItsValue(t *testing.T) {
	tests := map[string]struct{ values, want string }{
		"--leader-elect":              {`{replicas: 1, leaderElection: {enabled: false}}`, "false"},
		"--watch-namespaces":          {`watchNamespaces: [shop, bank]`, "shop,bank"},
		"--replicas":                  {`replicas: 3`, "3"},
		"--metrics-auth":              {`metrics: {access: Anyone}`, "false"},
		"--webhook":                   {`webhook: {enabled: false}`, "false"},
		"--webhook-configuration":     {`fullnameOverride: restarter`, "restarter"},
		"--request-ttl":               {`requestTTL: 90m`, "90m"},
		"--max-concurrent-restarts":   {`maxConcurrentRestarts: 0`, "0"},
		"--workers":                   {`workers: 2000000`, "2000000"},
		"--argocd-namespaces":         {`gitOps: {argoCDNamespaces: [argo-a, argo-b]}`, "argo-a,argo-b"},
		"--argocd-local-destinations": {`gitOps: {argoCDLocalDestinations: [production]}`, "production"},
		"--notification-hosts":        {`notifications: {allowedHosts: [a.test, "http://b.test:*"]}`, "a.test,http://b.test:*"},
		"--notification-secrets":      {`notifications: {allowedSecrets: [shop/hook]}`, "shop/hook"},
		"--otlp-traces-endpoint":      {`tracing: {endpoint: "https://otlp.example.com"}`, "https://otlp.example.com"},
		"--kube-api-qps":              {`kubeAPI: {qps: 12.5}`, "12.5"},
		"--kube-api-burst":            {`kubeAPI: {burst: 3000000}`, "3000000"},
		"--metrics-bind-address":      {`metrics: {port: 1111}`, ":1111"},
		"--health-probe-bind-address": {`health: {port: 2222}`, ":2222"},
		"--guard-exempt-users":        {`webhook: {guard: {exemptUsers: [root, "system:admin"]}}`, "root,system:admin"},
		"--guard-exempt-groups":       {`webhook: {guard: {exemptGroups: [sre]}}`, "sre"},
		"--webhook-port":              {`webhook: {port: 3333}`, "3333"},
		"--zap-log-level":             {`logging: {level: 5}`, "5"},
	}
	for flag, test := range tests {
		t.Run(flag, func(t *testing.T) {
			before, after := argument(deployment(t, ""), flag), argument(deployment(t, test.values), flag)
			if after != test.want || before == after {
				t.Errorf("with %s the flag goes from %q to %q, want %q", test.values, before, after, test.want)
			}
		})
	}
	for _, arg := range deployment(t, "").Spec.Template.Spec.Containers[0].Args {
		flag, _, _ := strings.Cut(arg, "=")
		if _, tested := tests[flag]; !tested && flag != "--webhook-cert-dir" {
			t.Errorf("flag %s has no row in this test", flag)
		}
	}
}

func TestEveryFlagOfTheManagerHasAValue(t *testing.T) {
	// Set by the chart, or about what only matters to a person at a terminal or one who measures, with extraArgs.
	without := []string{"namespace", "pprof-bind-address", "service-account-name", "webhook-cert-dir", "version", "zap-devel", "zap-encoder", "zap-stacktrace-level", "zap-time-encoding", "kubeconfig"}
	args := deployment(t, `{watchNamespaces: [shop], gitOps: {argoCDLocalDestinations: [x]},
		notifications: {allowedHosts: [x], allowedSecrets: [x/y]}, tracing: {endpoint: "http://x"},
		webhook: {guard: {exemptUsers: [x], exemptGroups: [x]}}}`).Spec.Template.Spec.Containers[0].Args
	args = append(args, deployment(t, "").Spec.Template.Spec.Containers[0].Args...)
	for _, flag := range managerFlags(t) {
		set := slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--"+flag+"=") })
		if !set && !slices.Contains(without, flag) {
			t.Errorf("the manager has a flag --%s that no value of the chart sets", flag)
		}
	}
}

// managerFlags asks the manager.
func managerFlags(t *testing.T) []string {
	t.Helper()
	manager := exec.Command("go", "run", "./cmd/manager", "-h")
	manager.Dir = "../.."
	usage, err := manager.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, usage)
	}
	var flags []string
	for line := range strings.Lines(string(usage)) {
		if name, found := strings.CutPrefix(line, "  -"); found {
			flags = append(flags, strings.Fields(name)[0])
		}
	}
	if len(flags) == 0 {
		t.Fatalf("no flag in %s", usage)
	}
	return flags
}

func TestWhatIsAddedComesLastAndWhatTheChartNeedsStays(t *testing.T) {
	d := deployment(t, `
extraArgs: [--zap-encoder=console]
extraEnv: [{name: GODEBUG, value: x509=1}]
extraVolumes: [{name: ca, configMap: {name: ca}}]
extraVolumeMounts: [{name: ca, mountPath: /ca}]
podLabels: {app.kubernetes.io/name: other, tier: ops}
commonLabels: {tier: common, app.kubernetes.io/instance: other, cost: none}
podAnnotations: {kubectl.kubernetes.io/default-container: other, a: b}
`)
	manager := d.Spec.Template.Spec.Containers[0]
	if last := manager.Args[len(manager.Args)-1]; last != "--zap-encoder=console" {
		t.Errorf("the last argument is %q", last)
	}
	if environment(d, "GODEBUG") != "x509=1" || environment(d, "GOMEMLIMIT") == "" {
		t.Errorf("the environment is %+v", manager.Env)
	}
	if v := d.Spec.Template.Spec.Volumes; len(v) != 2 || v[0].Secret == nil || v[1].ConfigMap == nil || v[1].ConfigMap.Name != "ca" {
		t.Errorf("the volumes are %+v", v)
	}
	if m := manager.VolumeMounts; len(m) != 2 || m[0].MountPath == m[1].MountPath || m[1].MountPath != "/ca" {
		t.Errorf("the mounts are %+v", m)
	}
	wantLabels := map[string]string{
		"app.kubernetes.io/name": "kick", "app.kubernetes.io/instance": "kick", "tier": "ops", "cost": "none",
	}
	if got := d.Spec.Template.Labels; !maps.Equal(got, wantLabels) {
		t.Errorf("the Pods' labels are %v, want %v", got, wantLabels)
	}
	wantAnnotations := map[string]string{"kubectl.kubernetes.io/default-container": "manager", "a": "b"}
	if got := d.Spec.Template.Annotations; !maps.Equal(got, wantAnnotations) {
		t.Errorf("the Pods' annotations are %v, want %v", got, wantAnnotations)
	}
}

func TestADrainIsNeverHeldUp(t *testing.T) {
	for name, values := range map[string]string{"one replica": `replicas: 1`, "two": "", "none": `replicas: 0`} {
		t.Run(name, func(t *testing.T) {
			all := release{name: "kick", namespace: "kick-system", values: values}.mustRender(t)
			budget := only(t, all, anyOf[*policyv1.PodDisruptionBudget]).Spec
			if budget.MinAvailable != nil || budget.MaxUnavailable.IntValue() < 1 {
				t.Errorf("an eviction is refused by %+v", budget)
			}
			if p := budget.UnhealthyPodEvictionPolicy; p == nil || *p != policyv1.AlwaysAllow {
				t.Error("a Pod that is not ready holds up a drain")
			}
		})
	}
}

func TestThePortsOfThePodFollowTheFlags(t *testing.T) {
	d := deployment(t, `{metrics: {port: 1111}, health: {port: 2222}, webhook: {port: 3333}}`)
	for name, want := range map[string]int32{"metrics": 1111, "health": 2222, "webhook": 3333} {
		if got := containerPort(d.Spec.Template, name); got != want {
			t.Errorf("port %s is %d, want %d", name, got, want)
		}
	}
}

func TestTheRuntimeKnowsTheMemoryLimit(t *testing.T) {
	for limit, want := range map[string]string{
		`256Mi`: "241591910", `1Gi`: "966367641", `0.5G`: "450000000", `300000000`: "270000000", `null`: "",
	} {
		t.Run(limit, func(t *testing.T) {
			if got := environment(deployment(t, `resources: {limits: {memory: `+limit+`}}`), "GOMEMLIMIT"); got != want {
				t.Errorf("GOMEMLIMIT is %q, want %q", got, want)
			}
		})
	}
}

func TestTheImageIsTheChartsOwnVersionUnlessSaidOtherwise(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	for values, want := range map[string]string{
		"":                                "ghcr.io/kick-dev/kick:0.1.0",
		`image: {tag: v9}`:                "ghcr.io/kick-dev/kick:v9",
		`image: {digest: ` + digest + `}`: "ghcr.io/kick-dev/kick@" + digest,
		`image: {repository: local/x}`:    "local/x:0.1.0",
	} {
		if got := deployment(t, values).Spec.Template.Spec.Containers[0].Image; got != want {
			t.Errorf("with %q the image is %q, want %q", values, got, want)
		}
	}
}

func TestTheCRDsSurviveTheRelease(t *testing.T) {
	crds := 0
	for _, o := range (release{name: "kick", namespace: "kick-system"}).mustRender(t) {
		if crd, ok := o.(*apiextensionsv1.CustomResourceDefinition); ok {
			crds++
			if crd.Annotations["helm.sh/resource-policy"] != "keep" {
				t.Errorf("uninstalling deletes %s", crd.Name)
			}
		}
	}
	if crds == 0 {
		t.Error("the chart holds no CRD")
	}
	without := release{name: "kick", namespace: "kick-system", values: `crds: {enabled: false}`}.mustRender(t)
	if slices.ContainsFunc(without, isCRD) {
		t.Error("crds.enabled: false installs CRDs")
	}
}

func deployment(t *testing.T, values string) *appsv1.Deployment {
	t.Helper()
	all := release{name: "kick", namespace: "kick-system", values: values}.mustRender(t)
	return only(t, all, anyOf[*appsv1.Deployment])
}

func argument(d *appsv1.Deployment, flag string) string {
	for _, arg := range d.Spec.Template.Spec.Containers[0].Args {
		if value, found := strings.CutPrefix(arg, flag+"="); found {
			return value
		}
	}
	return ""
}

func environment(d *appsv1.Deployment, name string) string {
	env := d.Spec.Template.Spec.Containers[0].Env
	if i := slices.IndexFunc(env, func(e corev1.EnvVar) bool { return e.Name == name }); i >= 0 {
		return env[i].Value
	}
	return ""
}
