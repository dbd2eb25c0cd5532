package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
)

// phase is one experiment. Phases run in the order of the list; each leaves the cluster calm.
type phase struct {
	name string
	// optional phases run only when they are asked for by name.
	optional bool
	run      func(*bench, context.Context) error
}

var phases = []phase{
	{name: "adoption", run: (*bench).adoption},
	{name: "restart", run: (*bench).restart},
	{name: "standby", run: (*bench).standby},
	{name: "change", run: (*bench).oneChange},
	{name: "fan-out", run: (*bench).fanOut},
	{name: "burst", run: (*bench).burst},
	{name: "cap", run: (*bench).capped},
	{name: "admission", run: (*bench).admission},
	{name: "outage", run: (*bench).outage},
	{name: "touches", run: (*bench).touches},
	{name: "idle", run: (*bench).idle},
	{name: "bytes", optional: true, run: (*bench).bytes},
	{name: "big-secret", optional: true, run: (*bench).bigSecret},
	{name: "reference", run: (*bench).comparison}, // The last, since KICK does not run any more then.
}

// run goes through the phases that were asked for. Adoption always comes before the others: nothing of KICK can be measured
// before it.
func (b *bench) run(ctx context.Context) error {
	for _, p := range phases {
		chosen := slices.Contains(b.options.phases, p.name) || (len(b.options.phases) == 0 && !p.optional)
		if !chosen && p.name != "adoption" {
			continue
		}
		began := time.Now()
		if err := p.run(b, ctx); err != nil {
			return fmt.Errorf("phase %s: %w", p.name, err)
		}
		if p.name == "reference" {
			fmt.Fprintf(b.out, "%-10s took %s\n", p.name, time.Since(began).Round(time.Second))
			continue
		}
		usage, err := b.usage()
		if err != nil {
			return err
		}
		b.report.Usage[p.name] = usage
		fmt.Fprintf(b.out, "%-10s took %s, peak %.0f MiB, now %.0f MiB, CPU %s; %s\n", p.name, time.Since(began).Round(time.Second),
			mebibytes(usage.PeakRSS), mebibytes(usage.RSS), usage.CPU.Round(10*time.Millisecond), b.report.Traffic[p.name])
	}
	return nil
}

// settled waits until the requests of the workloads have reached one of the phases, and KICK has nothing to do.
func (b *bench) settled(ctx context.Context, keys []client.ObjectKey, phases ...v1alpha1.Phase) error {
	return b.poll(ctx, 20*time.Millisecond, fmt.Sprintf("%d requests to be settled", len(keys)), func() (bool, error) {
		return b.sight.in(keys, phases...) == len(keys), nil
	})
}

// stamped waits until every workload has a new stamp and returns when each was seen.
func (b *bench) stamped(ctx context.Context, before map[client.ObjectKey]stamp) (map[client.ObjectKey]time.Time, error) {
	var at map[client.ObjectKey]time.Time
	err := b.poll(ctx, 5*time.Millisecond, fmt.Sprintf("%d stamps", len(before)), func() (bool, error) {
		var all bool
		at, all = b.sight.stamped(before)
		return all, nil
	})
	return at, err
}

// since turns the times of stamps into latencies.
func since(began time.Time, at map[client.ObjectKey]time.Time) []time.Duration {
	var latencies []time.Duration
	for _, seen := range at {
		latencies = append(latencies, seen.Sub(began))
	}
	return latencies
}
