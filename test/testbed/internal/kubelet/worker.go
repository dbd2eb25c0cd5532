package kubelet

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// retryInterval is the time between two attempts of what waits for
	// something else: a missing Secret, or an API server that is away.
	retryInterval = 500 * time.Millisecond
	// requestTimeout bounds a request to an API server that does not answer.
	requestTimeout = 10 * time.Second
	// refreshInterval is how often mounted Secrets and ConfigMaps follow their
	// objects.
	refreshInterval = 500 * time.Millisecond
	// closeGrace is what processes get to end when the testbed stops.
	closeGrace = 3 * time.Second
)

// worker runs one Pod from its first sight to its removal.
type worker struct {
	kubelet *Kubelet
	pod     atomic.Pointer[corev1.Pod]
	ip      string
	dir     string
	began   time.Time

	volumes    *volumes
	containers []*container
	status     *statusWriter

	// ending is closed when the containers have to stop.
	ending   chan struct{}
	end      sync.Once
	vanished atomic.Bool
	mounted  atomic.Bool
	endGrace atomic.Int64
}

func newWorker(k *Kubelet, pod *corev1.Pod) *worker {
	w := &worker{
		kubelet: k,
		ip:      k.addresses.assign(),
		dir:     filepath.Join(k.Dir, string(pod.UID)),
		began:   time.Now(),
		ending:  make(chan struct{}),
	}
	w.pod.Store(pod)
	w.volumes = newVolumes(k, filepath.Join(w.dir, "volumes"), w.ip)
	for _, spec := range pod.Spec.Containers {
		executable, _ := k.executable(spec.Image)
		w.containers = append(w.containers, newContainer(w, spec, executable))
	}
	w.status = newStatusWriter(w)
	return w
}

// update is called with each new version of the Pod.
func (w *worker) update(pod *corev1.Pod) {
	w.pod.Store(pod)
	if pod.DeletionTimestamp == nil {
		w.status.wake()
		return
	}
	grace := time.Duration(0)
	if seconds := pod.DeletionGracePeriodSeconds; seconds != nil {
		grace = time.Duration(*seconds) * time.Second
	}
	w.stop(grace)
}

// vanish is called when the Pod was removed under the worker's feet.
func (w *worker) vanish() {
	w.vanished.Store(true)
	w.stop(0)
}

// stop ends the containers; the grace period of the first call counts.
func (w *worker) stop(grace time.Duration) {
	w.end.Do(func() {
		w.endGrace.Store(int64(grace))
		close(w.ending)
	})
}

func (w *worker) isEnding() bool {
	select {
	case <-w.ending:
		return true
	default:
		return false
	}
}

// grace is what containers get to end between SIGTERM and SIGKILL.
func (w *worker) grace() time.Duration { return time.Duration(w.endGrace.Load()) }

func (w *worker) run(ctx context.Context) {
	defer w.kubelet.addresses.release(w.ip)
	release := context.AfterFunc(ctx, func() { w.stop(closeGrace) })
	defer release()

	var statuses sync.WaitGroup
	statusCtx, stopStatus := context.WithCancel(ctx)
	statuses.Go(func() { w.status.run(statusCtx) })
	if w.prepare(ctx) {
		w.play(ctx)
	}
	stopStatus()
	statuses.Wait()
	w.finish(ctx)
}

// prepare creates folders, ports and volumes. It waits for whatever the Pod
// mounts, and returns false when the Pod ended before all of it was there.
func (w *worker) prepare(ctx context.Context) bool {
	for {
		err := w.mount(ctx)
		if err == nil {
			w.mounted.Store(true)
			w.status.wake()
			return true
		}
		w.status.setProblem(err.Error())
		select {
		case <-w.ending:
			return false
		case <-time.After(retryInterval):
		}
	}
}

func (w *worker) mount(ctx context.Context) error {
	for _, folder := range []string{w.dir, w.homeDir()} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return fmt.Errorf("create folder: %w", err)
		}
	}
	return w.volumes.sync(ctx, w.pod.Load())
}

func (w *worker) homeDir() string { return filepath.Join(w.dir, "home") }

// play runs the containers until all have ended for good.
func (w *worker) play(ctx context.Context) {
	refreshCtx, stopRefresh := context.WithCancel(ctx)
	defer stopRefresh()
	go w.refresh(refreshCtx)

	var running sync.WaitGroup
	for _, c := range w.containers {
		running.Go(func() { c.run(ctx) })
	}
	running.Wait()
}

// refresh keeps the mounted files up to date. An object that is gone leaves
// its files as they were, as a kubelet does.
func (w *worker) refresh(ctx context.Context) {
	ticker := time.NewTicker(refreshInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			_ = w.volumes.sync(ctx, w.pod.Load())
		}
	}
}

// finish stores the last status, and removes the Pod if it was deleted.
func (w *worker) finish(ctx context.Context) {
	defer func() { _ = os.RemoveAll(w.dir) }()
	for w.settle(ctx) != nil {
		select {
		case <-ctx.Done():
			return
		case <-time.After(retryInterval):
		}
	}
}

// settle is one attempt of finish. A Pod whose containers completed stays.
func (w *worker) settle(ctx context.Context) error {
	if w.vanished.Load() {
		return nil
	}
	if err := w.status.write(ctx); err != nil {
		return ignoreGone(err)
	}
	if w.pod.Load().DeletionTimestamp == nil {
		return nil
	}
	return ignoreGone(w.kubelet.remove(ctx, w.pod.Load()))
}

// ignoreGone drops errors which say that the Pod, or this Pod of its name, is
// no longer there.
func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// waitingReason is why a container has not started yet.
func (w *worker) waitingReason() string {
	if len(w.pod.Load().Spec.InitContainers) > 0 && !w.mounted.Load() {
		return "PodInitializing"
	}
	return "ContainerCreating"
}
