package testbed

import (
	"fmt"
	"syscall"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kick-dev/kick/test/testbed/internal/kubelet"
)

// PodProcess is a container that runs as a process.
type PodProcess struct {
	Namespace string
	Pod       string
	Container string
	// PID is the process of the moment of the call of Pods.
	PID int
	// Ports maps the container's declared ports to ports of 127.0.0.1.
	Ports map[int32]int
	// Log is the path of its output, of all restarts.
	Log string

	signal func(syscall.Signal) error
}

// Kill sends SIGKILL to the current process of the container.
func (p PodProcess) Kill() error { return p.signal(syscall.SIGKILL) }

// Pause freezes the current process of the container.
func (p PodProcess) Pause() error { return p.signal(syscall.SIGSTOP) }

// Resume ends a Pause.
func (p PodProcess) Resume() error { return p.signal(syscall.SIGCONT) }

// Pods lists the containers that run as processes in a namespace ("" for all),
// of Pods that match a label selector ("" for all).
func (t *Testbed) Pods(namespace, selector string) ([]PodProcess, error) {
	parsed, err := labels.Parse(selector)
	if err != nil {
		return nil, fmt.Errorf("parse selector: %w", err)
	}
	var all []PodProcess
	for _, running := range t.kubelet.Running(namespace, parsed) {
		all = append(all, newPodProcess(running))
	}
	return all, nil
}

func newPodProcess(running kubelet.Running) PodProcess {
	return PodProcess{
		Namespace: running.Namespace,
		Pod:       running.Pod,
		Container: running.Container,
		PID:       running.PID,
		Ports:     running.Ports,
		Log:       running.Log,
		signal:    running.Signal,
	}
}
