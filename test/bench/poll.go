package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// patience ends a phase that hangs.
const patience = 20 * time.Minute

// poll asks until the answer is yes.
func (b *bench) poll(ctx context.Context, interval time.Duration, what string, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		ok, err := done()
		if err != nil {
			return fmt.Errorf("wait for %s: %w", what, err)
		}
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, ctx.Err())
		case <-ticker.C:
		}
	}
}

// parallel runs a step for each of n indices, so many at a time.
func parallel(n, workers int, step func(index int) error) error {
	var all sync.WaitGroup
	indices := make(chan int)
	faults := make([]error, n)
	for range min(workers, n) {
		all.Go(func() {
			for i := range indices {
				faults[i] = step(i)
			}
		})
	}
	for i := range n {
		indices <- i
	}
	close(indices)
	all.Wait()
	return errors.Join(faults...)
}
