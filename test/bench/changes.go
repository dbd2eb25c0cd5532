package main

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
)

// Targets for the work behind a change, and how much of it a restart needs.
const (
	requestsPerChange   = 14
	requestsPerConsumer = 11
	readsPerRestart     = 4
)

// oneChange changes one Secret with one consumer, again and again.
func (b *bench) oneChange(ctx context.Context) error {
	mark := b.bed.Audit().Mark()
	var latencies []time.Duration
	for _, key := range b.apps(0, b.options.repeat) {
		only := []client.ObjectKey{key}
		before := b.sight.stampsOf(only)
		answered, err := b.change(ctx, key)
		if err != nil {
			return err
		}
		at, err := b.stamped(ctx, before)
		if err != nil {
			return err
		}
		latencies = append(latencies, since(answered, at)...)
		if err := b.settled(ctx, only, v1alpha1.PhaseSucceeded); err != nil {
			return err
		}
	}
	traffic, err := b.calm(ctx, mark)
	if err != nil {
		return err
	}
	b.report.Traffic["change"] = traffic
	name := fmt.Sprintf("1 change, 1 consumer (%d times)", b.options.repeat)
	percentiles := b.report.stamps("change", latencies)
	b.report.atMost(20, milliseconds(percentiles.P50), name, "change → stamp, p50", "ms")
	b.report.atMost(40, milliseconds(percentiles.P99), name, "change → stamp, p99", "ms")
	b.report.atMost(requestsPerChange, float64(traffic.Total())/float64(b.options.repeat), name, "requests per change", "")
	return nil
}

// fanOut changes the ConfigMap that many workloads share.
func (b *bench) fanOut(ctx context.Context) error {
	keys := b.sharers()
	mark, before := b.bed.Audit().Mark(), b.sight.stampsOf(keys)
	answered, err := b.changeShared(ctx)
	if err != nil {
		return err
	}
	at, err := b.stamped(ctx, before)
	if err != nil {
		return err
	}
	if err := b.settled(ctx, keys, v1alpha1.PhaseSucceeded); err != nil {
		return err
	}
	traffic, err := b.calm(ctx, mark)
	if err != nil {
		return err
	}
	b.report.Traffic["fan-out"] = traffic
	name := fmt.Sprintf("1 change, %d consumers", len(keys))
	percentiles := b.report.stamps("fan-out", since(answered, at))
	b.report.atMost(6, seconds(percentiles.Max), name, "last stamp", "s")
	b.report.atMost(requestsPerConsumer, float64(traffic.Total())/float64(len(keys)), name, "requests per consumer", "")
	return nil
}

// burst changes many Secrets at once.
func (b *bench) burst(ctx context.Context) error {
	keys := b.apps(0, b.shape.Burst)
	mark, before := b.bed.Audit().Mark(), b.sight.stampsOf(keys)
	began := time.Now()
	answered, err := b.change(ctx, keys...)
	if err != nil {
		return err
	}
	spread := time.Since(began)
	at, err := b.stamped(ctx, before)
	if err != nil {
		return err
	}
	if err := b.settled(ctx, keys, v1alpha1.PhaseSucceeded); err != nil {
		return err
	}
	traffic, err := b.calm(ctx, mark)
	if err != nil {
		return err
	}
	b.report.Traffic["burst"] = traffic
	name := fmt.Sprintf("%d sources changed at once", len(keys))
	percentiles := b.report.stamps("burst", since(answered, at))
	b.report.note(seconds(spread), name, "the changes took", "s")
	b.report.atMost(10, seconds(percentiles.Max), name, "last stamp", "s")
	b.report.note(float64(traffic.Total())/float64(len(keys)), name, "requests per change", "")
	return nil
}

// outage changes Secrets while KICK is down.
func (b *bench) outage(ctx context.Context) error {
	if err := b.stopKick(ctx); err != nil {
		return err
	}
	keys := b.apps(0, b.shape.Missed)
	if _, err := b.change(ctx, keys...); err != nil {
		return err
	}
	mark, before := b.bed.Audit().Mark(), b.sight.stampsOf(keys)
	if err := b.startKick(ctx); err != nil {
		return err
	}
	began := time.Now()
	at, err := b.stamped(ctx, before)
	if err != nil {
		return err
	}
	if err := b.settled(ctx, keys, v1alpha1.PhaseSucceeded); err != nil {
		return err
	}
	traffic, err := b.calm(ctx, mark)
	if err != nil {
		return err
	}
	b.report.Traffic["outage"] = traffic
	name := fmt.Sprintf("%d changes while down", len(keys))
	percentiles := b.report.stamps("outage", since(began, at))
	b.report.atMost(5, seconds(percentiles.Max), name, "last stamp after the start of the process", "s")
	b.report.atMost(float64(len(keys)), float64(traffic.SourceReads()-keyReads), name, "reads of sources", "")
	others := traffic.Reads() - (traffic.SourceReads() - keyReads) - readsPerRestart*len(keys)
	b.report.atMost(constantReads, float64(others), name, fmt.Sprintf("other reads beyond %d per restart", readsPerRestart), "")
	return nil
}
