package testbed

import (
	"fmt"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kick-dev/kick/test/testbed/internal/kubelet"
	"github.com/kick-dev/kick/test/testbed/internal/process"
)

// PodProcess is a container that runs as a process.
type PodProcess struct {
	Namespace string
	Pod       string
	Container string
	PID       int
	// Ports maps the container's declared ports to ports of 127.0.0.1.
	Ports map[int32]int
	// Log is the path of its output, of all restarts.
	Log string

	process *process.Process
}

// Kill sends SIGKILL and waits until the process is gone. The kubelet will
// restart the container as a new process.
func (p PodProcess) Kill() { p.process.Kill() }

// Pause freezes the process, so that it neither answers nor closes a
// connection.
func (p PodProcess) Pause() error { return p.process.Pause() }

// Resume ends a Pause.
func (p PodProcess) Resume() error { return p.process.Resume() }

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
		PID:       running.Process.PID(),
		Ports:     running.Ports,
		Log:       running.Log,
		process:   running.Process,
	}
}
