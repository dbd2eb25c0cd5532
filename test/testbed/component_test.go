package testbed_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kick-dev/kick/test/testbed"
)

func TestPodProcessesSurviveARestartOfTheAPIServer(t *testing.T) {
	ns := namespace(t)
	createPod(t, ns, newManagerPod())
	before := processOf(t, ns)

	server := shared.Component(testbed.APIServer)
	server.Stop()
	if server.Running() {
		t.Fatal("the API server still runs")
	}
	// What happens meanwhile is reported afterwards.
	before.Kill()
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitPod(t, ns, "manager", func(pod *corev1.Pod) bool {
		return isReady(pod) && pod.Status.ContainerStatuses[0].RestartCount == 1
	})
	if processOf(t, ns).PID == before.PID {
		t.Error("the killed process was not replaced")
	}
}

func TestASecondAPIServerGoesOnWhileTheFirstIsAway(t *testing.T) {
	config, err := shared.StartSecondAPIServer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(shared.Component(testbed.SecondAPIServer).Stop)
	second, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ns := namespace(t)
	first := shared.Component(testbed.APIServer)
	first.Stop()
	written := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "meanwhile"}}
	if _, err := second.CoreV1().ConfigMaps(ns).Create(t.Context(), written, metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
	if err := first.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := shared.client.CoreV1().ConfigMaps(ns).Get(t.Context(), written.Name, metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

func TestEveryComponentStartsAgain(t *testing.T) {
	for _, component := range shared.Components() {
		t.Run(component.Name(), func(t *testing.T) {
			before := component.PID()
			component.Kill()
			if component.Running() {
				t.Fatal("it still runs")
			}
			if err := component.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			if component.PID() == before {
				t.Error("it is the same process")
			}
		})
	}
	ns := namespace(t)
	createSpecial(t, ns, "", "")
	awaitPod(t, ns, "special", isReady)
}

func TestPausedComponentDoesNotAnswer(t *testing.T) {
	etcd := shared.Component(testbed.Etcd)
	if err := etcd.Pause(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := shared.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "paused-"},
	}, metav1.CreateOptions{})
	if err == nil {
		t.Error("want no answer")
	}
	if err := etcd.Resume(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		_, err := shared.client.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})
		return err
	})
}
