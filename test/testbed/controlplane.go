package testbed

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"k8s.io/client-go/rest"
)

const (
	serviceRange        = "10.96.0.0/16"
	kubernetesServiceIP = "10.96.0.1"
	// advertiseAddress stands for the API server in the EndpointSlice of the
	// kubernetes Service. Nobody dials it; it only frees the testbed from
	// needing a network interface besides the loopback one.
	advertiseAddress = "192.0.2.1"
)

//go:embed auditpolicy.yaml
var auditPolicy []byte

func (t *Testbed) startEtcd(ctx context.Context) error {
	return t.boot(ctx, Etcd, 2, func(ports []int) launch {
		client, peer := "http://"+local(ports[0]), "http://"+local(ports[1])
		t.etcdURL = client
		return launch{
			path: t.options.Binaries.Etcd,
			args: []string{
				"--data-dir=" + filepath.Join(t.options.Dir, "etcd"),
				"--listen-client-urls=" + client,
				"--advertise-client-urls=" + client,
				"--listen-peer-urls=" + peer,
				"--initial-advertise-peer-urls=" + peer,
				"--initial-cluster=default=" + peer,
				// A testbed does not survive a crash of the machine anyway.
				"--unsafe-no-fsync",
				// The default of 2 GiB ends a benchmark of a large cluster.
				"--quota-backend-bytes=" + strconv.Itoa(8<<30),
			},
			ready: healthy(client + "/health"),
		}
	})
}

func (t *Testbed) startAPIServer(ctx context.Context) error {
	policy := t.auditPolicyFile()
	if err := os.WriteFile(policy, auditPolicy, 0o644); err != nil {
		return fmt.Errorf("write audit policy: %w", err)
	}
	if err := os.WriteFile(t.egressFile(), []byte(t.egressConfiguration()), 0o644); err != nil {
		return fmt.Errorf("write egress configuration: %w", err)
	}
	server, err := t.bootAPIServer(ctx, APIServer,
		"--audit-policy-file="+policy,
		"--audit-log-path="+t.auditLog(),
		// One file for the life of a testbed: marks in it are offsets.
		"--audit-log-maxsize=100000",
	)
	if err != nil {
		return err
	}
	t.server = server
	return t.writeKubeconfigs()
}

// StartSecondAPIServer starts another API server on the same etcd, as the component
// SecondAPIServer, and returns an administrator's access to it. Nobody else uses
// it, and what it is asked is not in the audit log. It may be called once.
func (t *Testbed) StartSecondAPIServer(ctx context.Context) (*rest.Config, error) {
	server, err := t.bootAPIServer(ctx, SecondAPIServer)
	if err != nil {
		return nil, err
	}
	config := t.RESTConfig()
	config.Host = server
	return config, nil
}

// bootAPIServer starts an API server for the first time and returns its URL.
func (t *Testbed) bootAPIServer(ctx context.Context, name string, further ...string) (string, error) {
	var server string
	err := t.boot(ctx, name, 1, func(ports []int) launch {
		url := "https://" + local(ports[0])
		server = url
		return launch{
			path:  t.options.Binaries.APIServer,
			args:  append(t.apiServerArguments(ports[0]), further...),
			ready: func(ctx context.Context) error { return t.apiServerReady(ctx, url) },
		}
	})
	return server, err
}

func (t *Testbed) auditPolicyFile() string { return filepath.Join(t.options.Dir, "audit-policy.yaml") }

func (t *Testbed) egressFile() string { return filepath.Join(t.options.Dir, "egress.yaml") }

func (t *Testbed) apiServerArguments(port int) []string {
	c := t.credentials
	return []string{
		"--etcd-servers=" + t.etcdURL,
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(port),
		"--advertise-address=" + advertiseAddress,
		"--tls-cert-file=" + c.serverCertFile(),
		"--tls-private-key-file=" + c.serverKeyFile(),
		"--client-ca-file=" + c.caFile(),
		"--token-auth-file=" + c.tokenFile(),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.serviceAccountFile(),
		"--service-account-signing-key-file=" + c.serviceAccountFile(),
		"--service-cluster-ip-range=" + serviceRange,
		"--authorization-mode=RBAC",
		"--allow-privileged=true",
		"--egress-selector-config-file=" + t.egressFile(),
		"--profiling=false",
		// Without it, a stop waits for watches that nobody ends.
		"--shutdown-watch-termination-grace-period=5s",
	}
}

func (t *Testbed) startControllerManager(ctx context.Context) error {
	return t.boot(ctx, ControllerManager, 1, func(ports []int) launch {
		kubeconfig := t.kubeconfigOf(userControllerManager)
		return launch{
			path: t.options.Binaries.ControllerManager,
			args: append(servingArguments(kubeconfig, ports[0]),
				"--service-account-private-key-file="+t.credentials.serviceAccountFile(),
				"--root-ca-file="+t.credentials.caFile(),
				// Each controller acts as its own service account, as in most
				// real clusters.
				"--use-service-account-credentials=true",
				"--controllers=*",
				// A busy machine is no lost Node.
				"--node-monitor-grace-period=5m",
				"--kube-api-qps=500",
				"--kube-api-burst=1000",
			),
			ready: healthy("https://" + local(ports[0]) + "/healthz"),
		}
	})
}

func (t *Testbed) startScheduler(ctx context.Context) error {
	return t.boot(ctx, Scheduler, 1, func(ports []int) launch {
		kubeconfig := t.kubeconfigOf(userScheduler)
		return launch{
			path: t.options.Binaries.Scheduler,
			args: append(servingArguments(kubeconfig, ports[0]),
				"--kube-api-qps=500",
				"--kube-api-burst=1000",
			),
			ready: healthy("https://" + local(ports[0]) + "/healthz"),
		}
	})
}

// servingArguments are those that the controller manager and the scheduler
// share.
func servingArguments(kubeconfig string, port int) []string {
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(port),
		"--leader-elect=false",
	}
}

// apiServerReady asks as the admin, which also proves that tokens work.
func (t *Testbed) apiServerReady(ctx context.Context, server string) error {
	config := t.configOf(userAdmin)
	config.Host = server
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	return get(ctx, client, server+"/readyz")
}
