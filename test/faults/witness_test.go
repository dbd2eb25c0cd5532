package faults

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/internal/cluster/workload"
)

// witness watches everything that is written to workloads and Pods, and misses no version of them. What it knows
// comes from the API server alone, in the order in which that stored it.
type witness struct {
	mu sync.Mutex
	// stamps are the values of the restartedAt annotation that each workload had, by kind, namespace and name.
	stamps map[string][]string
	// born is the version at which a Pod was created.
	born map[types.UID]string
	// failed is why a watch has ended before its time.
	failed error
}

// newWitness watches from now on; workloads that exist are taken to have no stamp.
func newWitness(t *testing.T) *witness {
	t.Helper()
	clients, err := kubernetes.NewForConfig(bed.RESTConfig())
	must(t, err)
	w := &witness{stamps: map[string][]string{}, born: map[types.UID]string{}}
	apps, all, one := clients.AppsV1(), metav1.NamespaceAll, metav1.ListOptions{Limit: 1}
	ctx, cancel := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	t.Cleanup(func() { cancel(); watching.Wait() })
	follow := func(list func() (metav1.ListInterface, error), open func(context.Context, metav1.ListOptions) (watch.Interface, error)) {
		first, err := list()
		must(t, err)
		watcher, err := watchtools.NewRetryWatcherWithContext(ctx, first.GetResourceVersion(), &cache.ListWatch{WatchFuncWithContext: open})
		must(t, err)
		watching.Go(func() { w.follow(ctx, watcher) })
	}
	follow(func() (metav1.ListInterface, error) { return apps.Deployments(all).List(ctx, one) }, apps.Deployments(all).Watch)
	follow(func() (metav1.ListInterface, error) { return apps.StatefulSets(all).List(ctx, one) }, apps.StatefulSets(all).Watch)
	follow(func() (metav1.ListInterface, error) { return apps.DaemonSets(all).List(ctx, one) }, apps.DaemonSets(all).Watch)
	follow(func() (metav1.ListInterface, error) { return clients.CoreV1().Pods(all).List(ctx, one) }, clients.CoreV1().Pods(all).Watch)
	return w
}

func (w *witness) follow(ctx context.Context, watcher *watchtools.RetryWatcher) {
	for event := range watcher.ResultChan() {
		w.see(event)
	}
	if ctx.Err() == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.failed = fmt.Errorf("a watch of the witness has ended")
	}
}

func (w *witness) see(event watch.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if event.Type == watch.Error {
		w.failed = fmt.Errorf("a watch of the witness fails: %+v", event.Object)
		return
	}
	if pod, ok := event.Object.(*corev1.Pod); ok {
		if event.Type == watch.Added {
			w.born[pod.UID] = pod.ResourceVersion
		}
		return
	}
	w.seeWorkload(event.Object)
}

func (w *witness) seeWorkload(object runtime.Object) {
	seen, ok := object.(client.Object)
	if !ok {
		return
	}
	wrapped, ok := workload.Of(seen)
	if !ok {
		return
	}
	key := fmt.Sprintf("%s %s/%s", wrapped.TargetRef().Kind, seen.GetNamespace(), seen.GetName())
	had := w.stamps[key]
	if stamp := wrapped.Stamp(); stamp != "" && (len(had) == 0 || had[len(had)-1] != stamp) {
		w.stamps[key] = append(had, stamp)
	}
}

// stamped counts the stamps of a workload.
func (w *witness) stamped(c consumer) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.stamps[c.String()])
}

// broken tells why the witness may have missed something, if so.
func (w *witness) broken() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed
}

// edit is the last write of a source: its version, and its second on the API server's clock.
type edit struct {
	version string
	second  time.Time
}

// carries tells why it is not proved that the containers of a Pod started after an edit, if so. Proof is that the Pod was
// created after it, in the order of the API server's versions, or that its containers started in a later second.
func (w *witness) carries(pod *corev1.Pod, last edit) error {
	w.mu.Lock()
	born := w.born[pod.UID]
	w.mu.Unlock()
	if born != "" {
		if order, err := resourceversion.CompareResourceVersion(born, last.version); err != nil || order > 0 {
			return err
		}
	}
	for _, status := range pod.Status.ContainerStatuses {
		if status.State.Running == nil || !status.State.Running.StartedAt.After(last.second) {
			return fmt.Errorf("pod %s/%s was created at version %q and runs %+v; the source was written at version %s in the second %s",
				pod.Namespace, pod.Name, born, status.State, last.version, last.second.Format(time.RFC3339))
		}
	}
	if len(pod.Status.ContainerStatuses) == 0 {
		return fmt.Errorf("pod %s/%s has not started", pod.Namespace, pod.Name)
	}
	return nil
}

// lastWrite is the newest time in the managed fields of an object that was just written.
func lastWrite(object client.Object) time.Time {
	var last time.Time
	for _, entry := range object.GetManagedFields() {
		if entry.Time != nil && entry.Time.After(last) {
			last = entry.Time.Time
		}
	}
	return last
}
