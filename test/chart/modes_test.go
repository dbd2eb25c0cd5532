package chart

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

func standard(values string) release {
	return release{name: "kick", namespace: "kick-system", values: values}
}

func registration(t *testing.T, all manifests) *admissionv1.ValidatingWebhookConfiguration {
	t.Helper()
	return only(t, all, anyOf[*admissionv1.ValidatingWebhookConfiguration])
}

func isCertManagers(o runtime.Object) bool {
	return o.GetObjectKind().GroupVersionKind().Group == "cert-manager.io"
}

// path reads a field of an object that Kubernetes does not know.
func path[T any](t *testing.T, u *unstructured.Unstructured, fields ...string) T {
	t.Helper()
	value, _, err := unstructured.NestedFieldNoCopy(u.Object, fields...)
	if err != nil {
		t.Fatal(err)
	}
	typed, _ := value.(T)
	return typed
}

// What the API server trusts is a CA that no renewal of the serving certificate touches.
func TestTheServingCertificateComesFromACAOfTheRelease(t *testing.T) {
	eachRelease(t, func(t *testing.T, r release, all manifests) {
		if strings.Contains(r.values, "issuerRef") {
			t.Skip("has an issuer of its own")
		}
		serving, authority := named(t, all, "Certificate", "-webhook"), named(t, all, "Certificate", "-ca")
		signer := named(t, all, "Issuer", "-ca")
		if got, want := field(t, serving, "spec", "issuerRef", "name"), signer.GetName(); got != want {
			t.Errorf("the serving certificate is issued by %q, want %q", got, want)
		}
		if got, want := field(t, signer, "spec", "ca", "secretName"), field(t, authority, "spec", "secretName"); got != want {
			t.Errorf("the issuer signs with Secret %q, the CA is in %q", got, want)
		}
		if got, want := field(t, authority, "spec", "issuerRef", "name"), named(t, all, "Issuer", "-selfsigned").GetName(); got != want {
			t.Errorf("the CA is issued by %q, want %q", got, want)
		}
		if !path[bool](t, authority, "spec", "isCA") || path[bool](t, serving, "spec", "isCA") {
			t.Error("the CA is none, or the serving certificate is one")
		}
		for certificate, want := range map[*unstructured.Unstructured]string{serving: "Always", authority: "Never"} {
			if got := field(t, certificate, "spec", "privateKey", "rotationPolicy"); got != want {
				t.Errorf("the key of %s is rotated %q, want %q", certificate.GetName(), got, want)
			}
		}
	})
}

func TestAnIssuerOfOnesOwnReplacesTheCA(t *testing.T) {
	all := standard(`certManager: {issuerRef: {name: corporate, kind: ClusterIssuer}}`).mustRender(t)
	serving := only(t, all, func(u *unstructured.Unstructured) bool { return isCertManagers(u) })
	want := map[string]any{"name": "corporate", "kind": "ClusterIssuer", "group": "cert-manager.io"}
	got := path[map[string]any](t, serving, "spec", "issuerRef")
	for key, value := range want {
		if got[key] != value {
			t.Errorf("issuerRef is %v, want %v", got, want)
		}
	}
}

func TestACertificateOfOnesOwnNeedsNoCertManager(t *testing.T) {
	const bundle = "-----BEGIN CERTIFICATE-----\nTUlJ\n-----END CERTIFICATE-----"
	for name, value := range map[string]string{
		"as text":      `"` + strings.ReplaceAll(bundle, "\n", `\n`) + `\n"`,
		"as base64":    base64.StdEncoding.EncodeToString([]byte(bundle)),
		"as a listing": `"` + base64.StdEncoding.EncodeToString([]byte(bundle))[:40] + `\n` + base64.StdEncoding.EncodeToString([]byte(bundle))[40:] + `"`,
	} {
		t.Run(name, func(t *testing.T) {
			r := standard(`webhook: {existingSecret: mine, caBundle: ` + value + `}`)
			r.noCertManager = true
			all := r.mustRender(t)
			if slices.ContainsFunc(all, isCertManagers) {
				t.Error("an object of cert-manager is rendered")
			}
			registered := registration(t, all)
			if _, injected := registered.Annotations["cert-manager.io/inject-ca-from"]; injected {
				t.Error("cert-manager is asked for the CA")
			}
			for _, hook := range registered.Webhooks {
				if string(hook.ClientConfig.CABundle) != bundle {
					t.Errorf("webhook %s trusts %q", hook.Name, hook.ClientConfig.CABundle)
				}
			}
			pod := only(t, all, anyOf[*appsv1.Deployment]).Spec.Template.Spec
			if got := pod.Volumes[0].Secret.SecretName; got != "mine" {
				t.Errorf("the Pods mount %q", got)
			}
		})
	}
}

func TestWithoutTheWebhookNothingOfItIsLeft(t *testing.T) {
	r := standard(`{webhook: {enabled: false}, networkPolicy: {enabled: true}}`)
	r.noCertManager = true
	all := r.mustRender(t)
	for _, o := range all {
		m := metaOf(t, o)
		if _, ok := o.(*admissionv1.ValidatingWebhookConfiguration); ok || isCertManagers(o) || strings.Contains(m.GetName(), "webhook") {
			t.Errorf("%s %s is rendered", o.GetObjectKind().GroupVersionKind().Kind, m.GetName())
		}
	}
	d := only(t, all, anyOf[*appsv1.Deployment])
	if pod := d.Spec.Template.Spec; len(pod.Volumes) > 0 || len(pod.Containers[0].VolumeMounts) > 0 || containerPort(d.Spec.Template, "webhook") != 0 {
		t.Errorf("the Pods still have the webhook's volume or port: %+v", pod)
	}
	if len(only(t, all, anyOf[*networkingv1.NetworkPolicy]).Spec.Ingress) != 1 {
		t.Error("the NetworkPolicy opens another port than the metrics'")
	}
}

func TestWithSomeNamespacesNoRightGoesBeyondThem(t *testing.T) {
	all := standard(`watchNamespaces: [shop, bank]`).mustRender(t)
	var places []string
	for _, o := range all {
		switch typed := o.(type) {
		case *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding:
			t.Errorf("%T %s is rendered", o, metaOf(t, o).GetName())
		case *rbacv1.Role:
			if typed.Name == "kick-manager" {
				places = append(places, typed.Namespace)
			}
			for _, rule := range typed.Rules {
				for _, beyond := range []string{"tokenreviews", "subjectaccessreviews", "validatingwebhookconfigurations"} {
					if slices.Contains(rule.Resources, beyond) {
						t.Errorf("Role %s/%s is about %s, which are in no namespace", typed.Namespace, typed.Name, beyond)
					}
				}
			}
		}
	}
	slices.Sort(places)
	if want := []string{"bank", "kick-system", "shop"}; !slices.Equal(places, want) {
		t.Errorf("the manager has rights in %q, want %q", places, want)
	}
}

// A Role in each namespace gives the rights that the ClusterRole gives in all of them.
func TestWithSomeNamespacesTheRightsInThemAreTheSame(t *testing.T) {
	everywhere := only(t, standard("").mustRender(t), func(r *rbacv1.ClusterRole) bool { return r.Name == "kick-manager" }).Rules
	for _, namespace := range []string{"shop", "kick-system"} {
		there := only(t, standard(`watchNamespaces: [shop]`).mustRender(t), func(r *rbacv1.Role) bool {
			return r.Name == "kick-manager" && r.Namespace == namespace
		}).Rules
		for _, rule := range everywhere {
			if slices.ContainsFunc(rule.Resources, func(r string) bool {
				return r == "tokenreviews" || r == "subjectaccessreviews" || r == "validatingwebhookconfigurations"
			}) {
				continue
			}
			if !slices.ContainsFunc(there, func(r rbacv1.PolicyRule) bool { return r.String() == rule.String() }) {
				t.Errorf("in %s the manager may not %v %v", namespace, rule.Verbs, rule.Resources)
			}
		}
	}
}

func TestWithSomeNamespacesTheWebhooksAreCalledForThemOnly(t *testing.T) {
	for _, hook := range registration(t, standard(`watchNamespaces: [shop, bank]`).mustRender(t)).Webhooks {
		s := selector(t, hook.NamespaceSelector)
		for namespace, want := range map[string]bool{
			"shop": true, "bank": true, "other": false, "kick-system": hook.Name != "guard.kick.dev",
		} {
			if got := s.Matches(labels.Set{corev1.LabelMetadataName: namespace}); got != want {
				t.Errorf("webhook %s is called for namespace %s: %t", hook.Name, namespace, got)
			}
		}
	}
}

// Where the control planes of Argo CD are, KICK reads GitOps objects and what it needs to understand them, and nothing else.
func TestWithSomeNamespacesArgoCDIsReadWhereItIs(t *testing.T) {
	for name, test := range map[string]struct {
		values, flag string
		roles        []string
	}{
		"all namespaces":                {"", "argocd", nil},
		"some namespaces":               {`watchNamespaces: [shop]`, "", nil},
		"some namespaces and Argo CD's": {`{watchNamespaces: [shop], gitOps: {argoCDNamespaces: [argocd]}}`, "argocd", []string{"argocd"}},
	} {
		t.Run(name, func(t *testing.T) {
			all := standard(test.values).mustRender(t)
			if got := argument(only(t, all, anyOf[*appsv1.Deployment]), "--argocd-namespaces"); got != test.flag {
				t.Errorf("--argocd-namespaces is %q, want %q", got, test.flag)
			}
			var places []string
			for _, o := range all {
				role, ok := o.(*rbacv1.Role)
				if !ok || role.Name != "kick-gitops" {
					continue
				}
				places = append(places, role.Namespace)
				for _, rule := range role.Rules {
					if rule.APIGroups[0] == "" && (!slices.Equal(rule.Resources, []string{"configmaps"}) || len(rule.ResourceNames) == 0) {
						t.Errorf("KICK may %v %v of Argo CD", rule.Verbs, rule.Resources)
					}
				}
			}
			if !slices.Equal(places, test.roles) {
				t.Errorf("Roles are in %q, want %q", places, test.roles)
			}
		})
	}
}

func TestMetricsAreForWhoMayReadThem(t *testing.T) {
	for name, test := range map[string]struct {
		values, address, auth string
		served                bool
	}{
		"all namespaces":             {"", ":8443", "true", true},
		"anyone":                     {`metrics: {access: Anyone}`, ":8443", "false", true},
		"none":                       {`metrics: {access: None}`, "0", "", false},
		"some namespaces":            {`watchNamespaces: [shop]`, "0", "", false},
		"some namespaces and anyone": {`{watchNamespaces: [shop], metrics: {access: Anyone}}`, ":8443", "false", true},
	} {
		t.Run(name, func(t *testing.T) {
			all := standard(test.values).mustRender(t)
			d := only(t, all, anyOf[*appsv1.Deployment])
			if got := argument(d, "--metrics-bind-address"); got != test.address {
				t.Errorf("metrics are at %q, want %q", got, test.address)
			}
			if got := argument(d, "--metrics-auth"); got != test.auth {
				t.Errorf("--metrics-auth is %q, want %q", got, test.auth)
			}
			service := slices.ContainsFunc(all, func(o runtime.Object) bool {
				s, ok := o.(*corev1.Service)
				return ok && s.Name == "kick-metrics"
			})
			if service != test.served || (containerPort(d.Spec.Template, "metrics") != 0) != test.served {
				t.Errorf("Service and port are there: %t, want %t", service, test.served)
			}
		})
	}
}

func TestPeopleGetTheirRightsFromTheClustersOwnRoles(t *testing.T) {
	all := standard("").mustRender(t)
	for name, joins := range map[string]string{"kick-view": "view edit admin", "kick-edit": "edit admin", "kick-override": ""} {
		t.Run(name, func(t *testing.T) {
			role := only(t, all, func(r *rbacv1.ClusterRole) bool { return r.Name == name })
			for _, into := range []string{"view", "edit", "admin"} {
				joined := role.Labels["rbac.authorization.k8s.io/aggregate-to-"+into] == "true"
				if want := slices.Contains(strings.Fields(joins), into); joined != want {
					t.Errorf("joins %s: %t, want %t", into, joined, want)
				}
			}
			for _, rule := range role.Rules {
				if overrides := slices.Contains(rule.Verbs, "override"); overrides != (name == "kick-override") || slices.Contains(rule.Verbs, "*") {
					t.Errorf("grants %v", rule.Verbs)
				}
			}
		})
	}
}

// The webhook is what asks for the right to override.
func TestWithoutTheWebhookEditingGivesNoRightToWriteRequests(t *testing.T) {
	for values, want := range map[string]bool{"": true, `webhook: {enabled: false}`: false} {
		role := only(t, standard(values).mustRender(t), func(r *rbacv1.ClusterRole) bool { return r.Name == "kick-edit" })
		writes := map[string]bool{}
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				for _, verb := range []string{"create", "patch", "update"} {
					writes[resource] = writes[resource] || slices.Contains(rule.Verbs, verb)
				}
			}
		}
		if writes["kickrequests"] != want || !writes["kickpolicies"] {
			t.Errorf("with %q it gives the right to write %v", values, writes)
		}
	}
}

func TestPeopleGetRolesInSomeNamespaces(t *testing.T) {
	all := standard(`watchNamespaces: [shop]`).mustRender(t)
	for _, name := range []string{"kick-view", "kick-edit", "kick-override"} {
		only(t, all, func(r *rbacv1.Role) bool { return r.Name == name && r.Namespace == "shop" })
	}
}

func TestTheNetworkPolicyOpensTheWebhookToAllAndTheMetricsToSome(t *testing.T) {
	all := standard(`networkPolicy: {enabled: true, metricsFrom: [{namespaceSelector: {matchLabels: {team: ops}}}]}`).mustRender(t)
	spec := only(t, all, anyOf[*networkingv1.NetworkPolicy]).Spec
	if !selector(t, &spec.PodSelector).Matches(labels.Set(only(t, all, anyOf[*appsv1.Deployment]).Spec.Template.Labels)) {
		t.Error("it does not select the Pods")
	}
	open := map[string]int{}
	for _, rule := range spec.Ingress {
		open[rule.Ports[0].Port.StrVal] = len(rule.From)
	}
	if open["webhook"] != 0 || open["metrics"] != 1 || len(open) != 2 {
		t.Errorf("peers by port: %v", open)
	}
	if !slices.Equal(spec.PolicyTypes, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}) {
		t.Errorf("it is about %v: what the Pods connect to was not to be restricted", spec.PolicyTypes)
	}
}

func TestCommonLabelsAreOnEverything(t *testing.T) {
	for _, o := range standard(`commonLabels: {cost: low, app.kubernetes.io/name: other}`).mustRender(t) {
		m := metaOf(t, o)
		if m.GetLabels()["cost"] != "low" || m.GetLabels()["app.kubernetes.io/name"] != "kick" {
			t.Errorf("%T %s has labels %v", o, m.GetName(), m.GetLabels())
		}
	}
}
