package testbed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"github.com/kick-dev/kick/test/testbed/internal/egress"
	"github.com/kick-dev/kick/test/testbed/internal/kubelet"
	"github.com/kick-dev/kick/test/testbed/internal/loopback"
	"github.com/kick-dev/kick/test/testbed/internal/process"
)

// Testbed is a running control plane.
type Testbed struct {
	options     Options
	lock        *os.File
	spawner     *process.Spawner
	ports       loopback.Ports
	credentials *credentials

	mu         sync.Mutex
	components map[string]*Component

	// etcdURL and server are known once the ports are.
	etcdURL string
	server  string

	// socketDir is short, because the path of a unix socket has to be.
	socketDir string
	resolver  lateResolver
	proxy     *egress.Proxy
	kubelet   *kubelet.Kubelet
	informers informers.SharedInformerFactory
	halt      chan struct{}
	stop      sync.Once
}

// Start starts a testbed and returns when it is ready for use. When it fails or
// ctx ends before that, nothing is left running.
func Start(ctx context.Context, options Options) (*Testbed, error) {
	options, err := options.complete()
	if err != nil {
		return nil, fmt.Errorf("start testbed: %w", err)
	}
	t := &Testbed{options: options, components: map[string]*Component{}, halt: make(chan struct{})}
	if err := t.start(ctx); err != nil {
		return nil, errors.Join(err, t.Stop(context.WithoutCancel(ctx)))
	}
	return t, nil
}

func (t *Testbed) start(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		t.claim,
		t.listenForEgress,
		t.startEtcd,
		t.startAPIServer,
		together(
			t.startControllerManager,
			t.startScheduler,
			t.startKubelet,
			t.startNodes,
			t.startCertManager,
		),
		t.awaitCluster,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// together makes one step of several that do not depend on each other. The first
// failure ends all of them.
func together(steps ...func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		var all sync.WaitGroup
		for _, step := range steps {
			all.Go(func() {
				if err := step(ctx); err != nil {
					cancel(err)
				}
			})
		}
		all.Wait()
		return context.Cause(ctx)
	}
}

// claim takes the folder, empties it and creates credentials.
func (t *Testbed) claim(context.Context) error {
	var err error
	if t.lock, err = own(t.options.Dir); err != nil {
		return err
	}
	t.spawner = process.NewSpawner(t.lock)
	for _, state := range []string{"etcd", "pods", "pki", "helm", "logs/audit.log"} {
		if err := os.RemoveAll(filepath.Join(t.options.Dir, state)); err != nil {
			return fmt.Errorf("remove former state: %w", err)
		}
	}
	if err := os.MkdirAll(t.logDir(), 0o755); err != nil {
		return fmt.Errorf("create folder: %w", err)
	}
	t.credentials, err = newCredentials(filepath.Join(t.options.Dir, "pki"))
	return err
}

// startKubelet starts everything that follows Pods and Services.
func (t *Testbed) startKubelet(context.Context) error {
	config := t.configOf(userKubelet)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect the kubelet: %w", err)
	}
	t.informers = informers.NewSharedInformerFactory(client, 0)
	t.kubelet, err = kubelet.New(kubelet.Options{
		Client:  client,
		Images:  t.options.Images,
		Dir:     filepath.Join(t.options.Dir, "pods"),
		LogDir:  filepath.Join(t.logDir(), "pods"),
		Server:  t.server,
		Spawner: t.spawner,
		Ports:   &t.ports,
		Hook:    t.options.PodHook,
	}, t.informers)
	if err != nil {
		return err
	}
	t.resolver.set(egress.NewServices(t.informers, t.kubelet.Address))
	t.informers.Start(t.halt)
	t.informers.WaitForCacheSync(t.halt)
	return nil
}

// Stop ends all processes and returns when they are gone. Pods that run as
// processes get a few seconds to end, but no longer than ctx lives.
func (t *Testbed) Stop(ctx context.Context) error {
	var err error
	t.stop.Do(func() { err = t.shutDown(ctx) })
	return err
}

func (t *Testbed) shutDown(ctx context.Context) error {
	began := time.Now()
	if t.kubelet != nil {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			t.kubelet.Close()
		}()
		select {
		case <-ended:
		case <-ctx.Done():
		}
	}
	close(t.halt)
	if t.spawner != nil {
		t.spawner.Close()
	}
	if t.proxy != nil {
		t.proxy.Close()
	}
	var problems []error
	if t.socketDir != "" {
		problems = append(problems, os.RemoveAll(t.socketDir))
	}
	if t.lock != nil {
		problems = append(problems, t.lock.Close())
	}
	t.progress("stopped in %s", time.Since(began).Round(100*time.Millisecond))
	return errors.Join(problems...)
}

// Component returns the handle of a component, by one of the constants. It
// panics for a component that the testbed does not have.
func (t *Testbed) Component(name string) *Component {
	t.mu.Lock()
	defer t.mu.Unlock()
	component, ok := t.components[name]
	if !ok {
		panic(fmt.Sprintf("testbed has no component %q", name))
	}
	return component
}

func (t *Testbed) add(component *Component) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.components[component.name] = component
}

// Dir is the testbed's folder.
func (t *Testbed) Dir() string { return t.options.Dir }

func (t *Testbed) logDir() string { return filepath.Join(t.options.Dir, "logs") }

func (t *Testbed) progress(format string, arguments ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, _ = fmt.Fprintf(t.options.Out, format+"\n", arguments...)
}

// Components lists the components of the testbed.
func (t *Testbed) Components() []*Component {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []*Component
	for _, name := range slices.Sorted(maps.Keys(t.components)) {
		all = append(all, t.components[name])
	}
	return all
}
