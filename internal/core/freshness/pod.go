package freshness

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/deps"
)

// volumeLag is how long the content of a volume may trail its source. The kubelet refreshes volumes in its sync loop:
// once a minute, with jitter, on top of the delay of its own cache.
const volumeLag = 2 * time.Minute

// Pod is the evidence of one live Pod.
type Pod struct {
	Name string
	// StartedAt is when the kubelet took the Pod up, or when the Pod was created where the kubelet's clock cannot be right.
	StartedAt time.Time
	// Containers are those that have read their sources.
	Containers []Container
	// References are the sources that the Pod itself consumes. Those of the present template would not do: a Pod of an
	// older one stays where the strategy is OnDelete or a partition keeps it.
	References []deps.Reference
}

// Container is the run of a container in a Pod, in whole seconds.
type Container struct {
	Name string
	// StartedAt is the start of the run, or the creation of the Pod where the kubelet's clock cannot be right.
	StartedAt time.Time
	// Restarted is true for a run that is not the first one in its Pod.
	Restarted bool
}

// PodOf extracts the evidence of a Pod. It reports false for a Pod that runs nothing: one that is finished, or being
// deleted.
func PodOf(pod *corev1.Pod) (Pod, bool) {
	if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return Pod{}, false
	}
	evidence := Pod{Name: pod.Name, StartedAt: pod.CreationTimestamp.Time, References: deps.Extract(&pod.Spec)}
	if pod.Status.StartTime != nil {
		evidence.StartedAt = started(pod, pod.Status.StartTime.Time)
	}
	for i := range pod.Status.InitContainerStatuses {
		status := &pod.Status.InitContainerStatuses[i]
		// What a finished init container has read lives on in what it has left to the others.
		if status.State.Terminated != nil {
			evidence.add(status, started(pod, status.State.Terminated.StartedAt.Time))
		}
		evidence.addRunning(pod, status)
	}
	for i := range pod.Status.ContainerStatuses {
		// A container that waits or has exited reads its sources when it starts again.
		evidence.addRunning(pod, &pod.Status.ContainerStatuses[i])
	}
	return evidence, true
}

func (p *Pod) addRunning(pod *corev1.Pod, status *corev1.ContainerStatus) {
	if status.State.Running != nil {
		p.add(status, started(pod, status.State.Running.StartedAt.Time))
	}
}

func (p *Pod) add(status *corev1.ContainerStatus, startedAt time.Time) {
	p.Containers = append(p.Containers, Container{
		Name:      status.Name,
		StartedAt: startedAt,
		Restarted: status.RestartCount > 0,
	})
}

// readBefore tells whether some container may have read the source before the instant, and not since.
func (p *Pod) readBefore(source deps.Source, at time.Time) bool {
	return slices.ContainsFunc(p.readersOf(source), func(reader deps.Reader) bool {
		return slices.ContainsFunc(p.boundsFor(reader), at.After)
	})
}

func (p *Pod) readersOf(source deps.Source) []deps.Reader {
	if source.Kind == v1alpha1.Manual {
		return []deps.Reader{{}} // What a person asks for, every container takes up at its start.
	}
	for i := range p.References {
		if p.References[i].Source == source {
			return p.References[i].Readers
		}
	}
	return nil
}

// boundsFor returns, for each run of the reading container in the Pod, the latest instant as of which it provably has
// read its source.
func (p *Pod) boundsFor(reader deps.Reader) []time.Time {
	var bounds []time.Time
	for _, container := range p.readBy(reader) {
		bounds = append(bounds, p.bound(container, reader.Channel))
	}
	return bounds
}

// readBy returns the runs of the reading container in the Pod.
func (p *Pod) readBy(reader deps.Reader) []Container {
	var runs []Container
	for _, container := range p.Containers {
		if reader.Container == "" || reader.Container == container.Name {
			runs = append(runs, container)
		}
	}
	return runs
}

// bound is the start of the container, which reads its environment then. A volume is written before the first start;
// a later run of the container may find it not yet refreshed.
func (p *Pod) bound(container Container, channel deps.Channel) time.Time {
	if channel == deps.Environment || !container.Restarted {
		return container.StartedAt
	}
	if refreshed := container.StartedAt.Add(-volumeLag); refreshed.After(p.StartedAt) {
		return refreshed
	}
	return p.StartedAt
}
