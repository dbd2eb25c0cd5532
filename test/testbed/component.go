package testbed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/kick-dev/kick/test/testbed/internal/loopback"
	"github.com/kick-dev/kick/test/testbed/internal/process"
)

// Names of the components of a testbed.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kwok              = "kwok"
	CertManager       = "cert-manager"
	// SecondAPIServer exists once StartSecondAPIServer has succeeded.
	SecondAPIServer = "kube-apiserver-2"
)

const (
	// bootTimeout bounds the start of one component, on a busy machine.
	bootTimeout = 2 * time.Minute
	// componentGrace is what a component gets to end after SIGTERM.
	componentGrace = 15 * time.Second
	pollInterval   = 50 * time.Millisecond
)

// Component is a process of the control plane.
type Component struct {
	name    string
	spec    process.Spec
	ready   func(context.Context) error
	spawner *process.Spawner

	mu      sync.Mutex
	process *process.Process
}

// StartError tells why a component did not start.
type StartError struct {
	Component string
	// Log is the path of the component's log, Tail its last lines.
	Log  string
	Tail string
	Err  error
}

func (e *StartError) Error() string {
	return fmt.Sprintf("start %s: %v; last lines of %s:\n%s", e.Component, e.Err, e.Log, e.Tail)
}

func (e *StartError) Unwrap() error { return e.Err }

// Name is one of the names of components.
func (c *Component) Name() string { return c.name }

// Log is the path of the component's log.
func (c *Component) Log() string { return c.spec.Log }

// PID is the id of the current or last process.
func (c *Component) PID() int { return c.current().PID() }

// Running tells whether the process lives; a paused process does.
func (c *Component) Running() bool { return c.current().Alive() }

// Stop sends SIGTERM and waits until the process is gone. A paused process is
// resumed for that.
func (c *Component) Stop() {
	_ = c.Resume()
	c.current().Stop(componentGrace)
}

// Kill sends SIGKILL and waits until the process is gone.
func (c *Component) Kill() { c.current().Kill() }

// Pause freezes the process, so that it neither answers nor closes a
// connection.
func (c *Component) Pause() error { return c.current().Pause() }

// Resume ends a Pause.
func (c *Component) Resume() error { return c.current().Resume() }

// Start starts the component again, with the ports and data it had before, and
// waits until it is ready. It does nothing to a component that runs.
func (c *Component) Start(ctx context.Context) error {
	if c.Running() {
		return nil
	}
	return c.start(ctx)
}

func (c *Component) current() *process.Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.process
}

func (c *Component) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()
	offset := fileSize(c.spec.Log)
	started, err := c.spawner.Start(c.spec)
	if err != nil {
		return fmt.Errorf("start %s: %w", c.name, err)
	}
	c.mu.Lock()
	c.process = started
	c.mu.Unlock()
	if err := c.awaitReady(ctx, started); err != nil {
		started.Kill()
		return &StartError{Component: c.name, Log: c.spec.Log, Tail: logTail(c.spec.Log, offset), Err: err}
	}
	return nil
}

func (c *Component) awaitReady(ctx context.Context, p *process.Process) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		attempt, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := c.ready(attempt)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-p.Done():
			return fmt.Errorf("it exited with code %d", p.Exit().Code)
		case <-ctx.Done():
			return fmt.Errorf("not ready in time: %w", errors.Join(err, ctx.Err()))
		case <-ticker.C:
		}
	}
}

// launch is how to run a component, once its ports are known.
type launch struct {
	path  string
	args  []string
	ready func(context.Context) error
}

// boot starts a component for the first time, with free ports. A port may be
// taken by somebody else between choice and use; then others are chosen.
func (t *Testbed) boot(ctx context.Context, name string, ports int, plan func(ports []int) launch) error {
	const attempts = 5
	var err error
	for range attempts {
		var chosen []int
		if chosen, err = t.freePorts(ports); err != nil {
			return err
		}
		component := t.newComponent(name, plan(chosen))
		began := time.Now()
		if err = component.start(ctx); err == nil {
			t.add(component)
			t.progress("%-24s ready in %s", name, time.Since(began).Round(100*time.Millisecond))
			return nil
		}
		var failed *StartError
		if !errors.As(err, &failed) || !strings.Contains(failed.Tail, "address already in use") {
			return err
		}
	}
	return err
}

func (t *Testbed) newComponent(name string, l launch) *Component {
	return &Component{
		name: name,
		spec: process.Spec{
			Path: l.path,
			Args: l.args,
			Env:  []string{"HOME=" + t.options.Dir, "TMPDIR=" + os.TempDir(), "PATH=" + os.Getenv("PATH")},
			Dir:  t.options.Dir,
			Log:  filepath.Join(t.logDir(), name+".log"),
		},
		ready:   l.ready,
		spawner: t.spawner,
	}
}

func (t *Testbed) freePorts(n int) ([]int, error) {
	ports := make([]int, n)
	for i := range ports {
		var err error
		if ports[i], err = t.ports.Free(); err != nil {
			return nil, err
		}
	}
	return ports, nil
}

func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// logTail returns the last lines of what was logged after offset.
func logTail(path string, offset int64) string {
	file, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return err.Error()
	}
	return lastLines(file, 20)
}

// local is the address of a loopback port.
func local(port int) string { return loopback.Address(port) }
