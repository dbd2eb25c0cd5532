package kubelet

import (
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kick-dev/kick/test/testbed/internal/loopback"
	"github.com/kick-dev/kick/test/testbed/internal/process"
)

// processSpec translates a container to a process: paths below its mounts become
// real paths, its ports become free ports of the loopback interface.
func (c *container) processSpec() (process.Spec, error) {
	if err := c.assignPorts(); err != nil {
		return process.Spec{}, err
	}
	variables, err := c.environment(c.place)
	if err != nil {
		return process.Spec{}, err
	}
	env, err := c.completeEnvironment(variables)
	if err != nil {
		return process.Spec{}, err
	}
	return process.Spec{
		Path: c.executable,
		Args: c.arguments(variables),
		Env:  env,
		Dir:  c.worker.homeDir(),
		Log:  c.logFile(),
	}, nil
}

// arguments are those of the command, whose first word the executable stands
// for, and the args.
func (c *container) arguments(variables map[string]string) []string {
	words := c.spec.Args
	if len(c.spec.Command) > 1 {
		words = append(slices.Clone(c.spec.Command[1:]), words...)
	}
	var arguments []string
	for _, word := range words {
		word = expand(word, variables)
		flag, value, isFlag := strings.Cut(word, "=")
		if isFlag && strings.HasPrefix(word, "-") {
			arguments = append(arguments, flag+"="+c.place(value))
		} else {
			arguments = append(arguments, c.place(word))
		}
	}
	return arguments
}

// completeEnvironment adds what a container runtime, and a hook, give.
func (c *container) completeEnvironment(variables map[string]string) ([]string, error) {
	launch := Launch{Server: c.worker.kubelet.Server, Env: map[string]string{}}
	if hook := c.worker.kubelet.Hook; hook != nil {
		hook(c.worker.pod.Load(), c.spec.Name, &launch)
	}
	all := map[string]string{"HOSTNAME": c.worker.pod.Load().Name, "HOME": c.worker.homeDir(), "TMPDIR": c.worker.homeDir()}
	if temporary, ok := c.pathOf("/tmp"); ok {
		all["TMPDIR"] = temporary
	}
	kubeconfig, err := c.kubeconfig(launch.Server)
	if err != nil {
		return nil, err
	}
	if kubeconfig != "" {
		all["KUBECONFIG"] = kubeconfig
	}
	maps.Copy(all, variables)
	maps.Copy(all, launch.Env)
	var env []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		env = append(env, name+"="+all[name])
	}
	return env, nil
}

// place translates a value that is a path below a mount, a declared port, or an
// address to listen on with a declared port.
func (c *container) place(value string) string {
	if path, ok := c.pathOf(value); ok {
		return path
	}
	if local, ok := c.localPort(value); ok {
		return strconv.Itoa(local)
	}
	host, port, err := net.SplitHostPort(value)
	if err != nil || !c.listensOn(host) {
		return value
	}
	if local, ok := c.localPort(port); ok {
		return loopback.Address(local)
	}
	return value
}

// listensOn tells whether a server of this Pod would listen on the host.
func (c *container) listensOn(host string) bool {
	return slices.Contains([]string{"", "0.0.0.0", "::", "127.0.0.1", "localhost", c.worker.ip}, host)
}

func (c *container) localPort(port string) (int, bool) {
	number, err := strconv.ParseInt(port, 10, 32)
	if err != nil {
		return 0, false
	}
	local, ok := c.ports[int32(number)]
	return local, ok
}

// pathOf translates a path at or below a mount.
func (c *container) pathOf(path string) (string, bool) {
	best, found := corev1.VolumeMount{}, false
	for _, mount := range c.spec.VolumeMounts {
		under := path == mount.MountPath || strings.HasPrefix(path, strings.TrimSuffix(mount.MountPath, "/")+"/")
		if under && len(mount.MountPath) > len(best.MountPath) {
			best, found = mount, true
		}
	}
	if !found {
		return "", false
	}
	rest := strings.TrimPrefix(path, best.MountPath)
	return filepath.Join(c.worker.volumes.folder(best.Name), best.SubPath, rest), true
}

// assignPorts gives each declared port a loopback port. A restarted container
// keeps its ports, unless somebody else took one meanwhile.
func (c *container) assignPorts() error {
	for _, declared := range c.spec.Ports {
		number := declared.ContainerPort
		if current, ok := c.ports[number]; ok && loopback.IsFree(current) {
			continue
		}
		port, err := c.worker.kubelet.Ports.Free()
		if err != nil {
			return fmt.Errorf("map port %d: %w", number, err)
		}
		c.mu.Lock()
		c.ports[number] = port
		c.mu.Unlock()
		c.worker.kubelet.addresses.set(c.worker.ip, number, port)
	}
	return nil
}

func (c *container) releasePorts() {
	c.worker.kubelet.Ports.Release(slices.Collect(maps.Values(c.ports))...)
}
