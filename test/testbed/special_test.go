package testbed_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kick-dev/kick/test/testbed"
)

// createSpecial creates a Pod that KWOK plays, with one label.
func createSpecial(t *testing.T, ns, label, value string) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "special"},
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{
				{Name: "init", Image: "init:1"},
				{Name: "sidecar", Image: "sidecar:1", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)},
			},
			Containers: []corev1.Container{{Name: "main", Image: "nginx:1"}},
		},
	}
	if label != "" {
		pod.Labels = map[string]string{label: value}
	}
	if _, err := shared.client.CoreV1().Pods(ns).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func removeLabel(t *testing.T, ns, label string) {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, label)
	_, err := shared.client.CoreV1().Pods(ns).Patch(t.Context(), "special", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func awaitPod(t *testing.T, ns, name string, wanted func(*corev1.Pod) bool) *corev1.Pod {
	t.Helper()
	var pod *corev1.Pod
	eventually(t, func() error {
		pod = getPod(t, ns, name)
		if !wanted(pod) {
			return fmt.Errorf("the Pod is %+v", pod.Status)
		}
		return nil
	})
	return pod
}

func isReady(pod *corev1.Pod) bool { return conditionOf(pod, corev1.PodReady) == corev1.ConditionTrue }

func isCreating(pod *corev1.Pod) bool {
	statuses := pod.Status.ContainerStatuses
	return pod.Status.Phase == corev1.PodPending && len(statuses) == 1 && statuses[0].State.Waiting != nil
}

func TestOrdinaryPodRunsInitContainersAndSidecars(t *testing.T) {
	ns := namespace(t)
	createSpecial(t, ns, "", "")
	pod := awaitPod(t, ns, "special", isReady)

	init, sidecar := pod.Status.InitContainerStatuses[0], pod.Status.InitContainerStatuses[1]
	if init.State.Terminated == nil || init.State.Terminated.StartedAt.IsZero() || init.State.Terminated.FinishedAt.IsZero() {
		t.Errorf("the init container should have ended: %+v", init.State)
	}
	if sidecar.State.Running == nil {
		t.Errorf("the sidecar should run: %+v", sidecar.State)
	}
	started := pod.Status.ContainerStatuses[0].State.Running.StartedAt
	if since := time.Since(started.Time); since < 0 || since > patience {
		t.Errorf("the container started at %v", started)
	}
}

func TestPodThatIsNeverReadyRunsUnready(t *testing.T) {
	ns := namespace(t)
	createSpecial(t, ns, testbed.LabelNeverReady, "true")
	unready := awaitPod(t, ns, "special", func(pod *corev1.Pod) bool {
		return pod.Status.Phase == corev1.PodRunning && conditionOf(pod, corev1.PodReady) == corev1.ConditionFalse
	})
	if unready.Status.ContainerStatuses[0].State.Running == nil {
		t.Errorf("the container should run: %+v", unready.Status.ContainerStatuses[0].State)
	}
	removeLabel(t, ns, testbed.LabelNeverReady)
	awaitPod(t, ns, "special", isReady)
}

func TestPodWithStartDelayStartsLate(t *testing.T) {
	const delay = 3 * time.Second
	ns := namespace(t)
	createSpecial(t, ns, testbed.LabelStartDelay, delay.String())
	awaitPod(t, ns, "special", isCreating)
	pod := awaitPod(t, ns, "special", isReady)

	started := pod.Status.ContainerStatuses[0].State.Running.StartedAt
	// Both times have whole seconds.
	if late := started.Sub(pod.CreationTimestamp.Time); late < delay-time.Second {
		t.Errorf("the container started only %v after its Pod was created", late)
	}
}

func TestPodThatFailsIsInCrashLoopBackOff(t *testing.T) {
	ns := namespace(t)
	createSpecial(t, ns, testbed.LabelFails, "true")
	awaitPod(t, ns, "special", func(pod *corev1.Pod) bool {
		statuses := pod.Status.ContainerStatuses
		return len(statuses) == 1 && statuses[0].State.Waiting != nil &&
			statuses[0].State.Waiting.Reason == "CrashLoopBackOff" && statuses[0].RestartCount > 0
	})
	removeLabel(t, ns, testbed.LabelFails)
	awaitPod(t, ns, "special", isReady)
}

func TestPodOnHoldIsBeingCreatedUntilReleased(t *testing.T) {
	ns := namespace(t)
	createSpecial(t, ns, testbed.LabelHold, "true")
	pod := awaitPod(t, ns, "special", isCreating)
	if conditionOf(pod, corev1.PodReadyToStartContainers) != corev1.ConditionFalse {
		t.Errorf("the Pod should not be ready to start containers: %+v", pod.Status.Conditions)
	}
	removeLabel(t, ns, testbed.LabelHold)
	awaitPod(t, ns, "special", isReady)
}

func TestPodWithStopDelayGoesLate(t *testing.T) {
	ns := namespace(t)
	createSpecial(t, ns, testbed.LabelStopDelay, "2s")
	awaitPod(t, ns, "special", isReady)
	began := time.Now()
	if err := shared.client.CoreV1().Pods(ns).Delete(t.Context(), "special", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitNoPod(t, ns, "special")
	if took := time.Since(began); took < 2*time.Second {
		t.Errorf("the Pod was gone after %v", took)
	}
}

func awaitNoPod(t *testing.T, ns, name string) {
	t.Helper()
	eventually(t, func() error {
		list, err := shared.client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("Pod %s is still there", name)
		}
		return err
	})
}
