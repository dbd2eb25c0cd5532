package testbed_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kick-dev/kick/test/testbed"
)

// managerImage is the repository of the fake manager's image.
const managerImage = "registry.example/team/manager"

// shared is the testbed that most tests use, each in a Namespace of its own.
var shared struct {
	*testbed.Testbed
	client   kubernetes.Interface
	binaries testbed.Binaries
	// manager and command are the executables of the fake manager and of the
	// testbed command.
	manager string
	command string
}

func TestMain(m *testing.M) {
	os.Exit(runWithTestbed(m))
}

func runWithTestbed(m *testing.M) int {
	dir, err := os.MkdirTemp("", "testbed-test-")
	if err != nil {
		return fail(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx := context.Background()
	if err := buildExecutables(ctx, dir); err != nil {
		return fail(err)
	}
	shared.Testbed, err = testbed.Start(ctx, testbed.Options{
		Dir:         filepath.Join(dir, "shared"),
		Binaries:    shared.binaries,
		CertManager: true,
		Images:      map[string]string{managerImage: shared.manager},
		PodHook:     func(_ *corev1.Pod, _ string, launch *testbed.PodLaunch) { launch.Env["FROM_HOOK"] = "yes" },
		Out:         os.Stdout,
	})
	if err != nil {
		return fail(err)
	}
	defer func() { _ = shared.Stop(ctx) }()
	if shared.client, err = kubernetes.NewForConfig(shared.RESTConfig()); err != nil {
		return fail(err)
	}
	return m.Run()
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

func buildExecutables(ctx context.Context, dir string) error {
	var err error
	if shared.binaries, err = testbed.Build(ctx, testbed.BuildOptions{Out: os.Stdout}); err != nil {
		return err
	}
	shared.manager = filepath.Join(dir, "manager")
	shared.command = filepath.Join(dir, "testbed")
	for output, source := range map[string]string{
		shared.manager: "./testdata/manager",
		shared.command: "./cmd/testbed",
	} {
		if out, err := exec.Command("go", "build", "-o", output, source).CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w: %s", source, err, out)
		}
	}
	return nil
}

// patience is for a busy machine; everything is polled.
const patience = 60 * time.Second

// eventually fails the test when check goes on returning an error.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %v", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// namespace creates a Namespace for one test.
func namespace(t *testing.T) string {
	t.Helper()
	created, err := shared.client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = shared.client.CoreV1().Namespaces().Delete(context.Background(), created.Name, metav1.DeleteOptions{})
	})
	// Pods are refused until their Namespace has a service account.
	eventually(t, func() error {
		_, err := shared.client.CoreV1().ServiceAccounts(created.Name).Get(t.Context(), "default", metav1.GetOptions{})
		return err
	})
	return created.Name
}

// getPod returns a Pod as it is now.
func getPod(t *testing.T, namespace, name string) *corev1.Pod {
	t.Helper()
	pod, err := shared.client.CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

// conditionOf is the status of a condition, or empty.
func conditionOf(pod *corev1.Pod, kind corev1.PodConditionType) corev1.ConditionStatus {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == kind {
			return condition.Status
		}
	}
	return ""
}
