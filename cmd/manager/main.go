// Command manager runs KICK: the controllers, on the elected leader, and the admission webhooks, on every replica.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // A schedule's time zone must not depend on the image.

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	corev1 "k8s.io/api/core/v1"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/controllers"
	"github.com/kick-dev/kick/internal/cluster/servertime"
	"github.com/kick-dev/kick/internal/cluster/source"
	"github.com/kick-dev/kick/internal/cluster/watching"
	"github.com/kick-dev/kick/internal/cluster/workload"
	"github.com/kick-dev/kick/internal/report"
	"github.com/kick-dev/kick/webhooks"
)

// version is set by the linker.
var version = "development"

func main() {
	o, err := parseOptions(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		err = run(o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "manager:", err)
		os.Exit(1)
	}
}

// gcPercent is how much garbage may pile up beside what is in use. KICK holds much that lives long, its caches, and works
// little: memory is a little dearer to it than the time of the collector. The environment variable GOGC says otherwise.
const gcPercent = 75

func run(o options) error {
	if o.showVersion {
		fmt.Println(version)
		return nil
	}
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&o.logging)))
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the API server: %w", err)
	}
	serverClock := servertime.New(localClock())
	config.QPS, config.Burst = float32(o.kubeAPIQPS), o.kubeAPIBurst
	config.UserAgent = "kick/" + version
	config.Wrap(serverClock.Wrap)
	watches := watching.New(clock.RealClock{})
	config.Wrap(watches.Wrap)
	sources := &source.Cache{}
	mgr, err := ctrl.NewManager(config, managerOptions(o, sources))
	if err != nil {
		return fmt.Errorf("set up the manager: %w", err)
	}
	answers, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("set up the clock: %w", err)
	}
	// Everybody who is authenticated may read the version, and the date comes with it.
	serverClock.AskWith(func(ctx context.Context) error { return answers.RESTClient().Get().AbsPath("/version").Do(ctx).Error() })
	traces, flush, err := o.tracing.start(o.namespace, ctrl.Log)
	if err != nil {
		return fmt.Errorf("set up the traces: %w", err)
	}
	defer flush()
	if err := addParts(mgr, o, sources, serverClock, traces); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("watches", watches.Check); err != nil {
		return fmt.Errorf("add the watches' readiness check: %w", err)
	}
	ctrl.Log.Info("starting", "version", version, "namespace", o.namespace, "watches", watched(o),
		"leaderElection", o.leaderElect, "webhook", o.webhook, "metrics", o.metricsAddress)
	if err := mgr.Start(ctrl.SetupSignalHandler()); err != nil {
		return fmt.Errorf("run the manager: %w", err)
	}
	return nil
}

func addParts(mgr ctrl.Manager, o options, sources *source.Cache, serverClock *servertime.Clock, traces *report.Traces) error {
	if err := report.RegisterBuild(metrics.Registry, version); err != nil {
		return fmt.Errorf("register the version: %w", err)
	}
	if err := report.RegisterLeader(metrics.Registry, mgr.Elected()); err != nil {
		return fmt.Errorf("register the leader: %w", err)
	}
	err := controllers.SetupWithManager(mgr, controllers.Options{
		Namespace:             o.namespace,
		WatchNamespaces:       cachedNamespaces(o),
		Sources:               sources.Reader(mgr.GetCache()),
		RequestTTL:            o.requestTTL,
		Workers:               o.workers,
		MaxConcurrentRestarts: o.maxConcurrent,
		OverrideUnchecked:     !o.webhook,
		GitOps:                o.gitOps.reader(o.watchNamespaces),
		Notifying:             o.notifications.permitted(),
		Traces:                traces,
		Clock:                 serverClock,
	})
	if err != nil {
		return fmt.Errorf("set up the controllers: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("add the liveness check: %w", err)
	}
	if err := mgr.AddReadyzCheck("caches", cachesSynced(mgr)); err != nil {
		return fmt.Errorf("add the caches' readiness check: %w", err)
	}
	if !o.webhook {
		return nil
	}
	return addWebhooks(mgr, o, serverClock)
}

// addWebhooks adds the admission webhooks, and the checks that let a replica be ready when it answers them.
func addWebhooks(mgr ctrl.Manager, o options, serverClock *servertime.Clock) error {
	err := webhooks.SetupWithManager(mgr, webhooks.Options{
		Namespace:      o.namespace,
		ServiceAccount: o.serviceAccount,
		Exempt:         o.exempt,
		Clock:          serverClock,
	})
	if err != nil {
		return fmt.Errorf("set up the webhooks: %w", err)
	}
	if err := report.RegisterCertificate(metrics.Registry, certificateExpiry(o.webhookCertDir)); err != nil {
		return fmt.Errorf("register the webhook's certificate: %w", err)
	}
	if err := mgr.AddReadyzCheck("webhook", newServing(o, clock.RealClock{}).check); err != nil {
		return fmt.Errorf("add the webhook's readiness check: %w", err)
	}
	if o.webhookConfiguration == "" {
		return nil
	}
	if err := mgr.AddReadyzCheck("trust", newTrust(mgr.GetAPIReader(), o).check); err != nil {
		return fmt.Errorf("add the readiness check of the webhook's certificate: %w", err)
	}
	return nil
}

// watched says which namespaces KICK works in.
func watched(o options) string {
	if len(o.watchNamespaces) == 0 {
		return "all namespaces"
	}
	return strings.Join(o.watchNamespaces, ",")
}

// cachedNamespaces are those whose objects are read, nil for all: KICK's own is among them, so that a policy there can
// be told that it manages nothing.
func cachedNamespaces(o options) []string {
	if len(o.watchNamespaces) == 0 {
		return nil
	}
	return append(slices.Clone(o.watchNamespaces), o.namespace)
}

// firstLists is how long the controllers wait for the first lists of what they watch: for as long as it takes. What is in
// the way, a right or a kind that is missing, is in the log, and to end and start again would not help.
const firstLists = 10 * 365 * 24 * time.Hour

func managerOptions(o options, sources *source.Cache) ctrl.Options {
	return ctrl.Options{
		Scheme:     newScheme(),
		Cache:      cacheOptions(cachedNamespaces(o), sources),
		Controller: ctrlconfig.Controller{CacheSyncTimeout: firstLists},
		Client: client.Options{Cache: &client.CacheOptions{
			// Sources are cached as metadata only, and ledgers not at all.
			DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}, &v1alpha1.KickLedger{}},
		}},
		LeaderElection:                o.leaderElect,
		LeaderElectionID:              "kick",
		LeaderElectionNamespace:       o.namespace,
		LeaderElectionReleaseOnCancel: true,
		HealthProbeBindAddress:        o.probeAddress,
		PprofBindAddress:              o.pprofAddress,
		Metrics:                       metricsOptions(o),
		WebhookServer:                 webhook.NewServer(webhook.Options{Port: o.webhookPort, CertDir: o.webhookCertDir}),
	}
}

func metricsOptions(o options) metricsserver.Options {
	served := metricsserver.Options{BindAddress: o.metricsAddress, SecureServing: true}
	if o.metricsAuth {
		served.FilterProvider = scrapersOnly
	}
	return served
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err) // Only two types under one name can bring this about.
		}
	}
	return scheme
}

// cacheOptions keep memory proportional to the number of objects and not to their size. Nothing outside of the given
// namespaces is listed or watched; nil stands for all.
func cacheOptions(namespaces []string, sources *source.Cache) cache.Options {
	shared := true // What is read from the cache is never modified.
	byObject := map[client.Object]cache.ByObject{
		&corev1.Secret{}:        {Transform: source.Slim, UnsafeDisableDeepCopy: &shared},
		&corev1.ConfigMap{}:     {Transform: source.Slim, UnsafeDisableDeepCopy: &shared},
		&v1alpha1.KickRequest{}: {Transform: controllers.SlimRequest, UnsafeDisableDeepCopy: &shared},
	}
	for _, object := range workload.Objects() {
		byObject[object] = cache.ByObject{Transform: workload.Slim, UnsafeDisableDeepCopy: &shared}
	}
	only := map[string]cache.Config{}
	for _, namespace := range namespaces {
		only[namespace] = cache.Config{}
	}
	return cache.Options{
		DefaultTransform:  cache.TransformStripManagedFields(),
		DefaultNamespaces: only,
		ByObject:          byObject,
		NewInformer:       sources.NewInformer,
	}
}
