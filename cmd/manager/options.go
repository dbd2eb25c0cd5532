package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validation"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/kick-dev/kick/webhooks"
)

// options are what the command line says.
type options struct {
	watchNamespaces      []string
	leaderElect          bool
	replicas             int
	requestTTL           time.Duration
	workers              int
	maxConcurrent        int
	kubeAPIQPS           float64
	kubeAPIBurst         int
	metricsAddress       string
	metricsAuth          bool
	probeAddress         string
	pprofAddress         string
	webhook              bool
	webhookPort          int
	webhookCertDir       string
	webhookConfiguration string
	namespace            string
	serviceAccount       string
	exempt               webhooks.Exemptions
	gitOps               gitOpsOptions
	notifications        notificationOptions
	tracing              tracingOptions
	showVersion          bool
	logging              zap.Options
}

// noMetrics is the address that turns the metrics endpoint off.
const noMetrics = "0"

func parseOptions(arguments []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("manager", flag.ContinueOnError)
	o.bindController(flags)
	o.bindServers(flags)
	o.gitOps.bind(flags)
	o.notifications.bind(flags)
	o.tracing.bind(flags)
	o.bindGuard(flags)
	flags.BoolVar(&o.showVersion, "version", false, "Print the version and exit.")
	o.logging.BindFlags(flags)
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q: all settings are flags", flags.Arg(0))
	}
	return o, o.validate()
}

// bindController binds the flags about what KICK does.
func (o *options) bindController(flags *flag.FlagSet) {
	flags.StringVar(&o.namespace, "namespace", os.Getenv("POD_NAMESPACE"),
		"KICK's own namespace, where it keeps its ledger; the default is the environment variable POD_NAMESPACE.")
	flags.Func("watch-namespaces",
		"Namespaces to work in, separated by commas. With them KICK asks for nothing outside of these, its own namespace and those of "+
			"Argo CD, so that Roles there are rights enough. (default all namespaces)",
		func(text string) error {
			o.watchNamespaces = listOf(text)
			return nil
		})
	flags.BoolVar(&o.leaderElect, "leader-elect", true,
		"Elect a leader among the replicas. Only a single replica may run without.")
	flags.IntVar(&o.replicas, "replicas", 1,
		"How many replicas are meant to run: more than one is refused without --leader-elect.")
	flags.DurationVar(&o.requestTTL, "request-ttl", 24*time.Hour,
		"How long a KickRequest is kept after its end.")
	flags.IntVar(&o.workers, "workers", 32,
		"How many sources, and how many workloads, are worked on at the same time.")
	flags.IntVar(&o.maxConcurrent, "max-concurrent-restarts", 50,
		"How many workloads of the cluster may be restarting at the same time; 0 sets no limit.")
	flags.Float64Var(&o.kubeAPIQPS, "kube-api-qps", 500,
		"Requests per second to the API server for each kind of object, on average.")
	flags.IntVar(&o.kubeAPIBurst, "kube-api-burst", 1000,
		"Requests to the API server for each kind of object at once, after a pause.")
}

// bindServers binds the flags about what KICK serves.
func (o *options) bindServers(flags *flag.FlagSet) {
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", ":8443",
		"Address of the metrics endpoint, served over TLS; 0 turns it off.")
	flags.BoolVar(&o.metricsAuth, "metrics-auth", true,
		"Serve metrics only to those who may get /metrics, as reviews of their tokens say. Otherwise whoever reaches the port is answered.")
	flags.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081",
		"Address of /healthz and /readyz.")
	flags.StringVar(&o.pprofAddress, "pprof-bind-address", "0",
		"Address of /debug/pprof, such as localhost:6060, for whoever measures KICK; 0 turns it off. It asks nobody who they are.")
	flags.BoolVar(&o.webhook, "webhook", true,
		"Serve the admission webhooks. Without them no certificate is needed, nothing checks what the CRDs cannot, and KickRequests "+
			"override nothing.")
	flags.IntVar(&o.webhookPort, "webhook-port", 9443,
		"Port of the admission webhooks.")
	flags.StringVar(&o.webhookCertDir, "webhook-cert-dir", "/etc/kick/webhook-certs",
		"Directory with the webhook's tls.crt and tls.key; read again when they change.")
	flags.StringVar(&o.webhookConfiguration, "webhook-configuration", "",
		"ValidatingWebhookConfiguration that has to trust the webhook's certificate before a replica is ready; empty means that readiness "+
			"does not depend on it.")
}

// bindGuard binds the flags about whose restarts the guard lets pass.
func (o *options) bindGuard(flags *flag.FlagSet) {
	flags.StringVar(&o.serviceAccount, "service-account-name", os.Getenv("SERVICE_ACCOUNT_NAME"),
		"Name of KICK's own service account, whose restarts the guard lets pass; the default is the environment variable "+
			"SERVICE_ACCOUNT_NAME.")
	flags.Var((*list)(&o.exempt.Users), "guard-exempt-users",
		"Users who may restart managed workloads by hand, separated by commas; may be given several times.")
	flags.Var((*list)(&o.exempt.Groups), "guard-exempt-groups",
		"Groups whose members may restart managed workloads by hand, separated by commas; may be given several times.")
}

// list is a flag of several values.
type list []string

// String implements flag.Value.
func (l *list) String() string { return strings.Join(*l, ",") }

// Set implements flag.Value: it adds values separated by commas.
func (l *list) Set(values string) error {
	for value := range strings.SplitSeq(values, ",") {
		if value = strings.TrimSpace(value); value != "" {
			*l = append(*l, value)
		}
	}
	return nil
}

// validate names every setting that cannot be worked with.
func (o options) validate() error {
	if o.showVersion {
		return nil
	}
	var faults []error
	if o.namespace == "" {
		faults = append(faults, errors.New("--namespace is empty and POD_NAMESPACE is not set: say in which namespace KICK runs"))
	}
	if o.requestTTL <= 0 {
		faults = append(faults, fmt.Errorf("--request-ttl=%s must be positive, for example 24h", o.requestTTL))
	}
	if o.workers <= 0 {
		faults = append(faults, fmt.Errorf("--workers=%d must be at least 1", o.workers))
	}
	if o.maxConcurrent < 0 {
		faults = append(faults, fmt.Errorf("--max-concurrent-restarts=%d must not be negative; 0 sets no limit", o.maxConcurrent))
	}
	if o.kubeAPIQPS <= 0 || o.kubeAPIBurst <= 0 {
		faults = append(faults, fmt.Errorf("--kube-api-qps=%g and --kube-api-burst=%d must be positive", o.kubeAPIQPS, o.kubeAPIBurst))
	}
	if o.webhookPort < 1 || o.webhookPort > 65535 {
		faults = append(faults, fmt.Errorf("--webhook-port=%d is not a port", o.webhookPort))
	}
	if o.replicas > 1 && !o.leaderElect {
		faults = append(faults, fmt.Errorf("--replicas=%d needs --leader-elect: two managers without a leader restart workloads twice",
			o.replicas))
	}
	return errors.Join(append(faults, o.validateWatched()...)...)
}

// validateWatched checks what --watch-namespaces says and what goes with it.
func (o options) validateWatched() []error {
	var faults []error
	for i, name := range o.watchNamespaces {
		for _, fault := range validation.ValidateNamespaceName(name, false) {
			faults = append(faults, fmt.Errorf("--watch-namespaces: %q is no name of a namespace: %s", name, fault))
		}
		if slices.Contains(o.watchNamespaces[:i], name) {
			faults = append(faults, fmt.Errorf("--watch-namespaces names %q twice", name))
		}
	}
	if o.namespace != "" && slices.Contains(o.watchNamespaces, o.namespace) {
		faults = append(faults, fmt.Errorf("--watch-namespaces names %q, KICK's own namespace, which is never managed", o.namespace))
	}
	if len(o.watchNamespaces) == 0 {
		return faults
	}
	if o.metricsAuth && o.metricsAddress != noMetrics {
		faults = append(faults, errors.New("--metrics-auth takes rights in the whole cluster, which --watch-namespaces does without: "+
			"say --metrics-auth=false, or --metrics-bind-address=0 for no metrics"))
	}
	if o.webhookConfiguration != "" {
		faults = append(faults, errors.New("--webhook-configuration takes rights in the whole cluster: "+
			"leave it out with --watch-namespaces"))
	}
	return faults
}
