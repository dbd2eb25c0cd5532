package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/report"
	"github.com/kick-dev/kick/internal/testing/collector"
)

func TestTheEndpointOfTheCollector(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "",
		"http://collector.observability":    "http://collector.observability:4317",
		"https://otlp.example.com:443/":     "https://otlp.example.com:443",
		"HTTP://[::1]:4317":                 "http://[::1]:4317",
		"collector:4317":                    "has to begin with http://",
		"10.0.0.1:4317":                     "has to look like http://",
		"grpc://collector:4317":             "has to begin with http://",
		"http://":                           "names no host",
		"http://:4317":                      "names no host",
		"http://collector:0":                "0 is not a port",
		"http://collector:70000":            "70000 is not a port",
		"http://collector:4318/v1/traces":   "has no paths",
		"http://collector:4317?timeout=10s": "has no paths",
		"https://kick:token@collector:4317": "OTEL_EXPORTER_OTLP_HEADERS",
	} {
		o, err := parseOptions([]string{"--namespace=kick-system", "--otlp-traces-endpoint=" + text})
		var got string
		switch {
		case err != nil && !strings.Contains(err.Error(), "-otlp-traces-endpoint"):
			t.Errorf("%q: the error does not name the flag: %v", text, err)
		case err != nil:
			got = err.Error()
		case o.tracing.endpoint != nil:
			got = o.tracing.endpoint.String()
		}
		if err == nil && got != want || err != nil && (want == "" || !strings.Contains(got, want)) {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

// startCollector starts one that is stopped at the end of the test.
func startCollector(t *testing.T, options ...grpc.ServerOption) *collector.Collector {
	t.Helper()
	c, err := collector.Start(collector.Loopback, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	return c
}

// tell begins to send traces to an address, tells the given number of them, and sends the last.
func tell(t *testing.T, endpoint string, log logr.Logger, count int) {
	t.Helper()
	var o tracingOptions
	var err error
	if o.endpoint, err = parseCollector(endpoint); err != nil {
		t.Fatal(err)
	}
	traces, flush, err := o.start("kick-system", log)
	if err != nil {
		t.Fatal(err)
	}
	tellOf(traces, count)
	flush()
}

// tellOf has a number of restarts end.
func tellOf(traces *report.Traces, count int) {
	at := metav1.NewMicroTime(time.Now())
	for range count {
		ended := &v1alpha1.KickRequest{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "deployment-web", UID: types.UID("u")},
			Spec:       v1alpha1.KickRequestSpec{TargetRef: v1alpha1.TargetRef{Kind: v1alpha1.Deployment, Name: "web"}},
			Status: v1alpha1.KickRequestStatus{
				Phase: v1alpha1.PhaseSucceeded, CompletedAt: &at, CurrentRollout: &v1alpha1.Rollout{Stamp: "s", StartedAt: at},
				Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonSucceeded}},
			},
		}
		traces.Moved(&v1alpha1.KickRequest{}, ended, at.Time)
	}
}

func TestWithoutAnEndpointThereAreNoTraces(t *testing.T) {
	traces, flush, err := tracingOptions{}.start("kick-system", quiet)
	if traces != nil || err != nil {
		t.Fatalf("%v, %v", traces, err)
	}
	tellOf(traces, 1) // Told to nobody.
	flush()
}

func TestTracesSayWhichProcessSentThem(t *testing.T) {
	for name, tc := range map[string]struct {
		environment map[string]string
		want        map[string]string
	}{
		"outside of a Pod": {nil, map[string]string{
			"service.name": "kick", "service.version": version, "k8s.namespace.name": "kick-system", "k8s.pod.name": "", "service.instance.id": "",
		}},
		"in a Pod": {map[string]string{"POD_NAME": "kick-0"}, map[string]string{
			"service.name": "kick", "k8s.pod.name": "kick-0", "service.instance.id": "kick-0",
		}},
		"as the environment has it": {
			map[string]string{"OTEL_SERVICE_NAME": "restarts", "OTEL_RESOURCE_ATTRIBUTES": "k8s.cluster.name=blue"},
			map[string]string{"service.name": "restarts", "k8s.cluster.name": "blue", "k8s.namespace.name": "kick-system"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("POD_NAME", "")
			for variable, value := range tc.environment {
				t.Setenv(variable, value)
			}
			c := startCollector(t)
			tell(t, "http://"+c.Address(), quiet, 1)
			spans := c.Spans()
			if len(spans) == 0 {
				t.Fatal("no span came in")
			}
			for key, want := range tc.want {
				if got := spans[0].Process[key]; got != want {
					t.Errorf("%s is %q, want %q", key, got, want)
				}
			}
		})
	}
}

func TestTheEnvironmentSetsWhatTheSDKReads(t *testing.T) {
	t.Run("headers", func(t *testing.T) {
		t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20t0k3n")
		c := startCollector(t)
		tell(t, "http://"+c.Address(), quiet, 1)
		if got := c.Requests()[0].Headers.Get("authorization"); len(got) != 1 || got[0] != "Bearer t0k3n" {
			t.Errorf("the header is %q", got)
		}
	})
	t.Run("headers that make no sense, which are logged without their values", func(t *testing.T) {
		for headers, want := range map[string]string{
			"authorization=Bearer%20t0k3n%2": "escape header value", "t0k3n": "parse headers", "authorization t0k3n=x": "parse headers",
		} {
			t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", headers)
			c, log := startCollector(t), &lines{}
			tell(t, "http://"+c.Address(), log.logger(), 1)
			if text := strings.Join(log.all(), "\n"); !strings.Contains(text, want) || strings.Contains(text, "t0k3n") {
				t.Errorf("%s: the log says %q, want %q and no value", headers, text, want)
			}
		}
	})
	t.Run("sampling", func(t *testing.T) {
		for sampler, want := range map[string]int{"always_on": 3 * 20, "always_off": 0} {
			t.Setenv("OTEL_TRACES_SAMPLER", sampler)
			c := startCollector(t)
			tell(t, "http://"+c.Address(), quiet, 20)
			if got := len(c.Spans()); got != want {
				t.Errorf("%s: %d spans, want %d", sampler, got, want)
			}
		}
		t.Setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
		t.Setenv("OTEL_TRACES_SAMPLER_ARG", "0.5")
		c := startCollector(t)
		tell(t, "http://"+c.Address(), quiet, 200)
		if got := len(c.Spans()); got == 0 || got >= 3*200 || got%3 != 0 {
			t.Errorf("%d spans, want those of some traces, and of these all", got)
		}
	})
	t.Run("certificates", func(t *testing.T) {
		ours, client := issue(t, "localhost"), issue(t, "kick")
		c := startCollector(t, grpc.Creds(credentials.NewTLS(&tls.Config{
			Certificates: []tls.Certificate{ours.certificate}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: poolOf(t, client.authority),
		})))
		_, port, _ := net.SplitHostPort(c.Address())
		endpoint := "https://localhost:" + port
		t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "500") // Milliseconds, for the attempts that are refused.

		refused := &lines{}
		tell(t, endpoint, refused.logger(), 1)
		if len(c.Requests()) != 0 || len(refused.all()) == 0 {
			t.Errorf("a collector that nobody vouches for was told; the log says %q", refused.all())
		}
		folder := t.TempDir()
		file := func(name, text string) string {
			path := filepath.Join(folder, name)
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}
		t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", file("ca.crt", ours.authority))
		t.Setenv("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", file("tls.crt", client.authority))
		t.Setenv("OTEL_EXPORTER_OTLP_CLIENT_KEY", file("tls.key", keyOf(t, client)))
		tell(t, endpoint, quiet, 1)
		if len(c.Spans()) == 0 {
			t.Error("no span came in over TLS")
		}
	})
}

// poolOf holds one authority.
func poolOf(t *testing.T, authority string) *x509.CertPool {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(authority)) {
		t.Fatal("no certificate")
	}
	return pool
}

// keyOf is the key of a certificate, in PEM.
func keyOf(t *testing.T, i issued) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(i.certificate.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// quiet is a log that nobody reads.
var quiet = (&lines{}).logger()

// lines is a log that can be read.
type lines struct {
	mu   sync.Mutex
	text []string
}

func (l *lines) logger() logr.Logger {
	return funcr.New(func(_, line string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.text = append(l.text, line)
	}, funcr.Options{})
}

func (l *lines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string{}, l.text...)
}

func TestACollectorThatIsAwayHoldsNothingUpAndIsLoggedOnce(t *testing.T) {
	gone, err := collector.Start(collector.Loopback)
	if err != nil {
		t.Fatal(err)
	}
	gone.Stop()
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "100")
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "8")
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "4")
	log := &lines{}
	tell(t, "http://"+gone.Address(), log.logger(), 1000) // Many more than there is room for.
	dropped := 0
	for _, line := range log.all() {
		if strings.Contains(line, "traces were dropped") {
			dropped++
		}
	}
	if dropped != 1 {
		t.Errorf("the log says %d times that traces are dropped: %q", dropped, log.all())
	}
}
