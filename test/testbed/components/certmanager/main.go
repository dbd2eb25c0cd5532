// Command cert-manager runs the controllers of cert-manager that issue
// self-signed and CA certificates, together with its CA injector, in one
// process. Everything that talks to the outside world (ACME, Vault, Venafi) and
// cert-manager's own webhook are left out.
package main

import (
	"context"
	"flag"
	"log"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// apiRate is generous: a testbed has one user.
const apiRate = 500

func main() {
	// Libraries have put flags of their own into the default set.
	flags := flag.NewFlagSet("cert-manager", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "how to reach the cluster")
	namespace := flags.String("namespace", "cert-manager", "namespace of the Secrets that ClusterIssuers use")
	healthAddress := flags.String("health-address", "", "address that answers 200 once the controllers run")
	_ = flags.Parse(os.Args[1:])

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	ctrl.SetLogger(klog.Background())
	if err := run(ctx, *kubeconfig, *namespace, *healthAddress); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, kubeconfig, namespace, healthAddress string) error {
	group, ctx := errgroup.WithContext(ctx)
	var ready atomic.Bool
	group.Go(func() error { return serveHealth(ctx, healthAddress, &ready) })

	issuing, err := newIssuing(ctx, kubeconfig, namespace)
	if err != nil {
		return err
	}
	injector, err := newInjector(ctx, kubeconfig)
	if err != nil {
		return err
	}
	group.Go(func() error { return issuing.run(ctx) })
	group.Go(func() error { return injector.Start(ctx) })
	if injector.GetCache().WaitForCacheSync(ctx) {
		ready.Store(true)
	}
	return group.Wait()
}

// serveHealth answers every request with 200 when ready, with 503 before.
func serveHealth(ctx context.Context, address string, ready *atomic.Bool) error {
	if address == "" {
		return nil
	}
	server := &http.Server{Addr: address, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !ready.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.ListenAndServe(); err != http.ErrServerClosed {
		return err
	}
	return nil
}
