package freshness

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// started dates the start of something in a Pod, which the kubelet dates by the clock of its node, so that the date is
// true by the clock of the API server: nothing in a Pod has started before the Pod was created. Where the node's clock is
// known to be ahead, that is all that is known.
func started(pod *corev1.Pod, kubelets time.Time) time.Time {
	created := pod.CreationTimestamp.Time
	if kubelets.Before(created) || clockIsAhead(pod) {
		return created
	}
	return kubelets
}

// clockIsAhead tells whether the clock of the Pod's node is shown to be ahead of the API server's: the status speaks of an
// instant that was still to come when it was last written. Both are in whole seconds, cut off, so equal ones show nothing.
func clockIsAhead(pod *corev1.Pod) bool {
	written := statusWritten(pod)
	return !written.IsZero() && newestInStatus(&pod.Status).After(written)
}

// statusWritten is when the API server last stored a status of the Pod, zero if that is not known.
func statusWritten(pod *corev1.Pod) time.Time {
	var last time.Time
	for i := range pod.ManagedFields {
		entry := &pod.ManagedFields[i]
		if entry.Subresource == "status" && entry.Time != nil {
			last = later(last, entry.Time.Time)
		}
	}
	return last
}

// newestInStatus is the newest instant that a kubelet has put into a status.
func newestInStatus(status *corev1.PodStatus) time.Time {
	var newest time.Time
	for i := range status.Conditions {
		switch status.Conditions[i].Type {
		case corev1.PodReady, corev1.ContainersReady, corev1.PodInitialized, corev1.PodReadyToStartContainers:
			newest = later(newest, status.Conditions[i].LastTransitionTime.Time)
		default: // These are dated by others.
		}
	}
	for _, statuses := range [][]corev1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses} {
		for i := range statuses {
			newest = later(newest, newestIn(&statuses[i].State))
		}
	}
	return newest
}

func newestIn(state *corev1.ContainerState) time.Time {
	switch {
	case state.Running != nil:
		return state.Running.StartedAt.Time
	case state.Terminated != nil:
		return later(state.Terminated.StartedAt.Time, state.Terminated.FinishedAt.Time)
	default:
		return time.Time{}
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
