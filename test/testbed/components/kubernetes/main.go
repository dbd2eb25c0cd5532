// Command kubernetes is one binary that holds a whole control plane: etcd, the
// API server, the controller manager, the scheduler and kubectl. Linking them
// together costs one link instead of five, and lets them share most of their
// code on disk.
//
// The component is chosen by the name the binary is called by, or by its first
// argument.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	kubectlcmd "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// components maps the name of each component to its main function.
var components = map[string]func() int{
	"etcd":                    etcd,
	"kube-apiserver":          command(apiserver.NewAPIServerCommand),
	"kube-controller-manager": command(controllermanager.NewControllerManagerCommand),
	"kube-scheduler":          command(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
	"kubectl":                 kubectl,
}

func main() {
	run, ok := components[filepath.Base(os.Args[0])]
	if !ok && len(os.Args) > 1 {
		os.Args = os.Args[1:]
		run, ok = components[os.Args[0]]
	}
	if !ok {
		fmt.Fprintf(os.Stderr, "usage: kubernetes %s [flags]\n", strings.Join(names(), "|"))
		os.Exit(2)
	}
	os.Exit(run())
}

// command defers the construction of a cobra command: building one registers
// global flags, and no two components may do so in one process.
func command(build func() *cobra.Command) func() int {
	return func() int { return cli.Run(build()) }
}

func etcd() int {
	etcdmain.Main(os.Args)
	return 0
}

// kubectl prints its own errors, so that they read as a user knows them.
func kubectl() int {
	if err := cli.RunNoErrOutput(kubectlcmd.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err)
	}
	return 0
}

func names() []string {
	var all []string
	for name := range components {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}
