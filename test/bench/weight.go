package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// bytes doubles the size of the Secrets that nobody consumes, and compares the memory of a KICK that starts on them (C112).
func (b *bench) bytes(ctx context.Context) error {
	before, err := b.afresh(ctx)
	if err != nil {
		return err
	}
	var releases []client.Object
	for _, object := range b.shape.stock() {
		if held, ok := object.(*corev1.Secret); ok && held.Type != "" {
			releases = append(releases, held)
		}
	}
	patch := client.RawPatch("application/merge-patch+json",
		fmt.Appendf(nil, `{"data":{"more":%q}}`, base64.StdEncoding.EncodeToString(make([]byte, b.shape.ReleaseBytes))))
	mark := b.bed.Audit().Mark()
	if err := parallel(len(releases), loaders, func(i int) error { return b.k8s.Patch(ctx, releases[i], patch) }); err != nil {
		return fmt.Errorf("double the release records: %w", err)
	}
	traffic, err := b.calm(ctx, mark)
	if err != nil {
		return err
	}
	after, err := b.afresh(ctx)
	if err != nil {
		return err
	}
	b.report.Traffic["bytes"] = traffic
	name := fmt.Sprintf("%d release records doubled", len(releases))
	b.report.atMost(0, float64(traffic.Total()), name, "requests", "")
	b.report.atMost(5, growth(before.RSS, after.RSS), name, "growth of RSS after a start", "%")
	b.report.atMost(5, growth(before.PeakRSS, after.PeakRSS), name, "growth of peak RSS at a start", "%")
	return nil
}

// afresh starts KICK anew and returns its usage once it has nothing to do.
func (b *bench) afresh(ctx context.Context) (Usage, error) {
	if err := b.stopKick(ctx); err != nil {
		return Usage{}, err
	}
	mark := b.bed.Audit().Mark()
	if err := b.startKick(ctx); err != nil {
		return Usage{}, err
	}
	if err := b.ready(ctx); err != nil {
		return Usage{}, err
	}
	if _, err := b.calm(ctx, mark); err != nil {
		return Usage{}, err
	}
	return b.usage()
}

// growth in percent.
func growth(from, to int64) float64 { return 100 * float64(to-from) / float64(from) }

// bigSecret changes a consumed Secret of 1 MiB every second.
func (b *bench) bigSecret(ctx context.Context) error {
	const size = 1000 << 10 // What base64 and the object around it leave of 1.5 MiB.
	key := b.apps(0, 1)[0]
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	var warm Usage
	rounds := max(int(b.options.idle/time.Second), 2)
	for round := range rounds {
		content := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{byte(round)}, size))
		patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"data":{"value":%q}}`, content))
		if err := b.k8s.Patch(ctx, secret(key.Namespace, key.Name, 0), patch); err != nil {
			return fmt.Errorf("change the big Secret: %w", err)
		}
		if round == rounds/2 {
			var err error
			if warm, err = b.usage(); err != nil {
				return err
			}
		}
		<-ticker.C
	}
	after, err := b.usage()
	if err != nil {
		return err
	}
	name := fmt.Sprintf("a Secret of 1 MiB changed %d times", rounds)
	b.report.atMost(5, growth(warm.RSS, after.RSS), name, "growth of RSS in the second half", "%")
	_, err = b.calm(ctx, b.bed.Audit().Mark())
	return err
}
