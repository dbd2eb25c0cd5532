package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"golang.org/x/time/rate"

	"github.com/kick-dev/kick/internal/report"
)

const (
	// defaultCollectorPort is that of OTLP over gRPC.
	defaultCollectorPort = "4317"
	// lastTraces bounds the time that sending the last traces may take at the shutdown.
	lastTraces = 3 * time.Second
	// faultPause is the time between two lines of log about traces that do not get through.
	faultPause = 10 * time.Minute
)

// tracingOptions are what the command line says about traces. All else is in the standard environment variables, which the SDK
// reads by itself.
type tracingOptions struct {
	// endpoint of the collector, nil for no traces.
	endpoint *url.URL
}

func (o *tracingOptions) bind(flags *flag.FlagSet) {
	flags.Func("otlp-traces-endpoint",
		"URL of a collector that takes OTLP over gRPC, such as http://collector.observability:4317, which is told of each answered "+
			"change how long that took and why; https:// is with TLS. Headers, certificates and sampling are set by the environment "+
			"variables of OpenTelemetry. (default none, and no traces)",
		func(text string) (err error) {
			o.endpoint, err = parseCollector(text)
			return err
		})
}

// parseCollector reads the URL of a collector, nil for none.
func parseCollector(text string) (*url.URL, error) {
	if text == "" {
		return nil, nil
	}
	endpoint, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%w; it has to look like http://collector.observability:4317", err)
	}
	switch {
	case endpoint.Scheme != "http" && endpoint.Scheme != "https":
		return nil, errors.New("it has to begin with http:// or, for TLS, https://")
	case endpoint.Hostname() == "":
		return nil, errors.New("it names no host")
	case endpoint.User != nil:
		return nil, errors.New("it holds a user: credentials go into OTEL_EXPORTER_OTLP_HEADERS")
	case endpoint.Path != "" && endpoint.Path != "/", endpoint.RawQuery != "", endpoint.Fragment != "":
		return nil, errors.New("it has something after the host: OTLP over gRPC has no paths")
	}
	port := endpoint.Port()
	if port == "" {
		port = defaultCollectorPort
	}
	if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 {
		return nil, fmt.Errorf("%s is not a port", port)
	}
	return &url.URL{Scheme: endpoint.Scheme, Host: net.JoinHostPort(endpoint.Hostname(), port)}, nil
}

// start begins to send traces, and returns how to tell them and how to send the last of them; with no endpoint neither does
// anything. Whatever becomes of the collector, telling does not block: what cannot be sent is dropped.
func (o tracingOptions) start(namespace string, log logr.Logger) (traces *report.Traces, flush func(), err error) {
	if o.endpoint == nil {
		return nil, func() {}, nil
	}
	log = log.WithName("traces").WithValues("endpoint", o.endpoint.String())
	otel.SetLogger(logr.New(terse{log.WithName("sdk").GetSink()}))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(sparingly(log)))
	ctx := context.Background()
	process, err := tracedProcess(ctx, namespace)
	if err != nil {
		return nil, nil, fmt.Errorf("read OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME: %w", err)
	}
	exporter, err := otlptracegrpc.New(ctx, otlptracegrpc.WithEndpointURL(o.endpoint.String())) // Connects when there is something to send.
	if err != nil {
		return nil, nil, err
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(process))
	return report.NewTraces(provider), func() {
		ctx, cancel := context.WithTimeout(ctx, lastTraces)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			log.Info("the last traces were not sent", "reason", err.Error())
		}
	}, nil
}

// sparingly logs that traces do not get through, now and then.
func sparingly(log logr.Logger) func(error) {
	sometimes := &rate.Sometimes{Interval: faultPause}
	return func(err error) {
		sometimes.Do(func() {
			log.Info("traces were dropped; that others are too is not said for a while", "reason", err.Error())
		})
	}
}

// terse is a log of the SDK without the values that the SDK adds. They are those of environment variables that it does not
// understand, and so perhaps credentials.
type terse struct{ logr.LogSink }

// Error implements logr.LogSink.
func (t terse) Error(err error, message string, _ ...any) { t.LogSink.Error(err, message) }

// tracedProcess is what the traces say about this process. The environment has the last word.
func tracedProcess(ctx context.Context, namespace string) (*resource.Resource, error) {
	attributes := []attribute.KeyValue{
		semconv.ServiceName("kick"), semconv.ServiceVersion(version), semconv.K8SNamespaceName(namespace),
	}
	if pod := os.Getenv("POD_NAME"); pod != "" {
		attributes = append(attributes, semconv.ServiceInstanceID(pod), semconv.K8SPodName(pod))
	}
	return resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(attributes...), resource.WithFromEnv())
}
