package kubelet

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kick-dev/kick/test/testbed/internal/process"
)

const (
	firstBackoff   = time.Second
	longestBackoff = 10 * time.Second
	// healthyAfter is how long a container has to run for its next restart to
	// be quick again.
	healthyAfter = 30 * time.Second
)

// container runs one container of a Pod, and restarts it as its Pod says. A
// container without an executable is only said to run.
type container struct {
	worker     *worker
	spec       corev1.Container
	executable string
	ports      map[int32]int

	mu       sync.Mutex
	process  *process.Process
	state    corev1.ContainerState
	last     corev1.ContainerState
	restarts int32
	started  bool
	ready    bool
}

func newContainer(w *worker, spec corev1.Container, executable string) *container {
	c := &container{worker: w, spec: spec, executable: executable, ports: map[int32]int{}}
	c.state.Waiting = &corev1.ContainerStateWaiting{Reason: w.waitingReason()}
	return c
}

func (c *container) logFile() string {
	pod := c.worker.pod.Load()
	name := fmt.Sprintf("%s_%s_%s.log", pod.Namespace, pod.Name, c.spec.Name)
	return filepath.Join(c.worker.kubelet.LogDir, name)
}

// run blocks until the container has ended for good.
func (c *container) run(ctx context.Context) {
	if c.executable == "" {
		c.pretend()
		return
	}
	defer c.releasePorts()
	backoff := firstBackoff
	for !c.worker.isEnding() {
		began := time.Now()
		delay := retryInterval
		if err := c.launch(); err != nil {
			c.wait("CreateContainerConfigError", err.Error())
		} else {
			c.watch(ctx)
			if !c.restartsAfterExit() {
				return
			}
			if time.Since(began) > healthyAfter {
				backoff = firstBackoff
			}
			delay, backoff = backoff, min(2*backoff, longestBackoff)
		}
		select {
		case <-c.worker.ending:
			return
		case <-time.After(delay):
		}
	}
}

// pretend plays a container that has no executable.
func (c *container) pretend() {
	c.change(func() {
		c.state = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
		c.started, c.ready = true, true
	})
	<-c.worker.ending
	c.change(func() {
		now := metav1.Now()
		c.state = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			Reason: "Completed", StartedAt: c.state.Running.StartedAt, FinishedAt: now,
		}}
		c.started, c.ready = false, false
	})
}

// launch starts the process.
func (c *container) launch() error {
	spec, err := c.processSpec()
	if err != nil {
		return err
	}
	started, err := c.worker.kubelet.Spawner.Start(spec)
	if err != nil {
		return err
	}
	c.change(func() {
		if c.state.Terminated != nil || c.last.Terminated != nil {
			c.restarts++
		}
		c.process = started
		c.state = corev1.ContainerState{Running: &corev1.ContainerStateRunning{
			StartedAt: metav1.NewTime(started.Started()),
		}}
	})
	return nil
}

// watch probes the process until it ends, or ends it when a probe or the Pod
// says so.
func (c *container) watch(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	unhealthy := c.probe(ctx)
	select {
	case <-c.process.Done():
	case <-unhealthy:
		c.process.Stop(c.ownGrace())
	case <-c.worker.ending:
		c.process.Stop(c.worker.grace())
	}
	cancel()
	c.exited(c.process.Exit())
}

// ownGrace is the grace period of a restart after a failed probe.
func (c *container) ownGrace() time.Duration {
	if seconds := c.worker.pod.Load().Spec.TerminationGracePeriodSeconds; seconds != nil {
		return time.Duration(*seconds) * time.Second
	}
	return corev1.DefaultTerminationGracePeriodSeconds * time.Second
}

func (c *container) exited(exit process.Exit) {
	terminated := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode:   int32(exit.Code),
		Reason:     "Completed",
		StartedAt:  c.state.Running.StartedAt,
		FinishedAt: metav1.NewTime(exit.At),
	}}
	if exit.Code != 0 {
		terminated.Terminated.Reason = "Error"
	}
	restarts := c.restartsAfter(exit.Code)
	c.change(func() {
		c.started, c.ready = false, false
		c.state = terminated
		if restarts {
			c.last = terminated
			c.state = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
				Reason:  "CrashLoopBackOff",
				Message: "back-off restarting failed container " + c.spec.Name,
			}}
		}
	})
}

// restartsAfter tells whether the container is started again after an exit.
func (c *container) restartsAfter(code int) bool {
	if c.worker.isEnding() {
		return false
	}
	switch c.worker.pod.Load().Spec.RestartPolicy {
	case corev1.RestartPolicyNever:
		return false
	case corev1.RestartPolicyOnFailure:
		return code != 0
	default:
		return true
	}
}

func (c *container) restartsAfterExit() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.Waiting != nil
}

// wait says why the container does not run.
func (c *container) wait(reason, message string) {
	c.change(func() {
		c.state = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	})
}

// change applies a change of state and has it written to the Pod's status.
func (c *container) change(apply func()) {
	c.mu.Lock()
	apply()
	c.mu.Unlock()
	c.worker.status.wake()
}

// report is the container's part of the Pod's status.
func (c *container) report() corev1.ContainerStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	return corev1.ContainerStatus{
		Name:                 c.spec.Name,
		Image:                c.spec.Image,
		State:                *c.state.DeepCopy(),
		LastTerminationState: *c.last.DeepCopy(),
		RestartCount:         c.restarts,
		Started:              new(c.started),
		Ready:                c.ready,
	}
}
