package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/kick-dev/kick/test/testbed/internal/egress"
)

// lateResolver refuses until the resolver that it stands for is set: the API
// server needs the proxy, and the resolver needs the API server.
type lateResolver struct {
	resolver atomic.Pointer[egress.Services]
}

func (l *lateResolver) set(resolver *egress.Services) { l.resolver.Store(resolver) }

func (l *lateResolver) Resolve(host string, port int) (string, error) {
	resolver := l.resolver.Load()
	if resolver == nil {
		return "", errors.New("the testbed is still starting")
	}
	return resolver.Resolve(host, port)
}

func (t *Testbed) listenForEgress(context.Context) error {
	var err error
	if t.socketDir, err = os.MkdirTemp("", "testbed-"); err != nil {
		return fmt.Errorf("create folder for the egress socket: %w", err)
	}
	t.proxy, err = egress.Listen(t.egressSocket(), &t.resolver)
	return err
}

func (t *Testbed) egressSocket() string { return filepath.Join(t.socketDir, "egress.sock") }

func (t *Testbed) egressConfiguration() string {
	return fmt.Sprintf(`apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport:
      uds:
        udsName: %s
`, t.egressSocket())
}
