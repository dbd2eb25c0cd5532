package kubelet

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// statusWriter writes the status of one Pod to the API server, until what is
// stored is what the worker sees.
type statusWriter struct {
	worker  *worker
	changed chan struct{}

	mu sync.Mutex
	// problem is why the Pod cannot start yet.
	problem string
	// stored is the status that was written last.
	stored *corev1.PodStatus
}

func newStatusWriter(w *worker) *statusWriter {
	s := &statusWriter{worker: w, changed: make(chan struct{}, 1)}
	s.wake()
	return s
}

// wake has the status written soon.
func (s *statusWriter) wake() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

func (s *statusWriter) setProblem(problem string) {
	s.mu.Lock()
	s.problem = problem
	s.mu.Unlock()
	s.wake()
}

// run writes until ctx is done. It survives an API server that is away.
func (s *statusWriter) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.changed:
		}
		if ignoreGone(s.write(ctx)) != nil {
			s.wake()
			select {
			case <-ctx.Done():
			case <-time.After(retryInterval):
			}
		}
	}
}

// write stores the current status, as a difference to what was stored before.
func (s *statusWriter) write(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	pod := s.worker.pod.Load()
	before := s.stored
	if before == nil {
		before = &pod.Status
	}
	after := s.worker.observed(before, s.problem)
	if equality.Semantic.DeepEqual(before, after) {
		return nil
	}
	patch, err := statusPatch(pod.UID, before, after)
	if err != nil {
		return fmt.Errorf("compute status: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err = s.worker.kubelet.Client.CoreV1().Pods(pod.Namespace).
		Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	s.stored = after
	return nil
}

// statusPatch holds the UID, so that it cannot hit a successor of the same
// name.
func statusPatch(uid types.UID, before, after *corev1.PodStatus) ([]byte, error) {
	old, err := json.Marshal(corev1.Pod{Status: *before})
	if err != nil {
		return nil, err
	}
	wanted, err := json.Marshal(corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}, Status: *after})
	if err != nil {
		return nil, err
	}
	return strategicpatch.CreateTwoWayMergePatch(old, wanted, corev1.Pod{})
}

// observed is the status of the Pod now. Conditions of others are kept.
func (w *worker) observed(before *corev1.PodStatus, problem string) *corev1.PodStatus {
	pod := w.pod.Load()
	status := before.DeepCopy()
	status.StartTime = &metav1.Time{Time: w.began.Truncate(time.Second)}
	status.ContainerStatuses = nil
	for _, c := range w.containers {
		status.ContainerStatuses = append(status.ContainerStatuses, c.report())
	}
	status.InitContainerStatuses = w.initContainers()
	status.Phase = phaseOf(status.ContainerStatuses)
	if w.mounted.Load() {
		status.PodIP, status.PodIPs = w.ip, []corev1.PodIP{{IP: w.ip}}
		problem = ""
	}
	ready := allReady(status.ContainerStatuses)
	setCondition(status, corev1.PodReadyToStartContainers, w.mounted.Load(), "", problem)
	setCondition(status, corev1.PodInitialized, w.mounted.Load() || len(pod.Spec.InitContainers) == 0,
		"ContainersNotInitialized", "")
	setCondition(status, corev1.ContainersReady, ready, "ContainersNotReady", "")
	setCondition(status, corev1.PodReady, ready && gatesOpen(pod), "ContainersNotReady", "")
	return status
}

// initContainers are not run: they have completed, or run as sidecars, as soon
// as the volumes are there.
func (w *worker) initContainers() []corev1.ContainerStatus {
	var all []corev1.ContainerStatus
	began := metav1.NewTime(w.began.Truncate(time.Second))
	for _, spec := range w.pod.Load().Spec.InitContainers {
		status := corev1.ContainerStatus{Name: spec.Name, Image: spec.Image, Started: new(false)}
		sidecar := spec.RestartPolicy != nil && *spec.RestartPolicy == corev1.ContainerRestartPolicyAlways
		switch {
		case !w.mounted.Load():
			status.State.Waiting = &corev1.ContainerStateWaiting{Reason: w.waitingReason()}
		case sidecar:
			status.State.Running = &corev1.ContainerStateRunning{StartedAt: began}
			status.Ready, status.Started = true, new(true)
		default:
			status.State.Terminated = &corev1.ContainerStateTerminated{
				Reason: "Completed", StartedAt: began, FinishedAt: began,
			}
			status.Ready = true
		}
		all = append(all, status)
	}
	return all
}

// phaseOf follows the kubelet: Pending until all containers have started once,
// over when all have ended for good.
func phaseOf(statuses []corev1.ContainerStatus) corev1.PodPhase {
	ended, failed := 0, false
	for _, status := range statuses {
		if status.State.Waiting != nil && status.LastTerminationState.Terminated == nil {
			return corev1.PodPending
		}
		if terminated := status.State.Terminated; terminated != nil {
			ended++
			failed = failed || terminated.ExitCode != 0
		}
	}
	switch {
	case ended < len(statuses):
		return corev1.PodRunning
	case failed:
		return corev1.PodFailed
	default:
		return corev1.PodSucceeded
	}
}

func allReady(statuses []corev1.ContainerStatus) bool {
	for _, status := range statuses {
		if !status.Ready {
			return false
		}
	}
	return true
}

// gatesOpen tells whether others have set the conditions that the Pod names as
// readiness gates.
func gatesOpen(pod *corev1.Pod) bool {
	for _, gate := range pod.Spec.ReadinessGates {
		open := false
		for _, condition := range pod.Status.Conditions {
			open = open || condition.Type == gate.ConditionType && condition.Status == corev1.ConditionTrue
		}
		if !open {
			return false
		}
	}
	return true
}

// setCondition sets a condition; reason and message are for the false case.
func setCondition(status *corev1.PodStatus, kind corev1.PodConditionType, ok bool, reason, message string) {
	wanted := corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue}
	if !ok {
		wanted.Status, wanted.Reason, wanted.Message = corev1.ConditionFalse, reason, message
	}
	wanted.LastTransitionTime = metav1.NewTime(time.Now().Truncate(time.Second))
	for i := range status.Conditions {
		current := &status.Conditions[i]
		if current.Type != kind {
			continue
		}
		if current.Status == wanted.Status {
			wanted.LastTransitionTime = current.LastTransitionTime
		}
		*current = wanted
		return
	}
	status.Conditions = append(status.Conditions, wanted)
}
