package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// referenceAnnotation is what the reference writes to Pod templates. It is not restartedAt, which KICK's webhook guards.
const referenceAnnotation = "bench.kick.dev/changed-to"

// reference is the least a tool can do that restarts workloads: it remembers nothing, asks for no permission and compares
// nothing. When a watch shows that a source has changed, it reads the source and each consumer, and patches the template.
// Its times, taken on the same machine and cluster, are what those of KICK are to be compared with.
type reference struct {
	bench *bench
	ctx   context.Context
	jobs  chan job
	// namesakes are the workloads, each of which has the name of its own sources.
	namesakes map[client.ObjectKey]bool
	// failed is the first fault.
	failed func(error)
}

// job is a source with a consumer of it.
type job struct {
	source   client.Object
	consumer client.ObjectKey
}

// timesReference is how many times the time of the reference KICK may take for a change: the reference remembers nothing and
// asks for no permission.
const timesReference = 2

// comparison measures the reference in place of KICK, which it stops.
func (b *bench) comparison(ctx context.Context) error {
	if err := b.stopKick(ctx); err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var workers sync.WaitGroup
	r := &reference{bench: b, ctx: ctx, jobs: make(chan job, b.shape.Workloads()), failed: stop, namesakes: map[client.ObjectKey]bool{}}
	for _, key := range b.everyWorkload() {
		r.namesakes[key] = true
	}
	for range loaders {
		workers.Go(r.work)
	}
	defer workers.Wait()
	defer stop(nil)
	if err := r.watch(); err != nil {
		return err
	}
	var single []time.Duration
	for _, key := range b.apps(0, b.options.repeat) {
		latencies, err := b.referenceRestarts(ctx, []client.ObjectKey{key}, func() (time.Time, error) { return b.change(ctx, key) })
		if err != nil {
			return err
		}
		single = append(single, latencies...)
	}
	b.report.reference("change", single)
	fanOut, err := b.referenceRestarts(ctx, b.sharers(), func() (time.Time, error) { return b.changeShared(ctx) })
	if err != nil {
		return err
	}
	b.report.reference("fan-out", fanOut)
	many := b.apps(0, b.shape.Burst)
	burst, err := b.referenceRestarts(ctx, many, func() (time.Time, error) { return b.change(ctx, many...) })
	if err != nil {
		return err
	}
	b.report.reference("burst", burst)
	b.report.againstReference("change", "p50", timesReference, func(l Latencies) time.Duration { return l.P50 })
	b.report.againstReference("change", "p99", timesReference, func(l Latencies) time.Duration { return l.P99 })
	for _, phase := range []string{"fan-out", "burst"} {
		b.report.againstReference(phase, "last stamp", 0, func(l Latencies) time.Duration { return l.Max })
	}
	return nil
}

// referenceRestarts makes a change and returns how long after it each of the workloads was stamped. It ends when they are
// rolled out.
func (b *bench) referenceRestarts(ctx context.Context, keys []client.ObjectKey, change func() (time.Time, error)) ([]time.Duration, error) {
	before := b.sight.stampsOf(keys)
	answered, err := change()
	if err != nil {
		return nil, err
	}
	at, err := b.stamped(ctx, before)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, context.Cause(ctx))
	}
	err = b.poll(ctx, 20*time.Millisecond, "the rollouts of the reference", func() (bool, error) {
		return b.sight.rolledOut(keys) == len(keys), nil
	})
	return since(answered, at), err
}

// watch follows the sources by their metadata, and turns each change into jobs.
func (r *reference) watch() error {
	watches, err := cache.New(r.bench.config, cache.Options{Scheme: scheme, DefaultTransform: cache.TransformStripManagedFields()})
	if err != nil {
		return fmt.Errorf("watch sources: %w", err)
	}
	for kind, typed := range map[string]client.Object{"Secret": &corev1.Secret{}, "ConfigMap": &corev1.ConfigMap{}} {
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
		informer, err := watches.GetInformer(r.ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watch %s: %w", kind, err)
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{UpdateFunc: func(_, object any) {
			r.changed(object.(*metav1.PartialObjectMetadata), typed)
		}}); err != nil {
			return fmt.Errorf("watch %s: %w", kind, err)
		}
	}
	go func() { _ = watches.Start(r.ctx) }()
	if !watches.WaitForCacheSync(r.ctx) {
		return fmt.Errorf("watch sources: %w", context.Cause(r.ctx))
	}
	return nil
}

// changed makes a job of each consumer.
func (r *reference) changed(shown *metav1.PartialObjectMetadata, kind client.Object) {
	source := kind.DeepCopyObject().(client.Object)
	source.SetNamespace(shown.Namespace)
	source.SetName(shown.Name)
	var consumers []client.ObjectKey
	switch key := client.ObjectKeyFromObject(shown); {
	case shown.Namespace == sharedNamespace && shown.Name == sharedName:
		consumers = r.bench.sharers()
	case r.namesakes[key]:
		consumers = []client.ObjectKey{key}
	}
	for _, consumer := range consumers {
		select {
		case r.jobs <- job{source, consumer}:
		case <-r.ctx.Done():
		}
	}
}

func (r *reference) work() {
	for {
		select {
		case <-r.ctx.Done():
			return
		case next := <-r.jobs:
			if err := r.restart(next); err != nil && r.ctx.Err() == nil {
				r.failed(err)
			}
		}
	}
}

func (r *reference) restart(next job) error {
	source := next.source.DeepCopyObject().(client.Object)
	if err := r.bench.k8s.Get(r.ctx, client.ObjectKeyFromObject(source), source); err != nil {
		return fmt.Errorf("read the source: %w", err)
	}
	consumer := &appsv1.Deployment{}
	if err := r.bench.k8s.Get(r.ctx, next.consumer, consumer); err != nil {
		return fmt.Errorf("read the consumer: %w", err)
	}
	patch := fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"annotations":{%q:%q}}}}}`,
		referenceAnnotation, source.GetResourceVersion())
	if err := r.bench.k8s.Patch(r.ctx, consumer, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		return fmt.Errorf("restart the consumer: %w", err)
	}
	return nil
}
