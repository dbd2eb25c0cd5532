package testbed_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// webhookManifest is what a chart with cert-manager installs for its webhook.
const webhookManifest = `
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: self, namespace: NAMESPACE}
spec: {selfSigned: {}}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: webhook, namespace: NAMESPACE}
spec:
  secretName: webhook-certs
  dnsNames: [webhook.NAMESPACE.svc]
  issuerRef: {name: self}
---
apiVersion: v1
kind: Service
metadata: {name: webhook, namespace: NAMESPACE}
spec:
  selector: {app: manager}
  ports: [{port: 443, targetPort: webhook}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: NAMESPACE
  annotations: {cert-manager.io/inject-ca-from: NAMESPACE/webhook}
webhooks:
- name: webhook.registry.example
  clientConfig: {service: {name: webhook, namespace: NAMESPACE, path: /validate}}
  rules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}]
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAMESPACE}}
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
`

// newWebhookPod is a fake manager that serves its webhook.
func newWebhookPod() *corev1.Pod {
	pod := newManagerPod()
	container := &pod.Spec.Containers[0]
	container.Args = append(container.Args, "--webhook-port=9443", "--webhook-cert-dir=/etc/certs")
	container.Ports = append(container.Ports, corev1.ContainerPort{Name: "webhook", ContainerPort: 9443})
	container.VolumeMounts = []corev1.VolumeMount{{Name: "certs", MountPath: "/etc/certs", ReadOnly: true}}
	pod.Spec.Volumes = []corev1.Volume{{Name: "certs", VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: "webhook-certs"},
	}}}
	return pod
}

// installWebhook returns when the API server calls the webhook.
func installWebhook(t *testing.T, ns string) {
	t.Helper()
	createPod(t, ns, newWebhookPod())
	apply(t, strings.ReplaceAll(webhookManifest, "NAMESPACE", ns))
	t.Cleanup(func() {
		_ = shared.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(t.Context(), ns, metav1.DeleteOptions{})
	})
	processOf(t, ns)
	eventually(t, func() error {
		err := createConfigMap(t, ns, "deny")
		if err != nil && strings.Contains(err.Error(), "denied by the fake manager") {
			return nil
		}
		return fmt.Errorf("want a refusal by the webhook, got %w", err)
	})
}

func createConfigMap(t *testing.T, ns, label string) error {
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "x-", Labels: map[string]string{label: ""}}}
	_, err := shared.client.CoreV1().ConfigMaps(ns).Create(t.Context(), configMap, metav1.CreateOptions{})
	return err
}

func TestAPIServerCallsAWebhookWithACertificateOfCertManager(t *testing.T) {
	ns := namespace(t)
	installWebhook(t, ns)
	if err := createConfigMap(t, ns, "allow"); err != nil {
		t.Errorf("want the webhook to allow it: %v", err)
	}

	if err := shared.client.CoreV1().Pods(ns).Delete(t.Context(), "manager", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitNoPod(t, ns, "manager")
	if err := createConfigMap(t, ns, "allow"); err == nil {
		t.Error("want a failure without the webhook")
	}
}
