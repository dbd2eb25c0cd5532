// Package kubelet plays the kubelet for chosen Pods: it runs their containers
// as processes of this machine. It decides by the image of the first container
// which Pods are its own, and leaves all others alone.
package kubelet

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/kick-dev/kick/test/testbed/internal/loopback"
	"github.com/kick-dev/kick/test/testbed/internal/process"
)

// Launch is what a hook may change about a container before it starts.
type Launch struct {
	// Server is the URL of the API server in the container's kubeconfig. A proxy
	// may serve plain http there.
	Server string
	// Env is added to the environment of the process.
	Env map[string]string
}

// Options are what a Kubelet needs from outside.
type Options struct {
	Client kubernetes.Interface
	// Images maps image repositories, with or without a tag, to local
	// executables.
	Images map[string]string
	// Dir holds one folder per Pod, LogDir the logs of containers.
	Dir     string
	LogDir  string
	Server  string
	Spawner *process.Spawner
	Ports   *loopback.Ports
	// Hook is called before each start of a container; nil changes nothing.
	Hook func(pod *corev1.Pod, container string, launch *Launch)
}

// Kubelet runs Pods as processes.
type Kubelet struct {
	Options
	secrets    corelisters.SecretLister
	configMaps corelisters.ConfigMapLister
	addresses  addressBook

	ctx     context.Context
	cancel  context.CancelFunc
	mu      sync.Mutex
	workers map[types.UID]*worker
	running sync.WaitGroup
}

// New registers the Kubelet with the informers of the factory, which the
// caller starts.
func New(options Options, factory informers.SharedInformerFactory) (*Kubelet, error) {
	ctx, cancel := context.WithCancel(context.Background())
	k := &Kubelet{
		Options:    options,
		secrets:    factory.Core().V1().Secrets().Lister(),
		configMaps: factory.Core().V1().ConfigMaps().Lister(),
		ctx:        ctx,
		cancel:     cancel,
		workers:    map[types.UID]*worker{},
	}
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { k.observe(obj.(*corev1.Pod)) },
		UpdateFunc: func(_, obj any) { k.observe(obj.(*corev1.Pod)) },
		DeleteFunc: k.vanish,
	})
	if err != nil {
		cancel()
		return nil, fmt.Errorf("watch Pods: %w", err)
	}
	return k, nil
}

// Close stops all processes and waits until they are gone. The Pods stay in
// the API server as they are.
func (k *Kubelet) Close() {
	k.mu.Lock()
	k.cancel()
	k.mu.Unlock()
	k.running.Wait()
}

// Address finds the loopback address of a port of a Pod that runs here.
func (k *Kubelet) Address(ip string, port int) (string, bool) { return k.addresses.find(ip, port) }

// observe is called with each Pod that is new or changed.
func (k *Kubelet) observe(pod *corev1.Pod) {
	if !k.plays(pod) {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ctx.Err() != nil {
		return
	}
	if w, ok := k.workers[pod.UID]; ok {
		w.update(pod)
		return
	}
	switch {
	case pod.DeletionTimestamp != nil:
		// Nothing of it runs here: it never started, or completed before.
		k.running.Go(func() { k.removeWithRetry(pod) })
	case !isTerminal(pod):
		k.begin(pod)
	}
}

// begin is called with the lock held.
func (k *Kubelet) begin(pod *corev1.Pod) {
	w := newWorker(k, pod)
	k.workers[pod.UID] = w
	k.running.Go(func() {
		w.run(k.ctx)
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.workers, pod.UID)
	})
}

// vanish is called when a Pod is no longer in the API server.
func (k *Kubelet) vanish(obj any) {
	if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = unknown.Obj
	}
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if w, ok := k.workers[pod.UID]; ok {
		w.vanish()
	}
}

// plays tells whether a Pod is this Kubelet's: it is scheduled, and the image
// of its first container is known.
func (k *Kubelet) plays(pod *corev1.Pod) bool {
	if pod.Spec.NodeName == "" || len(pod.Spec.Containers) == 0 {
		return false
	}
	_, ok := k.executable(pod.Spec.Containers[0].Image)
	return ok
}

// remove deletes a Pod for good; only a Pod with finalizers stays.
func (k *Kubelet) remove(ctx context.Context, pod *corev1.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	options := metav1.NewDeleteOptions(0)
	options.Preconditions = metav1.NewUIDPreconditions(string(pod.UID))
	return k.Client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, *options)
}

func (k *Kubelet) removeWithRetry(pod *corev1.Pod) {
	for ignoreGone(k.remove(k.ctx, pod)) != nil {
		select {
		case <-k.ctx.Done():
			return
		case <-time.After(retryInterval):
		}
	}
}

func isTerminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
