package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/kick-dev/kick/webhooks"
)

// options are what the command line says.
type options struct {
	leaderElect bool
	requestTTL  time.Duration
	workers     int

	maxConcurrentRestarts int

	kubeAPIQPS     float64
	kubeAPIBurst   int
	metricsAddress string
	probeAddress   string
	webhookPort    int
	webhookCertDir string
	namespace      string
	serviceAccount string
	exempt         webhooks.Exemptions
	showVersion    bool
	gitOps         gitOpsOptions
	logging        zap.Options
}

func parseOptions(arguments []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("manager", flag.ContinueOnError)
	flags.BoolVar(&o.leaderElect, "leader-elect", true,
		"Elect a leader among the replicas. Only a single replica may run without.")
	flags.DurationVar(&o.requestTTL, "request-ttl", 24*time.Hour,
		"How long a KickRequest is kept after its end.")
	flags.IntVar(&o.workers, "workers", 8,
		"How many sources, and how many workloads, are worked on at the same time.")
	flags.IntVar(&o.maxConcurrentRestarts, "max-concurrent-restarts", 50,
		"How many workloads of the cluster may be restarting at the same time; 0 sets no limit.")
	flags.Float64Var(&o.kubeAPIQPS, "kube-api-qps", 500,
		"Requests per second to the API server for each kind of object, on average.")
	flags.IntVar(&o.kubeAPIBurst, "kube-api-burst", 1000,
		"Requests to the API server for each kind of object at once, after a pause.")
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", ":8443",
		"Address of the metrics endpoint, served over TLS to those who may get /metrics; 0 turns it off.")
	flags.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081",
		"Address of /healthz and /readyz.")
	flags.IntVar(&o.webhookPort, "webhook-port", 9443,
		"Port of the admission webhooks.")
	flags.StringVar(&o.webhookCertDir, "webhook-cert-dir", "/etc/kick/webhook-certs",
		"Directory with the webhook's tls.crt and tls.key; read again when they change.")
	flags.StringVar(&o.namespace, "namespace", os.Getenv("POD_NAMESPACE"),
		"KICK's own namespace, where it keeps its ledger; the default is the environment variable POD_NAMESPACE.")
	o.gitOps.bind(flags)
	flags.StringVar(&o.serviceAccount, "service-account-name", os.Getenv("SERVICE_ACCOUNT_NAME"),
		"Name of KICK's own service account, whose restarts the guard lets pass; the default is the environment variable SERVICE_ACCOUNT_NAME.")
	flags.Var((*list)(&o.exempt.Users), "guard-exempt-users",
		"Users who may restart managed workloads by hand, separated by commas; may be given several times.")
	flags.Var((*list)(&o.exempt.Groups), "guard-exempt-groups",
		"Groups whose members may restart managed workloads by hand, separated by commas; may be given several times.")
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
	if o.maxConcurrentRestarts < 0 {
		faults = append(faults, fmt.Errorf("--max-concurrent-restarts=%d must not be negative; 0 sets no limit", o.maxConcurrentRestarts))
	}
	if o.kubeAPIQPS <= 0 || o.kubeAPIBurst <= 0 {
		faults = append(faults, fmt.Errorf("--kube-api-qps=%g and --kube-api-burst=%d must be positive", o.kubeAPIQPS, o.kubeAPIBurst))
	}
	if o.webhookPort < 1 || o.webhookPort > 65535 {
		faults = append(faults, fmt.Errorf("--webhook-port=%d is not a port", o.webhookPort))
	}
	return errors.Join(faults...)
}
