package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/kick-dev/kick/test/testbed"
	"github.com/kick-dev/kick/test/testbed/internal/client"
)

// status shows what runs in a folder; it fails when that is not a healthy
// testbed.
func status(ctx context.Context, arguments []string) error {
	var dir string
	flags := flag.NewFlagSet("status", flag.ContinueOnError)
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
		return fmt.Errorf("no testbed runs in %s", dir)
	}
	s, err := readState(dir)
	if err != nil {
		return err
	}
	fmt.Printf("%-24s %d\n%-24s %s\n", "owner", pid, "server", s.Server)
	for _, name := range slices.Sorted(maps.Keys(s.Components)) {
		condition := "running"
		if syscall.Kill(s.Components[name], 0) != nil {
			condition = "gone"
		}
		fmt.Printf("%-24s %d %s\n", name, s.Components[name], condition)
	}
	return healthy(ctx, dir)
}

// healthy asks the API server whether it is ready.
func healthy(ctx context.Context, dir string) error {
	s, err := readState(dir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := client.Command(ctx, dir, s.Binaries.Kubectl, "get", "--raw=/readyz").CombinedOutput()
	if err != nil {
		return errors.New("the API server is not ready: " + strings.TrimSpace(string(out)))
	}
	return nil
}
