package faults

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/test/testbed"
)

const (
	ownNamespace = "kick-system"
	kickUser     = "system:serviceaccount:" + ownNamespace + ":kick"
)

// The control plane that all tests share, an administrator's client to it, and the token of the manager. Each test runs
// managers of its own, one test at a time.
var (
	bed   *testbed.Testbed
	k8s   client.Client
	token string
	// logs is the folder of the managers' output, kept when a test fails.
	logs string
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "kick-faults-")
	if err != nil {
		return giveUp(err)
	}
	if err := boot(ctx, dir); err != nil {
		return giveUp(err)
	}
	code := m.Run()
	_ = bed.Stop(ctx)
	if code != 0 {
		fmt.Fprintln(os.Stderr, "logs of the failed run:", dir)
		return code
	}
	_ = os.RemoveAll(dir)
	return code
}

func giveUp(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

func boot(ctx context.Context, dir string) error {
	logs = filepath.Join(dir, "managers")
	if err := os.MkdirAll(logs, 0o700); err != nil {
		return err
	}
	binaries, err := testbed.Build(ctx, testbed.BuildOptions{Out: os.Stdout})
	if err != nil {
		return err
	}
	bed, err = testbed.Start(ctx, testbed.Options{Dir: filepath.Join(dir, "bed"), Binaries: binaries, Stages: []string{wrongNode}, Out: os.Stdout})
	if err != nil {
		return err
	}
	if err := v1alpha1.AddToScheme(clientgoscheme.Scheme); err != nil {
		return err
	}
	if k8s, err = client.New(bed.RESTConfig(), client.Options{Scheme: clientgoscheme.Scheme}); err != nil {
		return err
	}
	return install(ctx)
}

// clockAnnotation of a Pod says by how much the clock of its node is wrong.
const clockAnnotation = "faults.kick.dev/clock"

// wrongNode is a kubelet with such a clock.
const wrongNode = `apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata:
  name: wrong-node
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchExpressions:
    - {key: .metadata.deletionTimestamp, operator: DoesNotExist}
    - {key: '.metadata.annotations["` + clockAnnotation + `"]', operator: Exists}
    - {key: '.status.containerStatuses | length > 0', operator: In, values: ["true"]}
    - {key: .status.phase, operator: In, values: [Pending]}
  next:
    statusTemplate: |
      {{ $now := dateInZone "2006-01-02T15:04:05Z" (dateModify (index .metadata.annotations "` + clockAnnotation + `") now) "UTC" }}
      phase: Running
      startTime: {{ $now | Quote }}
      conditions:
      {{ range list "PodReadyToStartContainers" "Initialized" "ContainersReady" "Ready" }}
      - {type: {{ . }}, status: "True", lastTransitionTime: {{ $now | Quote }}}
      {{ end }}
      containerStatuses:
      {{ range .spec.containers }}
      - image: {{ .image | Quote }}
        imageID: ""
        name: {{ .name | Quote }}
        ready: true
        started: true
        restartCount: 0
        state: {running: {startedAt: {{ $now | Quote }}}}
      {{ end }}
`

// install gives the manager its API and its rights, as the chart does, but no webhook.
func install(ctx context.Context) error {
	meta := metav1.ObjectMeta{Namespace: ownNamespace, Name: "kick"}
	account := &corev1.ServiceAccount{ObjectMeta: meta}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ownNamespace, Name: "kick"}}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ownNamespace}},
		account,
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "kick"}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: roleName},
		},
		&rbacv1.RoleBinding{
			ObjectMeta: meta, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: roleName},
		},
	} {
		if err := k8s.Create(ctx, object); err != nil {
			return fmt.Errorf("install: %w", err)
		}
	}
	if output, err := bed.Kubectl(ctx, "apply", "-f", "../../config/crd/bases", "-f", "../../config/rbac"); err != nil {
		return fmt.Errorf("install: %w: %s", err, output)
	}
	if output, err := bed.Kubectl(ctx, "wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"); err != nil {
		return fmt.Errorf("install: %w: %s", err, output)
	}
	var err error
	token, err = tokenOf(ctx, account)
	return err
}

// tokenOf lets a manager act as a service account.
func tokenOf(ctx context.Context, account *corev1.ServiceAccount) (string, error) {
	life := int64((8 * time.Hour).Seconds())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &life}}
	if err := k8s.SubResource("token").Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("ask for a token of %s: %w", account.Name, err)
	}
	return request.Status.Token, nil
}

// roleName is that of the manager's Role and of its ClusterRole.
const roleName = "kick-manager"

// newReplica prepares a manager for one test, and starts it.
func newReplica(t *testing.T, name string, arguments ...string) *Manager {
	t.Helper()
	return newReplicaAs(t, token, name, arguments...)
}

// newReplicaAs is newReplica with the rights of another account.
func newReplicaAs(t *testing.T, token, name string, arguments ...string) *Manager {
	t.Helper()
	m := prepare(t, token, name, arguments...)
	must(t, m.Start())
	return m
}

// prepare makes a manager for one test, which does not run yet.
func prepare(t *testing.T, token, name string, arguments ...string) *Manager {
	t.Helper()
	path, err := filepath.Abs("../../bin/manager-faults")
	must(t, err)
	if _, err := os.Stat(path); err != nil {
		t.Fatal("run `make faults`, which builds bin/manager-faults:", err)
	}
	m, err := NewManager(ManagerOptions{
		Name: strings.ReplaceAll(t.Name(), "/", "-") + "-" + name, Path: path, Dir: logs, Server: bed.RESTConfig(), Token: token, Arguments: arguments,
	})
	must(t, err)
	t.Cleanup(func() {
		m.Close()
		if line := m.Panicked(); line != "" {
			t.Error("the manager panicked:", line)
		}
	})
	return m
}

// alone starts the only manager of a test.
func alone(t *testing.T, arguments ...string) *Manager {
	t.Helper()
	return newReplica(t, "manager", append([]string{"--leader-elect=false"}, arguments...)...)
}

// full tells whether every case is to be run, and not a sample.
func full() bool { return os.Getenv("KICK_TEST_FULL") != "" }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// patience ends a test that has failed; nothing is asserted about time.
const patience = 3 * time.Minute

// eventually fails the test when a check goes on returning an error.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	must(t, poll(t.Context(), patience, check))
}

func poll(ctx context.Context, limit time.Duration, check func() error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not in time: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
