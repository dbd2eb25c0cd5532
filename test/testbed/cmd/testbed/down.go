package main

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"syscall"
	"time"

	"github.com/kick-dev/kick/test/testbed"
)

const (
	// downGrace is what a supervisor gets to stop its testbed.
	downGrace = time.Minute
	// killGrace is what the kernel gets to end processes that were killed.
	killGrace = 15 * time.Second
)

// down stops the testbed in a folder, if there is one.
func down(ctx context.Context, arguments []string) error {
	var dir string
	flags := flag.NewFlagSet("down", flag.ContinueOnError)
	addDir(flags, &dir)
	if err := parse(flags, arguments); err != nil {
		return err
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	pid, running, err := testbed.Owner(dir)
	if err != nil {
		return err
	}
	if !running {
		fmt.Printf("no testbed runs in %s\n", dir)
		return nil
	}
	_ = syscall.Kill(pid, syscall.SIGTERM)
	if !awaitGone(ctx, dir, downGrace) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		if !awaitGone(ctx, dir, killGrace) {
			return fmt.Errorf("processes of the testbed in %s are still alive", dir)
		}
	}
	fmt.Printf("stopped the testbed in %s\n", dir)
	return nil
}

// awaitGone waits until no process of the testbed is alive.
func awaitGone(ctx context.Context, dir string, patience time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		if _, running, err := testbed.Owner(dir); err == nil && !running {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(50 * time.Millisecond):
		}
	}
}
