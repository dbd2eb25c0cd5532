package main

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
)

// constantReads are the reads of a start that do not depend on the size of the cluster, with room for a few more.
const constantReads = 40

// adoption starts KICK on a cluster it has never seen and in which nothing is stale.
func (b *bench) adoption(ctx context.Context) error {
	mark, began := b.bed.Audit().Mark(), time.Now()
	if err := b.startKick(ctx); err != nil {
		return err
	}
	if err := b.settled(ctx, b.everyWorkload(), v1alpha1.PhaseNoLongerRequired); err != nil {
		return err
	}
	took := time.Since(began)
	traffic, err := b.calm(ctx, mark)
	if err != nil {
		return err
	}
	usage, err := b.usage()
	if err != nil {
		return err
	}
	b.report.Traffic["adoption"] = traffic
	workloads, namespaces := float64(b.shape.Workloads()), float64(b.shape.Namespaces+1)
	b.report.atMost(20, seconds(took), "adoption", "until every workload is settled", "s")
	b.report.atMost(float64(b.shape.Sources()+constantReads), float64(traffic.Reads()), "adoption", "reads", "")
	b.report.atMost(2.2*workloads+namespaces, float64(traffic.Writes()), "adoption", "writes", "")
	b.report.atMost(120, mebibytes(usage.PeakRSS), "adoption", "peak RSS", "MiB")
	b.report.note(usage.CPU.Seconds(), "adoption", "CPU", "s")
	return nil
}

// restart stops KICK and starts it again, with nothing changed.
func (b *bench) restart(ctx context.Context) error {
	if err := b.stopKick(ctx); err != nil {
		return err
	}
	mark, began := b.bed.Audit().Mark(), time.Now()
	if err := b.startKick(ctx); err != nil {
		return err
	}
	if err := b.ready(ctx); err != nil {
		return err
	}
	ready := time.Since(began)
	traffic, err := b.calm(ctx, mark)
	if err != nil {
		return err
	}
	usage, err := b.usage()
	if err != nil {
		return err
	}
	b.report.Traffic["restart"] = traffic
	b.report.atMost(10, seconds(ready), "restart, nothing changed", "until ready", "s")
	b.report.atMost(0, float64(traffic.SourceReads()-keyReads), "restart, nothing changed", "reads of sources", "")
	b.report.atMost(0, float64(traffic.Writes()), "restart, nothing changed", "writes", "")
	b.report.atMost(120, mebibytes(usage.PeakRSS), "restart, nothing changed", "peak RSS", "MiB")
	return nil
}

// keyReads is the read of the Secret that holds the key of the fingerprints, once at each start.
const keyReads = 1

// standby starts a second replica beside the one that leads, and stops it again.
func (b *bench) standby(ctx context.Context) error {
	leader, err := b.process()
	if err != nil {
		return err
	}
	mark := b.bed.Audit().Mark()
	if err := b.scaleKick(ctx, 2); err != nil {
		return err
	}
	if err := b.replicasReady(ctx, 2); err != nil {
		return err
	}
	traffic, err := b.calm(ctx, mark)
	if err != nil {
		return err
	}
	usages, err := b.usages()
	if err != nil {
		return err
	}
	b.report.Traffic["standby"] = traffic
	leading := usages[leader]
	delete(usages, leader)
	if len(usages) != 1 {
		return fmt.Errorf("find the replica that stands by: there are %d beside the leader", len(usages))
	}
	for _, standing := range usages {
		b.report.note(mebibytes(leading.RSS), "a second replica stands by", "RSS of the leader", "MiB")
		b.report.note(mebibytes(standing.RSS), "a second replica stands by", "RSS of the other", "MiB")
		b.report.atMost(1, float64(standing.RSS)/float64(leading.RSS), "a second replica stands by", "RSS of the other", "times the leader's")
	}
	b.report.atMost(0, float64(traffic.Writes()), "a second replica stands by", "writes", "")
	if err := b.startKick(ctx); err != nil {
		return err
	}
	return b.ready(ctx)
}

// touches changes metadata of sources, which concerns nobody.
func (b *bench) touches(ctx context.Context) error {
	mark := b.bed.Audit().Mark()
	keys := b.apps(0, b.shape.Touches)
	b.revision++
	patch := client.RawPatch("application/merge-patch+json",
		fmt.Appendf(nil, `{"metadata":{"annotations":{"touched":"%d"}}}`, b.revision))
	err := parallel(len(keys), loaders, func(i int) error {
		return b.k8s.Patch(ctx, secret(keys[i].Namespace, keys[i].Name, 0), patch)
	})
	if err != nil {
		return fmt.Errorf("touch Secrets: %w", err)
	}
	traffic, err := b.calm(ctx, mark)
	if err != nil {
		return err
	}
	b.report.Traffic["touches"] = traffic
	measure := fmt.Sprintf("%d metadata touches", len(keys))
	b.report.atMost(float64(len(keys)), float64(traffic.Reads()), measure, "reads", "")
	b.report.atMost(0, float64(traffic.Writes()), measure, "writes", "")
	return nil
}

// idle closes the schedule for some workloads with changes, and then looks at a cluster in which nothing happens (C117).
func (b *bench) idle(ctx context.Context) error {
	keys := b.apps(0, b.shape.Waiting)
	if err := b.close(ctx, keys); err != nil {
		return err
	}
	if _, err := b.change(ctx, keys...); err != nil {
		return err
	}
	if err := b.settled(ctx, keys, v1alpha1.PhaseWaitingForGate); err != nil {
		return err
	}
	if _, err := b.calm(ctx, b.bed.Audit().Mark()); err != nil {
		return err
	}
	before, err := b.usage()
	if err != nil {
		return err
	}
	mark := b.bed.Audit().Mark()
	if err := b.rest(ctx, b.options.idle); err != nil {
		return err
	}
	traffic, err := b.trafficSince(mark)
	if err != nil {
		return err
	}
	after, err := b.usage()
	if err != nil {
		return err
	}
	b.report.Traffic["idle"] = traffic
	name := fmt.Sprintf("idle %s, %d requests wait", b.options.idle, len(keys))
	b.report.atMost(0, float64(traffic.Total()), name, "requests but watches and the lease", "")
	b.report.atMost(0.5, 100*seconds(after.CPU-before.CPU)/seconds(b.options.idle), name, "CPU", "% of a core")
	b.report.atMost(100, mebibytes(after.RSS), name, "RSS", "MiB")
	b.report.atMost(120, mebibytes(after.PeakRSS), name, "peak RSS since the last start", "MiB")
	return nil
}

// close lets the policies of the workloads permit no restart for months.
func (b *bench) close(ctx context.Context, keys []client.ObjectKey) error {
	closed := map[string]bool{}
	for _, key := range keys {
		if closed[key.Namespace] {
			continue
		}
		closed[key.Namespace] = true
		far := time.Now().AddDate(0, 6, 0)
		patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil,
			`{"spec":{"schedule":{"windows":[{"kind":"Allow","cron":"0 0 1 %d *","duration":"1h"}]}}}`, far.Month()))
		if err := b.k8s.Patch(ctx, policy(key.Namespace), patch); err != nil {
			return fmt.Errorf("close the schedule of namespace %s: %w", key.Namespace, err)
		}
	}
	return nil
}

// rest does nothing for a while.
func (b *bench) rest(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
