package testbed

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/kick-dev/kick/test/testbed/internal/client"
)

// The rate of requests that clients of a testbed may make.
const (
	clientQPS   = 1000
	clientBurst = 2000
)

// RESTConfig is the access of an administrator.
func (t *Testbed) RESTConfig() *rest.Config { return t.configOf(userAdmin) }

// As is the access of somebody else, who has the rights that RBAC gives. The
// audit log names this user.
func (t *Testbed) As(user string, groups ...string) *rest.Config {
	config := t.RESTConfig()
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	return config
}

// Kubeconfig is the path of the administrator's kubeconfig.
func (t *Testbed) Kubeconfig() string { return client.Kubeconfig(t.options.Dir) }

// Kubectl runs kubectl as the administrator and returns what it prints.
func (t *Testbed) Kubectl(ctx context.Context, arguments ...string) (string, error) {
	return run(client.Command(ctx, t.options.Dir, t.options.Binaries.Kubectl, arguments...))
}

// Helm runs helm as the administrator, with settings and caches of its own, and
// returns what it prints.
func (t *Testbed) Helm(ctx context.Context, arguments ...string) (string, error) {
	return run(client.Command(ctx, t.options.Dir, t.options.Binaries.Helm, arguments...))
}

// run returns stdout; the error holds stderr.
func run(cmd *exec.Cmd) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s %s: %w: %s",
			filepath.Base(cmd.Path), strings.Join(cmd.Args[1:], " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

func (t *Testbed) configOf(user string) *rest.Config {
	return &rest.Config{
		Host:            t.server,
		BearerToken:     t.credentials.tokens[user],
		TLSClientConfig: rest.TLSClientConfig{CAData: t.credentials.caPEM},
		QPS:             clientQPS,
		Burst:           clientBurst,
		UserAgent:       "testbed-" + user,
	}
}

// kubeconfigOf is the path of the kubeconfig of one of the testbed's own users.
func (t *Testbed) kubeconfigOf(user string) string {
	return filepath.Join(t.credentials.dir, strings.ReplaceAll(user, ":", "_")+".kubeconfig")
}

func (t *Testbed) writeKubeconfigs() error {
	for user := range groupsOf {
		path := t.kubeconfigOf(user)
		if user == userAdmin {
			path = t.Kubeconfig()
		}
		if err := t.credentials.writeKubeconfig(path, user, t.server); err != nil {
			return err
		}
	}
	return nil
}
