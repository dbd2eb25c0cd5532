package kubectl

import (
	"fmt"
	"io"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/servertime"
)

// defaultKickNamespace is where the documentation has KICK installed.
const defaultKickNamespace = "kick-system"

// connection is how a command reaches the cluster: by the flags, which are those of kubectl.
type connection struct {
	flags         *genericclioptions.ConfigFlags
	streams       genericiooptions.IOStreams
	version       string
	kickNamespace string
}

// session is a connection in use.
type session struct {
	*connection
	config *rest.Config
	client client.WithWatch
	clock  *servertime.Clock
	// namespace is the one of -n or of the context.
	namespace string
}

func scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err) // Only two types under one name can bring this about.
		}
	}
	return scheme
}

// open connects.
func (c *connection) open() (*session, error) {
	namespace, _, err := c.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, fmt.Errorf("find out the namespace: %w", err)
	}
	config, err := c.flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("find the API server: %w", err)
	}
	s := &session{connection: c, config: config, namespace: namespace, clock: servertime.New(clock.RealClock{})}
	config.UserAgent = "kubectl-kick/" + c.version
	config.QPS, config.Burst = 50, 100
	config.WarningHandler = rest.NoWarnings{}
	config.Wrap(s.clock.Wrap)
	if s.client, err = client.NewWithWatch(config, client.Options{Scheme: scheme()}); err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	return s, nil
}

// now is the present time on the API server's clock.
func (s *session) now() time.Time { return s.clock.Now() }

// advised adds to an error what to do about it, where that is known.
func advised(err error) string {
	text := err.Error()
	switch {
	case meta.IsNoMatchError(err) && strings.Contains(text, v1alpha1.GroupVersion.Group):
		return text + "\nThis cluster does not know KICK's kinds. `kubectl kick doctor` says what is missing."
	case apierrors.IsForbidden(err):
		return text + "\nWhich rights a command needs: docs/kubectl-kick.md."
	default:
		return text
	}
}

// localNow is the time of this machine, for what is done without a cluster.
func localNow() time.Time { return time.Now() }

// say writes a line to standard output, remark one to standard error. Whoever does not read them misses nothing else.
func (c *connection) say(format string, args ...any) { line(c.streams.Out, format, args...) }

func (c *connection) remark(format string, args ...any) { line(c.streams.ErrOut, format, args...) }

func line(out io.Writer, format string, args ...any) {
	fmt.Fprintf(out, format+"\n", args...) //nolint:errcheck // There is nowhere to complain.
}
