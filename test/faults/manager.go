package faults

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Manager is one replica of the manager: a process with a proxy of its own.
type Manager struct {
	Proxy *Proxy
	// Log is the path of its output, of all its lives.
	Log string

	path, dir, probes, metrics string
	arguments, environment     []string

	mu      sync.Mutex
	process *exec.Cmd
	ended   chan struct{}
}

// ManagerOptions say how to run a replica.
type ManagerOptions struct {
	Name, Path, Dir string
	// Server is the access to the API server; Token that of the manager's service account.
	Server *rest.Config
	Token  string
	// Arguments beside those about ports and paths.
	Arguments   []string
	Environment []string
}

// NewManager prepares a replica, which Start then runs.
func NewManager(options ManagerOptions) (*Manager, error) {
	proxy, err := NewProxy(options.Server)
	if err != nil {
		return nil, err
	}
	m := &Manager{
		Proxy: proxy, Log: filepath.Join(options.Dir, options.Name+".log"),
		path: options.Path, dir: filepath.Join(options.Dir, options.Name),
	}
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		return nil, err
	}
	if err := writePair(m.dir); err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(m.dir, "kubeconfig")
	if err := writeKubeconfig(kubeconfig, proxy, options.Token); err != nil {
		return nil, err
	}
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	m.probes, m.metrics = fmt.Sprintf("127.0.0.1:%d", ports[0]), fmt.Sprintf("127.0.0.1:%d", ports[1])
	m.arguments = append([]string{
		"--namespace=" + ownNamespace, "--zap-log-level=debug", "--kube-api-qps=500", "--kube-api-burst=1000",
		"--health-probe-bind-address=" + m.probes, "--metrics-bind-address=" + m.metrics,
		fmt.Sprintf("--webhook-port=%d", ports[2]), "--webhook-cert-dir=" + m.dir,
	}, options.Arguments...)
	m.environment = append([]string{
		"KUBECONFIG=" + kubeconfig, "HOME=" + m.dir, "TMPDIR=" + m.dir, "PATH=" + os.Getenv("PATH"),
	}, options.Environment...)
	proxy.KillWith(m.Kill)
	return m, nil
}

func writeKubeconfig(path string, proxy *Proxy, token string) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: proxy.URL, CertificateAuthorityData: proxy.Certificate}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u", Namespace: ownNamespace}
	config.CurrentContext = "c"
	return clientcmd.WriteToFile(*config, path)
}

// freePorts finds ports of the loopback interface that nobody has.
func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a port: %w", err)
		}
		defer func() { _ = listener.Close() }()
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// Start runs the manager, if it does not run.
func (m *Manager) Start() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.process != nil {
		return nil
	}
	output, err := os.OpenFile(m.Log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = output.Close() }()
	process := exec.Command(m.path, m.arguments...)
	process.Env, process.Dir, process.Stdout, process.Stderr = m.environment, m.dir, output, output
	if err := launch(process); err != nil {
		return fmt.Errorf("start the manager: %w", err)
	}
	ended := make(chan struct{})
	m.process, m.ended = process, ended
	go func() {
		_ = process.Wait()
		m.mu.Lock()
		if m.process == process {
			m.process = nil
		}
		m.mu.Unlock()
		close(ended)
	}()
	return nil
}

// Kill ends the process with SIGKILL and returns when it is gone.
func (m *Manager) Kill() { m.end(syscall.SIGKILL) }

// Stop ends the process with SIGTERM and returns when it is gone.
func (m *Manager) Stop() { m.end(syscall.SIGTERM) }

func (m *Manager) end(signal syscall.Signal) {
	m.mu.Lock()
	process, ended := m.process, m.ended
	m.mu.Unlock()
	if process == nil {
		return
	}
	_ = process.Process.Signal(syscall.SIGCONT)
	_ = process.Process.Signal(signal)
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		_ = process.Process.Kill()
		<-ended
	}
}

// Signal sends a signal to the process.
func (m *Manager) Signal(signal syscall.Signal) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.process == nil {
		return os.ErrProcessDone
	}
	return m.process.Process.Signal(signal)
}

// Running tells whether the process lives; a stopped one does.
func (m *Manager) Running() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.process != nil
}

// Ready asks the readiness probe and returns why it is not, if so.
func (m *Manager) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.probes+"/readyz?verbose=1", http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(response.Body)
		return fmt.Errorf("not ready: %s", body)
	}
	return nil
}

// Logged returns what the manager has written since an offset that LogSize gave.
func (m *Manager) Logged(since int64) string {
	content, err := os.ReadFile(m.Log)
	if err != nil || int64(len(content)) < since {
		return ""
	}
	return string(content[since:])
}

// LogSize is the present length of the log.
func (m *Manager) LogSize() int64 {
	info, err := os.Stat(m.Log)
	if err != nil {
		return 0
	}
	return info.Size()
}

// Panicked returns the first panic or data race in the log, if there is one.
func (m *Manager) Panicked() string {
	for line := range strings.Lines(m.Logged(0)) {
		if strings.Contains(line, "panic:") || strings.Contains(line, "Observed a panic") || strings.Contains(line, "DATA RACE") {
			return line
		}
	}
	return ""
}

// Close ends the process and its proxy.
func (m *Manager) Close() {
	m.Kill()
	m.Proxy.Close()
}
