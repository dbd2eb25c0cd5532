// Command testbed runs a Kubernetes control plane on this machine, for use by
// hand and from make. See the README beside its module.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

const usage = `usage: testbed COMMAND [flags]

  build    build the components that are not up to date
  up       start a testbed and return when it is ready
  down     stop it and wait until every process of it is gone
  status   show what runs
  kubectl  run kubectl against it: testbed kubectl -- get pods
  helm     run helm against it: testbed helm -- list

Each command explains its flags with -h.
`

// commands maps each command to its function. "supervise" is not for users: it
// is the process that "up" leaves behind.
var commands = map[string]func(context.Context, []string) error{
	"build":     build,
	"up":        up,
	"supervise": supervise,
	"down":      down,
	"status":    status,
	"kubectl":   kubectl,
	"helm":      helm,
}

func main() {
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	// The signals are watched until the process exits.
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	os.Exit(exitCode(commands[os.Args[1]](ctx, os.Args[2:])))
}

func exitCode(err error) int {
	var client *exec.ExitError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, &client):
		// kubectl and helm have said what went wrong.
		return client.ExitCode()
	default:
		fmt.Fprintln(os.Stderr, "testbed:", err)
		return 1
	}
}
