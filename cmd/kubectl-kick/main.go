// Command kubectl-kick is the plugin for kubectl that shows and asks for restarts: `kubectl kick`.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // A schedule's time zone must not depend on the machine.

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kick-dev/kick/internal/kubectl"
)

// version is set by the linker.
var version = "development"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	code := kubectl.Run(ctx, version, streams, os.Args[1:])
	stop()
	os.Exit(code)
}
