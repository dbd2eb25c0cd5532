package main

import (
	"context"
	"flag"
	"os"
	"path/filepath"

	"github.com/kick-dev/kick/test/testbed"
	"github.com/kick-dev/kick/test/testbed/internal/client"
)

func kubectl(ctx context.Context, arguments []string) error {
	return runClient(ctx, "kubectl", arguments, func(b testbed.Binaries) string { return b.Kubectl })
}

func helm(ctx context.Context, arguments []string) error {
	return runClient(ctx, "helm", arguments, func(b testbed.Binaries) string { return b.Helm })
}

// runClient runs a client with what follows the flags.
func runClient(ctx context.Context, name string, arguments []string, path func(testbed.Binaries) string) error {
	var dir string
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	addDir(flags, &dir)
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	s, err := readState(dir)
	if err != nil {
		return err
	}
	cmd := client.Command(ctx, dir, path(s.Binaries), flags.Args()...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}
