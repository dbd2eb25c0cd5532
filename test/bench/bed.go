package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/test/testbed"
)

const (
	image        = "ghcr.io/kick-dev/kick"
	kickSelector = "app.kubernetes.io/name=kick"
	// loaders is how many objects are created, or sources changed, at a time.
	loaders = 32
)

var scheme = newScheme()

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return scheme
}

// bench is one run.
type bench struct {
	options options
	shape   Shape
	out     io.Writer
	report  *Report

	bed    *testbed.Testbed
	config *rest.Config
	k8s    client.Client
	sight  *sight
	// revision numbers the values that sources are changed to.
	revision int
}

// start boots a control plane, installs KICK and loads the shape beside it while KICK is stopped, so that the first phase
// shows what it does on a cluster it has never seen.
func (b *bench) start(ctx context.Context) error {
	manager, err := filepath.Abs(b.options.manager)
	if err != nil {
		return fmt.Errorf("find the manager: %w", err)
	}
	binaries, err := testbed.Build(ctx, testbed.BuildOptions{Out: b.out})
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "kick-bench-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	b.bed, err = testbed.Start(ctx, testbed.Options{
		Dir: dir, Binaries: binaries, CertManager: true, Images: map[string]string{image: manager}, Out: b.out,
		PodHook: func(_ *corev1.Pod, _ string, launch *testbed.PodLaunch) { maps.Copy(launch.Env, b.options.environment) },
	})
	if err != nil {
		return err
	}
	b.config = b.bed.RESTConfig()
	b.config.QPS = -1
	if b.k8s, err = client.New(b.config, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	if err := b.install(ctx); err != nil {
		return err
	}
	if b.sight, err = watchCluster(ctx, b.config); err != nil {
		return err
	}
	return b.load(ctx)
}

// stop ends the control plane. Its folder is kept if asked for.
func (b *bench) stop(ctx context.Context) error {
	if b.bed == nil {
		return nil
	}
	if err := b.bed.Stop(ctx); err != nil {
		return err
	}
	if b.options.keep {
		fmt.Fprintln(b.out, "kept", b.bed.Dir())
		return nil
	}
	return os.RemoveAll(b.bed.Dir())
}

func (b *bench) install(ctx context.Context) error {
	arguments := []string{
		"install", "kick", b.options.chart, "--namespace", kickNamespace, "--create-namespace", "--wait", "--timeout", "5m",
		"--set", "replicas=1", "--set", "maxConcurrentRestarts=0",
	}
	if output, err := b.bed.Helm(ctx, append(arguments, b.options.helm...)...); err != nil {
		return fmt.Errorf("install KICK: %w: %s", err, output)
	}
	return nil
}

// load creates the shape: the policies first, which have to pass KICK's webhook, and all the rest while KICK is down.
func (b *bench) load(ctx context.Context) error {
	began := time.Now()
	var namespaces, policies []client.Object
	for _, name := range b.shape.namespaces() {
		namespaces = append(namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		policies = append(policies, policy(name))
	}
	if err := b.create(ctx, namespaces, policies); err != nil {
		return err
	}
	if err := b.stopKick(ctx); err != nil {
		return err
	}
	workloads := b.shape.workloads()
	if err := b.create(ctx, b.shape.stock(), workloads); err != nil {
		return err
	}
	err := b.poll(ctx, time.Second, "the workloads to be rolled out", func() (bool, error) {
		return b.sight.rolledOut(keysOf(workloads)) == len(workloads), nil
	})
	fmt.Fprintf(b.out, "loaded %d workloads in %s\n", len(workloads), time.Since(began).Round(time.Second))
	return err
}

// create makes objects, batch by batch.
func (b *bench) create(ctx context.Context, batches ...[]client.Object) error {
	for _, batch := range batches {
		err := parallel(len(batch), loaders, func(i int) error { return b.k8s.Create(ctx, batch[i]) })
		if err != nil {
			return fmt.Errorf("load the shape: %w", err)
		}
	}
	return nil
}

func keysOf(objects []client.Object) []client.ObjectKey {
	keys := make([]client.ObjectKey, len(objects))
	for i, object := range objects {
		keys[i] = client.ObjectKeyFromObject(object)
	}
	return keys
}

// apps are the first n workloads of the shape that have sources of their own, from an index on.
func (b *bench) apps(from, n int) []client.ObjectKey {
	keys := make([]client.ObjectKey, n)
	for i := range keys {
		keys[i] = b.shape.app((from + i) % (b.shape.Namespaces * workloadsPerNamespace))
	}
	return keys
}

// sharers are the workloads that consume the shared ConfigMap.
func (b *bench) sharers() []client.ObjectKey {
	keys := make([]client.ObjectKey, b.shape.Sharers)
	for i := range keys {
		keys[i] = sharer(i)
	}
	return keys
}

// everyWorkload of the shape.
func (b *bench) everyWorkload() []client.ObjectKey { return keysOf(b.shape.workloads()) }

// stopKick ends the manager and waits until its process is gone.
func (b *bench) stopKick(ctx context.Context) error { return b.scaleKick(ctx, 0) }

// startKick starts the manager and returns when its process runs.
func (b *bench) startKick(ctx context.Context) error { return b.scaleKick(ctx, 1) }

func (b *bench) scaleKick(ctx context.Context, replicas int) error {
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
	kick := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: kickNamespace, Name: "kick"}}
	if err := b.k8s.Patch(ctx, kick, patch); err != nil {
		return fmt.Errorf("scale KICK: %w", err)
	}
	return b.poll(ctx, 20*time.Millisecond, fmt.Sprintf("KICK to have %d processes", replicas), func() (bool, error) {
		running, err := b.bed.Pods(kickNamespace, kickSelector)
		return len(running) == replicas, err
	})
}

// ready waits until the manager is.
func (b *bench) ready(ctx context.Context) error { return b.replicasReady(ctx, 1) }

func (b *bench) replicasReady(ctx context.Context, replicas int32) error {
	kick := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: kickNamespace, Name: "kick"}}
	return b.poll(ctx, 50*time.Millisecond, "KICK to be ready", func() (bool, error) {
		err := b.k8s.Get(ctx, client.ObjectKeyFromObject(kick), kick)
		return kick.Status.ReadyReplicas == replicas, err
	})
}

// usage of the one process of KICK.
func (b *bench) usage() (Usage, error) {
	pid, err := b.process()
	if err != nil {
		return Usage{}, err
	}
	return usageOf(pid)
}

// usages are those of all processes of KICK, by their ids.
func (b *bench) usages() (map[int]Usage, error) {
	running, err := b.bed.Pods(kickNamespace, kickSelector)
	if err != nil {
		return nil, fmt.Errorf("find the processes of KICK: %w", err)
	}
	usages := map[int]Usage{}
	for _, process := range running {
		if usages[process.PID], err = usageOf(process.PID); err != nil {
			return nil, err
		}
	}
	return usages, nil
}

// process is the id of the one process of KICK.
func (b *bench) process() (int, error) {
	running, err := b.bed.Pods(kickNamespace, kickSelector)
	if err != nil || len(running) != 1 {
		return 0, fmt.Errorf("find the process of KICK: there are %d: %w", len(running), err)
	}
	return running[0].PID, nil
}

// changeShared gives the shared ConfigMap another value and returns when that was answered.
func (b *bench) changeShared(ctx context.Context) (time.Time, error) {
	b.revision++
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"data":{"value":"%d"}}`, b.revision))
	if err := b.k8s.Patch(ctx, configMap(sharedNamespace, sharedName, 0), patch); err != nil {
		return time.Time{}, fmt.Errorf("change the shared ConfigMap: %w", err)
	}
	return time.Now(), nil
}

// change gives the Secrets of the names another value and returns when the first of the changes was answered.
func (b *bench) change(ctx context.Context, keys ...client.ObjectKey) (time.Time, error) {
	b.revision++
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"stringData":{"value":"%d"}}`, b.revision))
	answered := make([]time.Time, len(keys))
	err := parallel(len(keys), loaders, func(i int) error {
		object := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: keys[i].Namespace, Name: keys[i].Name}}
		err := b.k8s.Patch(ctx, object, patch)
		answered[i] = time.Now()
		return err
	})
	if err != nil {
		return time.Time{}, fmt.Errorf("change Secrets: %w", err)
	}
	return slices.MinFunc(answered, time.Time.Compare), nil
}

// percentile is the nearest-rank percentile of durations.
func percentile(values []time.Duration, percent float64) time.Duration {
	sorted := slices.Sorted(slices.Values(values))
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(percent / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}
