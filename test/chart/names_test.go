package chart

import (
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
)

var longest = strings.Repeat("o", 63)

// releases are the ways of naming an installation that charts usually get wrong.
var releases = map[string]release{
	"as documented":                 {name: "kick", namespace: "kick-system"},
	"another name and namespace":    {name: "restarts", namespace: "platform"},
	"the chart's name inside":       {name: "my-kick-2", namespace: "default"},
	"a dot in the release name":     {name: "team.a", namespace: "kick-system"},
	"a release name of digits":      {name: "42", namespace: "kick-system"},
	"the longest release name":      {name: strings.Repeat("r", 53), namespace: strings.Repeat("n", 63)},
	"cut at a dash":                 {name: strings.Repeat("r", 49) + "-ab", namespace: "kick-system"},
	"nameOverride":                  {name: "a", namespace: "b", values: `nameOverride: other`},
	"fullnameOverride":              {name: "a", namespace: "b", values: `fullnameOverride: something-else`},
	"both overrides, the longest":   {name: "a", namespace: "b", values: "nameOverride: " + longest + "\nfullnameOverride: " + longest},
	"namespaceOverride":             {name: "a", namespace: "b", values: `namespaceOverride: c`, lives: "c"},
	"an issuer of one's own":        {name: "a", namespace: "b", values: `certManager: {issuerRef: {kind: ClusterIssuer, name: corporate}}`},
	"some namespaces only":          {name: "a", namespace: "b", values: `watchNamespaces: [c, d]`},
	"a service account of its own":  {name: "a", namespace: "b", values: `serviceAccount: {name: restarter}`},
	"an override that YAML retypes": {name: "a", namespace: "b", values: `nameOverride: "true"`},
	"a namespace that YAML retypes": {name: "kick", namespace: "123"},
}

// eachRelease runs a test for all of them.
func eachRelease(t *testing.T, test func(t *testing.T, r release, all manifests)) {
	for name, r := range releases {
		t.Run(name, func(t *testing.T) { test(t, r, r.mustRender(t)) })
	}
}

// C101.
func TestTheAPIServerFindsAndTrustsTheWebhook(t *testing.T) {
	eachRelease(t, func(t *testing.T, _ release, all manifests) {
		registration := only(t, all, anyOf[*admissionv1.ValidatingWebhookConfiguration])
		certificate := named(t, all, "Certificate", "-webhook")
		pod := only(t, all, anyOf[*appsv1.Deployment]).Spec.Template

		ca := registration.Annotations["cert-manager.io/inject-ca-from"]
		if want := certificate.GetNamespace() + "/" + certificate.GetName(); ca != want {
			t.Errorf("the CA is injected from %q, want the Certificate %q", ca, want)
		}
		if got, want := pod.Spec.Volumes[0].Secret.SecretName, field(t, certificate, "spec", "secretName"); got != want {
			t.Errorf("the Pods mount Secret %q, want that of the Certificate, %q", got, want)
		}
		manager := pod.Spec.Containers[0]
		if dir := manager.VolumeMounts[0].MountPath; !slices.Contains(manager.Args, "--webhook-cert-dir="+dir) {
			t.Errorf("the certificate is mounted at %q, the manager has %q", dir, manager.Args)
		}

		if len(registration.Webhooks) == 0 {
			t.Error("no webhook is registered")
		}
		names, _, _ := unstructured.NestedStringSlice(certificate.Object, "spec", "dnsNames")
		for _, hook := range registration.Webhooks {
			target := hook.ClientConfig.Service
			if host := target.Name + "." + target.Namespace + ".svc"; !slices.Contains(names, host) {
				t.Errorf("webhook %s is called as %q, the certificate is for %q", hook.Name, host, names)
			}
			service := only(t, all, func(s *corev1.Service) bool { return s.Name == target.Name && s.Namespace == target.Namespace })
			if port := service.Spec.Ports[0]; port.Port != *target.Port || containerPort(pod, port.TargetPort.StrVal) != 9443 {
				t.Errorf("webhook %s is called on port %d, the Service has %+v, the Pods %+v",
					hook.Name, *target.Port, port, pod.Spec.Containers[0].Ports)
			}
		}
	})
}

func containerPort(pod corev1.PodTemplateSpec, name string) int32 {
	for _, port := range pod.Spec.Containers[0].Ports {
		if port.Name == name {
			return port.ContainerPort
		}
	}
	return 0
}

func TestEverythingSelectsThePods(t *testing.T) {
	eachRelease(t, func(t *testing.T, _ release, all manifests) {
		deployment := only(t, all, anyOf[*appsv1.Deployment])
		selectors := map[string]labels.Selector{
			"Deployment": selector(t, deployment.Spec.Selector),
			"topology":   selector(t, deployment.Spec.Template.Spec.TopologySpreadConstraints[0].LabelSelector),
			"PodDisruptionBudget": selector(t,
				only(t, all, anyOf[*policyv1.PodDisruptionBudget]).Spec.Selector),
		}
		for _, o := range all {
			if s, ok := o.(*corev1.Service); ok {
				selectors["Service "+s.Name] = labels.SelectorFromSet(s.Spec.Selector)
			}
		}
		for name, s := range selectors {
			if s.Empty() || !s.Matches(labels.Set(deployment.Spec.Template.Labels)) {
				t.Errorf("%s selects %q, the Pods have %v", name, s, deployment.Spec.Template.Labels)
			}
		}
	})
}

func selector(t *testing.T, s *metav1.LabelSelector) labels.Selector {
	t.Helper()
	parsed, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestThePodsHaveTheRightsOfTheRoles(t *testing.T) {
	eachRelease(t, func(t *testing.T, r release, all manifests) {
		account := only(t, all, anyOf[*corev1.ServiceAccount])
		if got := only(t, all, anyOf[*appsv1.Deployment]).Spec.Template.Spec.ServiceAccountName; got != account.Name {
			t.Errorf("the Pods run as %q, want %q", got, account.Name)
		}
		want := []rbacv1.Subject{{Kind: "ServiceAccount", Name: account.Name, Namespace: r.home()}}
		check := func(kind, namespace string, binding metav1.ObjectMeta, ref rbacv1.RoleRef, subjects []rbacv1.Subject) {
			if ref.APIGroup != rbacv1.GroupName || ref.Kind != kind || ref.Name != binding.Name {
				t.Errorf("in %q a %s is bound by %+v", namespace, kind, ref)
			}
			only(t, all, func(role metav1.Object) bool {
				return role.(runtime.Object).GetObjectKind().GroupVersionKind().Kind == kind &&
					role.GetName() == ref.Name && role.GetNamespace() == namespace
			})
			if !slices.Equal(subjects, want) {
				t.Errorf("the %s in %q is bound to %+v, want %+v", kind, namespace, subjects, want)
			}
		}
		bindings := 0
		for _, o := range all {
			switch b := o.(type) {
			case *rbacv1.ClusterRoleBinding:
				check("ClusterRole", "", b.ObjectMeta, b.RoleRef, b.Subjects)
				bindings++
			case *rbacv1.RoleBinding:
				check("Role", b.Namespace, b.ObjectMeta, b.RoleRef, b.Subjects)
				bindings++
			}
		}
		if want := 2 + max(len(r.watches(t))-1, 0); bindings != want {
			t.Errorf("%d bindings, want %d", bindings, want)
		}
	})
}

func TestEveryNameIsValidAndInItsNamespace(t *testing.T) {
	eachRelease(t, func(t *testing.T, r release, all manifests) {
		for _, o := range all {
			m := metaOf(t, o)
			kind := o.GetObjectKind().GroupVersionKind().Kind
			if faults := nameFaults(o, m.GetName()); len(faults) > 0 {
				t.Errorf("%s %q: %v", kind, m.GetName(), faults)
			}
			for key, value := range m.GetLabels() {
				if faults := validation.IsValidLabelValue(value); len(faults) > 0 {
					t.Errorf("%s %q, label %s: %v", kind, m.GetName(), key, faults)
				}
			}
			want := []string{r.home()}
			switch {
			case clusterScoped(o):
				want = []string{""}
			case strings.HasPrefix(kind, "Role"):
				want = append(want, r.watches(t)...)
			}
			if !slices.Contains(want, m.GetNamespace()) {
				t.Errorf("%s %q is in namespace %q, want %q", kind, m.GetName(), m.GetNamespace(), want)
			}
		}
	})
}

// nameFaults applies the strictest rule of a kind: before 1.34 a Service's name must start with a letter.
func nameFaults(o any, name string) []string {
	if _, ok := o.(*corev1.Service); ok {
		return validation.IsDNS1035Label(name)
	}
	return validation.IsDNS1123Subdomain(name)
}

func clusterScoped(o any) bool {
	switch o.(type) {
	case *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding,
		*admissionv1.ValidatingWebhookConfiguration, *apiextensionsv1.CustomResourceDefinition:
		return true
	}
	return false
}
