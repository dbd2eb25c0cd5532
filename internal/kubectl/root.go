// Package kubectl is the plugin `kubectl kick`. It shows what KICK waits for and why, and asks for restarts. What it says
// about a decision it computes with the core that the controllers use, on facts gathered by the same code; the only
// things it ever writes are KickRequests, when asked to. It never reads the content of a Secret or ConfigMap.
package kubectl

import (
	"context"
	"errors"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	ctrl "sigs.k8s.io/controller-runtime"
)

// errFindings ends a command that has said all there is to say, and has to exit with 1 all the same.
var errFindings = errors.New("")

// Run runs the plugin and returns its exit code.
func Run(ctx context.Context, version string, streams genericiooptions.IOStreams, arguments []string) int {
	ctrl.SetLogger(logr.Discard())
	root := newRoot(version, streams)
	root.SetArgs(arguments)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errFindings):
	default:
		(&connection{streams: streams}).remark("error: %s", advised(err))
	}
	return 1
}

func newVersion(c *connection) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version of the plugin",
		Long:  "Shows the version of the plugin. `kubectl kick doctor` shows that of KICK in the cluster, too.",
		Args:  cobra.NoArgs,
		Run:   func(*cobra.Command, []string) { c.say("kubectl kick version %s", c.version) },
	}
}

func newRoot(version string, streams genericiooptions.IOStreams) *cobra.Command {
	to := &connection{
		flags: genericclioptions.NewConfigFlags(true), streams: streams, version: version,
	}
	root := &cobra.Command{
		Use:   "kubectl-kick",
		Short: "Show what KICK does and why, and ask it for restarts",
		Long: "Shows what KICK waits for and why, asks for restarts, tries policies out and finds what is wrong with an\n" +
			"installation. It writes nothing but KickRequests, and only in `restart`. It shows no values of Secrets and\n" +
			"ConfigMaps, and reads none.",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl kick"},
	}
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	root.SetIn(streams.In)
	flags := root.PersistentFlags()
	to.flags.AddFlags(flags)
	flags.StringVar(&to.kickNamespace, "kick-namespace", defaultKickNamespace, "The namespace that KICK is installed in")
	for _, add := range []func(*connection) *cobra.Command{
		newStatus, newExplain, newWait, newRestart, newPreview, newCalendar, newTimeline, newDoctor, newMigrate, newVersion,
	} {
		root.AddCommand(add(to))
	}
	return root
}
