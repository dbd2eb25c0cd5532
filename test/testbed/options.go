package testbed

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"github.com/kick-dev/kick/test/testbed/internal/kubelet"
)

// Options describe a testbed.
type Options struct {
	// Dir is the testbed's own folder, for state, logs and kubeconfig. State of
	// a former testbed in it is removed.
	Dir string
	// Binaries are what Build returned.
	Binaries Binaries
	// Nodes is the number of Nodes; the default is 3.
	Nodes int
	// CertManager also starts cert-manager's controllers.
	CertManager bool
	// Images maps image repositories to local executables. Pods whose first
	// container has such an image run as processes. A key with a tag goes before
	// one without, so that two versions can be told apart.
	Images map[string]string
	// PodHook, if not nil, is called before each start of a container that runs
	// as a process.
	PodHook func(pod *corev1.Pod, container string, launch *PodLaunch)
	// Stages are further KWOK stages, as YAML documents. To keep the ordinary
	// stages away from the same Pods, hold these by LabelHold.
	Stages []string
	// Out receives lines of progress; nil discards them.
	Out io.Writer
}

// PodLaunch is what a PodHook may change: Server is the URL of the API server in
// the container's kubeconfig, Env is added to its environment.
type PodLaunch = kubelet.Launch

const defaultNodes = 3

// complete checks the options and fills in defaults.
func (o Options) complete() (Options, error) {
	if o.Dir == "" {
		return o, errors.New("a testbed needs a folder")
	}
	var err error
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return o, fmt.Errorf("find the folder: %w", err)
	}
	if o.Nodes == 0 {
		o.Nodes = defaultNodes
	}
	if o.Nodes < 0 || o.Nodes > maxNodes {
		return o, fmt.Errorf("a testbed has 1 to %d Nodes, not %d", maxNodes, o.Nodes)
	}
	if o.Out == nil {
		o.Out = io.Discard
	}
	images := map[string]string{}
	for repository, executable := range o.Images {
		if images[repository], err = filepath.Abs(executable); err != nil {
			return o, fmt.Errorf("find the executable of %s: %w", repository, err)
		}
		if _, err := os.Stat(executable); err != nil {
			return o, fmt.Errorf("find the executable of %s: %w", repository, err)
		}
	}
	o.Images = images
	return o, nil
}
