// Package collector is a receiver of traces for tests: it takes OTLP over gRPC, as an OpenTelemetry collector does.
package collector

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// Loopback is an address with a port that is free.
const Loopback = "127.0.0.1:0"

// Collector takes traces at an address.
type Collector struct {
	coltracepb.UnimplementedTraceServiceServer

	server  *grpc.Server
	address string
	stopped chan struct{}

	mu       sync.Mutex
	requests []Request
}

// Request is one that came in.
type Request struct {
	*coltracepb.ExportTraceServiceRequest
	Headers metadata.MD
}

// Start starts a collector at an address. Stop ends it.
func Start(address string, options ...grpc.ServerOption) (*Collector, error) {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	c := &Collector{server: grpc.NewServer(options...), address: listener.Addr().String(), stopped: make(chan struct{})}
	coltracepb.RegisterTraceServiceServer(c.server, c)
	go func() {
		defer close(c.stopped)
		_ = c.server.Serve(listener) // It ends by Stop.
	}()
	return c, nil
}

// Address is where the collector listens.
func (c *Collector) Address() string { return c.address }

// Stop ends the collector: nobody listens any more.
func (c *Collector) Stop() {
	c.server.Stop()
	<-c.stopped
}

// Export implements the service.
func (c *Collector) Export(
	ctx context.Context, request *coltracepb.ExportTraceServiceRequest,
) (*coltracepb.ExportTraceServiceResponse, error) {
	headers, _ := metadata.FromIncomingContext(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests = append(c.requests, Request{request, headers})
	return &coltracepb.ExportTraceServiceResponse{}, nil
}

// Requests are those that came in so far.
func (c *Collector) Requests() []Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.requests)
}

// Span is one that came in, with the attributes of the process that sent it.
type Span struct {
	*tracepb.Span
	Process map[string]string
}

// Spans are those that came in so far, in the order in which they began.
func (c *Collector) Spans() []Span {
	var spans []Span
	for _, request := range c.Requests() {
		for _, resource := range request.ResourceSpans {
			process := Attributes(resource.Resource.GetAttributes())
			for _, scope := range resource.ScopeSpans {
				for _, span := range scope.Spans {
					spans = append(spans, Span{span, process})
				}
			}
		}
	}
	slices.SortStableFunc(spans, func(a, b Span) int { return a.Start().Compare(b.Start()) })
	return spans
}

// Start is when the span began.
func (s Span) Start() time.Time { return At(s.StartTimeUnixNano) }

// End is when it ended.
func (s Span) End() time.Time { return At(s.EndTimeUnixNano) }

// At reads a time of OTLP.
func At(unixNano uint64) time.Time { return time.Unix(0, int64(unixNano)) } //nolint:gosec // of this age

// Attributes reads the texts among attributes.
func Attributes(attributes []*commonpb.KeyValue) map[string]string {
	texts := map[string]string{}
	for _, attribute := range attributes {
		if text, ok := attribute.Value.GetValue().(*commonpb.AnyValue_StringValue); ok {
			texts[attribute.Key] = text.StringValue
		}
	}
	return texts
}
