package kubelet

import (
	"maps"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kick-dev/kick/test/testbed/internal/process"
)

// Running is a container that was started as a process.
type Running struct {
	Namespace string
	Pod       string
	Container string
	// Ports maps container ports to loopback ports.
	Ports map[int32]int
	Log   string
	// Process is the container's process of the moment.
	Process *process.Process
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
		Ports:     maps.Clone(c.ports),
		Log:       c.logFile(),
		Process:   c.process,
	}, true
}
