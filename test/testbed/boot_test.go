package testbed_test

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

func TestDeploymentRollsOutWithReadyPods(t *testing.T) {
	ns := namespace(t)
	labels := map[string]string{"app": "web"}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(3)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx:1"}}},
			},
		},
	}
	deployments := shared.client.AppsV1().Deployments(ns)
	if _, err := deployments.Create(t.Context(), deployment, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		current, err := deployments.Get(t.Context(), "web", metav1.GetOptions{})
		if err == nil && current.Status.ReadyReplicas != 3 {
			err = fmt.Errorf("%d replicas are ready", current.Status.ReadyReplicas)
		}
		return err
	})
	sets, err := shared.client.AppsV1().ReplicaSets(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(sets.Items) != 1 {
		t.Errorf("want one ReplicaSet, got %d, %v", len(sets.Items), err)
	}
}

func TestAnotherUserHasOnlyTheRightsOfRBAC(t *testing.T) {
	client, err := kubernetes.NewForConfig(shared.As("jane", "developers"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("want a refusal, got %v", err)
	}
}

func TestClientsReachTheTestbed(t *testing.T) {
	out, err := shared.Kubectl(t.Context(), "get", "nodes", "-o", "name")
	if err != nil || strings.Count(out, "node/") != 3 {
		t.Errorf("want three Nodes, got %q, %v", out, err)
	}
	if out, err := shared.Helm(t.Context(), "list", "--all-namespaces", "--short"); err != nil {
		t.Errorf("helm list: %q, %v", out, err)
	}
	if _, err := shared.Kubectl(t.Context(), "get", "nonsense"); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("want kubectl's own message, got %v", err)
	}
}
