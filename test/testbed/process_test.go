package testbed_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kick-dev/kick/test/testbed"
)

// world is what the fake manager tells about itself.
type world struct {
	Args []string
	Env  []string
	User string
}

// newManagerPod is a Pod of the fake manager, as a chart would write it.
func newManagerPod() *corev1.Pod {
	health := &corev1.Probe{
		ProbeHandler:     corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromString("health")}},
		PeriodSeconds:    1,
		FailureThreshold: 2,
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "manager", Labels: map[string]string{"app": "manager"}},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Name:           "manager",
				Image:          managerImage + ":v1.2.3@sha256:" + strings.Repeat("0", 64),
				Args:           []string{"--health-probe-bind-address=:8081"},
				Ports:          []corev1.ContainerPort{{Name: "health", ContainerPort: 8081}},
				LivenessProbe:  health,
				ReadinessProbe: health,
			}},
			TerminationGracePeriodSeconds: new(int64(5)),
		},
	}
}

func createPod(t *testing.T, ns string, pod *corev1.Pod) {
	t.Helper()
	if _, err := shared.client.CoreV1().Pods(ns).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// processOf is the process of the fake manager, once it is Ready.
func processOf(t *testing.T, ns string) testbed.PodProcess {
	t.Helper()
	awaitPod(t, ns, "manager", isReady)
	processes, err := shared.Pods(ns, "app=manager")
	if err != nil || len(processes) != 1 {
		t.Fatalf("want one process, got %v, %v", processes, err)
	}
	return processes[0]
}

func ask(ctx context.Context, p testbed.PodProcess, path string) (*http.Response, error) {
	url := fmt.Sprintf("http://127.0.0.1:%d%s", p.Ports[8081], path)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	return http.DefaultClient.Do(request)
}

func worldOf(t *testing.T, p testbed.PodProcess) world {
	t.Helper()
	response, err := ask(t.Context(), p, "/world")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var w world
	if err := json.NewDecoder(response.Body).Decode(&w); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w world) variable(name string) string {
	for _, entry := range w.Env {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// newWorldlyPod is a fake manager with variables, arguments and mounts of many
// kinds.
func newWorldlyPod() *corev1.Pod {
	pod := newManagerPod()
	container := &pod.Spec.Containers[0]
	container.Args = append(container.Args, "--webhook-cert-dir=$(CERTS)", "plain", "/etc/settings/file")
	container.Resources.Limits = corev1.ResourceList{
		corev1.ResourceMemory: resource.MustParse("64Mi"),
		corev1.ResourceCPU:    resource.MustParse("1500m"),
	}
	container.Env = []corev1.EnvVar{
		{Name: "CERTS", Value: "/etc/certs"},
		{Name: "POD", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
		{Name: "IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}},
		{Name: "MEMORY", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.memory"}}},
		{Name: "CPU", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"}}},
		{Name: "REF", Value: "$(POD) $(UNKNOWN) $$(POD)"},
	}
	container.VolumeMounts = []corev1.VolumeMount{{Name: "certs", MountPath: "/etc/certs"}, {Name: "settings", MountPath: "/etc/settings"}}
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "certs", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: "settings", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "absent"}, Optional: new(true),
		}}},
	}
	return pod
}

func TestProcessSeesTheWorldOfItsPod(t *testing.T) {
	ns := namespace(t)
	createPod(t, ns, newWorldlyPod())
	w := worldOf(t, processOf(t, ns))

	ip := getPod(t, ns, "manager").Status.PodIP
	for name, want := range map[string]string{
		"POD": "manager", "IP": ip, "MEMORY": "67108864", "CPU": "2", "REF": "manager $(UNKNOWN) $(POD)",
		"FROM_HOOK": "yes", "PATH": "", "HOSTNAME": "manager",
	} {
		if got := w.variable(name); got != want {
			t.Errorf("variable %s: want %q, got %q", name, want, got)
		}
	}
	if want := "system:serviceaccount:" + ns + ":default"; w.User != want {
		t.Errorf("want user %s, got %s", want, w.User)
	}
	if got := w.Args[1]; !strings.HasPrefix(got, "--webhook-cert-dir="+shared.Dir()) {
		t.Errorf("the mount path was not placed: %s", got)
	}
	if got := w.Args[3]; !strings.HasPrefix(got, shared.Dir()) || filepath.Base(got) != "file" || w.Args[2] != "plain" {
		t.Errorf("the arguments were not placed: %v", w.Args)
	}
}

func TestKilledProcessIsRestarted(t *testing.T) {
	ns := namespace(t)
	createPod(t, ns, newManagerPod())
	before := processOf(t, ns)
	before.Kill()
	pod := awaitPod(t, ns, "manager", func(pod *corev1.Pod) bool {
		return isReady(pod) && pod.Status.ContainerStatuses[0].RestartCount == 1
	})
	last := pod.Status.ContainerStatuses[0].LastTerminationState.Terminated
	if last == nil || last.ExitCode != 137 {
		t.Errorf("want the exit of a killed process, got %+v", last)
	}
	if after := processOf(t, ns); after.PID == before.PID {
		t.Errorf("the process is still %d", after.PID)
	}
}

func TestFailingLivenessProbeRestartsTheProcess(t *testing.T) {
	ns := namespace(t)
	createPod(t, ns, newManagerPod())
	response, err := ask(t.Context(), processOf(t, ns), "/break")
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	awaitPod(t, ns, "manager", func(pod *corev1.Pod) bool {
		return isReady(pod) && pod.Status.ContainerStatuses[0].RestartCount == 1
	})
}

func TestDeletedPodEndsBySIGTERM(t *testing.T) {
	ns := namespace(t)
	createPod(t, ns, newManagerPod())
	process := processOf(t, ns)
	if err := shared.client.CoreV1().Pods(ns).Delete(t.Context(), "manager", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitNoPod(t, ns, "manager")
	log, err := os.ReadFile(process.Log)
	if err != nil || !strings.Contains(string(log), "ended by SIGTERM") {
		t.Errorf("want a graceful end, got %q, %v", log, err)
	}
	if running, _ := shared.Pods(ns, ""); len(running) != 0 {
		t.Errorf("still running: %v", running)
	}
}

func TestPausedProcessIsKilledAfterTheGracePeriod(t *testing.T) {
	ns := namespace(t)
	pod := newManagerPod()
	pod.Spec.TerminationGracePeriodSeconds = new(int64(1))
	createPod(t, ns, pod)
	if err := processOf(t, ns).Pause(); err != nil {
		t.Fatal(err)
	}
	if err := shared.client.CoreV1().Pods(ns).Delete(t.Context(), "manager", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitNoPod(t, ns, "manager")
}

func TestPodWaitsForItsSecretAndSeesItChange(t *testing.T) {
	ns := namespace(t)
	pod := newManagerPod()
	container := &pod.Spec.Containers[0]
	container.Args = append(container.Args, "/etc/secret/key")
	container.VolumeMounts = []corev1.VolumeMount{{Name: "secret", MountPath: "/etc/secret"}}
	pod.Spec.Volumes = []corev1.Volume{{Name: "secret", VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: "late"},
	}}}
	createPod(t, ns, pod)
	awaitPod(t, ns, "manager", isCreating)

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "late"}, StringData: map[string]string{"key": "one"}}
	secrets := shared.client.CoreV1().Secrets(ns)
	if _, err := secrets.Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	file := worldOf(t, processOf(t, ns)).Args[1]
	awaitContent(t, file, "one")
	secret.StringData["key"] = "two"
	if _, err := secrets.Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitContent(t, file, "two")
	if target, err := os.Readlink(filepath.Join(filepath.Dir(file), "..data")); err != nil {
		t.Errorf("the volume should be swapped by a link: %s, %v", target, err)
	}
}

func awaitContent(t *testing.T, file, want string) {
	t.Helper()
	eventually(t, func() error {
		content, err := os.ReadFile(file)
		if err == nil && string(content) != want {
			err = fmt.Errorf("%s holds %q", file, content)
		}
		return err
	})
}
