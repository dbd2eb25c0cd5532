package testbed

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"
)

const certManagerNamespace = "cert-manager"

var crdResource = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

// startCertManager installs cert-manager's CRDs and starts its controllers, if
// the options ask for it.
func (t *Testbed) startCertManager(ctx context.Context) error {
	if !t.options.CertManager {
		return nil
	}
	if err := t.createCertManagerNamespace(ctx); err != nil {
		return err
	}
	if err := t.installCRDs(ctx, t.options.Binaries.CertManagerCRDs); err != nil {
		return err
	}
	return t.boot(ctx, CertManager, 1, func(ports []int) launch {
		return launch{
			path: t.options.Binaries.CertManager,
			args: []string{
				"-kubeconfig=" + t.kubeconfigOf(userCertManager),
				"-namespace=" + certManagerNamespace,
				"-health-address=" + local(ports[0]),
			},
			ready: healthy("http://" + local(ports[0])),
		}
	})
}

func (t *Testbed) createCertManagerNamespace(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(t.configOf(userKwok))
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: certManagerNamespace}}
	_, err = client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create Namespace of cert-manager: %w", err)
	}
	return nil
}

// installCRDs applies all CRD manifests of a folder, and waits until their
// resources are served.
func (t *Testbed) installCRDs(ctx context.Context, folder string) error {
	client, err := dynamic.NewForConfig(t.configOf(userKwok))
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return fmt.Errorf("list CRDs: %w", err)
	}
	var names []string
	for _, file := range files {
		name, err := applyCRD(ctx, client, file)
		if err != nil {
			return fmt.Errorf("install CRD %s: %w", filepath.Base(file), err)
		}
		names = append(names, name)
	}
	for _, name := range names {
		if err := awaitEstablished(ctx, client, name); err != nil {
			return fmt.Errorf("wait for CRD %s: %w", name, err)
		}
	}
	return nil
}

func applyCRD(ctx context.Context, client dynamic.Interface, file string) (name string, err error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	crd := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(content, &crd.Object); err != nil {
		return "", err
	}
	_, err = client.Resource(crdResource).Apply(ctx, crd.GetName(), crd, metav1.ApplyOptions{FieldManager: "testbed", Force: true})
	return crd.GetName(), err
}

func awaitEstablished(ctx context.Context, client dynamic.Interface, name string) error {
	ctx, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()
	for {
		crd, err := client.Resource(crdResource).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if isEstablished(crd) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollInterval):
		}
	}
}

func isEstablished(crd *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, entry := range conditions {
		condition, _ := entry.(map[string]any)
		if condition["type"] == "Established" && condition["status"] == "True" {
			return true
		}
	}
	return false
}
