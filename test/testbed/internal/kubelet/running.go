package kubelet

import (
	"maps"
	"syscall"

	"k8s.io/apimachinery/pkg/labels"
)

// Running is a container that was started as a process.
type Running struct {
	Namespace string
	Pod       string
	Container string
	PID       int
	// Ports maps container ports to loopback ports.
	Ports map[int32]int
	Log   string
	// Signal sends a signal to the container's process of the moment.
	Signal func(syscall.Signal) error
}

// Running lists the containers of Pods that have a process now.
func (k *Kubelet) Running(namespace string, selector labels.Selector) []Running {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []Running
	for _, w := range k.workers {
		pod := w.pod.Load()
		if namespace != "" && namespace != pod.Namespace || !selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		for _, c := range w.containers {
			if running, ok := c.running(); ok {
				all = append(all, running)
			}
		}
	}
	return all
}

func (c *container) running() (Running, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process == nil || !c.process.Alive() {
		return Running{}, false
	}
	pod := c.worker.pod.Load()
	return Running{
		Namespace: pod.Namespace,
		Pod:       pod.Name,
		Container: c.spec.Name,
		PID:       c.process.PID(),
		Ports:     maps.Clone(c.ports),
		Log:       c.logFile(),
		Signal:    c.signal,
	}, true
}
