package main

import (
	"context"
	"flag"
	"os"

	"github.com/kick-dev/kick/test/testbed"
)

func build(ctx context.Context, arguments []string) error {
	var cache string
	flags := flag.NewFlagSet("build", flag.ContinueOnError)
	addCache(flags, &cache)
	if err := parse(flags, arguments); err != nil {
		return err
	}
	_, err := testbed.Build(ctx, testbed.BuildOptions{Cache: cache, Out: os.Stdout})
	return err
}
