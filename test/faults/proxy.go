package faults

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// delayBy is how long a delayed request is withheld: longer than anything that races with it takes.
const delayBy = 700 * time.Millisecond

// Proxy stands between one manager and the API server.
type Proxy struct {
	// URL that the manager is to use; Certificate is what it has to trust for that.
	URL         string
	Certificate []byte

	server  *http.Server
	forward *httputil.ReverseProxy

	mu      sync.Mutex
	kill    func()
	plans   []*Plan
	watches map[*stream]bool
	calls   []Exchange
	record  bool
	gate    chan struct{} // closed while requests may pass
}

// Exchange is a call and the code of the answer, zero for none.
type Exchange struct {
	Call
	Code int
}

// Plan is a fault that waits for its request.
type Plan struct {
	At    Nth
	Fault Fault
	// Always repeats the fault at every such request from the n-th on.
	Always bool
	// Release ends a Hold.
	Release chan struct{}

	seen  int
	fired atomic.Bool
}

// Fired tells whether the request came and the fault has happened.
func (p *Plan) Fired() bool { return p.fired.Load() }

// NewProxy starts a proxy in front of the API server that config leads to. The credentials are those of its client.
func NewProxy(config *rest.Config) (*Proxy, error) {
	transport, err := rest.TransportFor(&rest.Config{Host: config.Host, TLSClientConfig: config.TLSClientConfig})
	if err != nil {
		return nil, fmt.Errorf("reach the API server: %w", err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, fmt.Errorf("reach the API server: %w", err)
	}
	certificate, certificatePEM, err := newCertificate()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	p := &Proxy{
		URL: "https://" + listener.Addr().String(), Certificate: certificatePEM,
		watches: map[*stream]bool{}, gate: make(chan struct{}),
	}
	close(p.gate)
	p.forward = &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1,
		// A server that is away looks like one: the connection breaks.
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { reset(w) },
	}
	// HTTP/1.1 has a connection for each request under way, so that one can be reset without the others.
	p.server = &http.Server{
		Handler: p, ReadHeaderTimeout: time.Minute,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{"http/1.1"}},
		ErrorLog:  discard,
	}
	go func() { _ = p.server.ServeTLS(listener, "", "") }()
	return p, nil
}

// Close ends the proxy and every connection.
func (p *Proxy) Close() { _ = p.server.Close() }

// KillWith sets what ends the manager, and returns when it has ended.
func (p *Proxy) KillWith(kill func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kill = kill
}

// Arm makes a fault happen, at requests from now on.
func (p *Proxy) Arm(plan *Plan) *Plan {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plans = append(p.plans, plan)
	return plan
}

// Disarm forgets a fault, and returns when it has happened if its request has come.
func (p *Proxy) Disarm(plan *Plan) {
	p.mu.Lock()
	p.plans = slices.DeleteFunc(p.plans, func(other *Plan) bool { return other == plan })
	struck := plan.seen >= plan.At.N
	p.mu.Unlock()
	for struck && !plan.Fired() {
		time.Sleep(time.Millisecond)
	}
}

// Partition withholds every request and everything that watches bring, until Heal. What has been withheld goes on
// then, unless the manager has given it up.
func (p *Proxy) Partition() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gate = make(chan struct{})
}

// Heal ends a Partition.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.gate:
	default:
		close(p.gate)
	}
}

// CutWatches ends all watches under way, with a broken connection.
func (p *Proxy) CutWatches() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for watch := range p.watches {
		watch.cut()
	}
}

// Record keeps the calls that are answered from now on; Recorded returns them and ends that.
func (p *Proxy) Record() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.record, p.calls = true, nil
}

// Recorded returns the calls that were forwarded and answered since Record.
func (p *Proxy) Recorded() []Exchange {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.record = false
	return p.calls
}

// due notes a call and returns the plan that it fulfils, if any.
func (p *Proxy) due(call Call) *Plan {
	p.mu.Lock()
	defer p.mu.Unlock()
	var due *Plan
	for _, plan := range p.plans {
		if !call.Is(plan.At.Call) {
			continue
		}
		plan.seen++
		if plan.seen == plan.At.N || plan.Always && plan.seen > plan.At.N {
			due = plan
		}
	}
	return due
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if p.await(request.Context()) != nil {
		reset(w)
		return
	}
	call := callOf(request)
	plan := p.due(call)
	if plan == nil {
		p.pass(w, request, call)
		return
	}
	defer plan.fired.Store(true)
	if refusal, ok := refusals[plan.Fault]; ok {
		refuse(w, refusal.code, refusal.reason)
		return
	}
	switch plan.Fault {
	case Delay:
		time.Sleep(delayBy)
		p.pass(w, request, call)
		return
	case Hold:
		plan.fired.Store(true)
		<-plan.Release
		p.pass(w, request, call)
		return
	case CutHalf:
		p.cutHalf(w, request)
		return
	case KillBefore:
		p.killManager()
	case KillAfter, ResetAfter:
		if call.Verb != "watch" { // A watch has no end that one could wait for.
			p.forward.ServeHTTP(newDiscarder(), request)
		}
		if plan.Fault == KillAfter {
			p.killManager()
		}
	default: // ResetBefore
	}
	reset(w)
}

func (p *Proxy) killManager() {
	p.mu.Lock()
	kill := p.kill
	p.mu.Unlock()
	kill()
}

// await returns when the manager is not partitioned off, or with an error when it has given up.
func (p *Proxy) await(ctx context.Context) error {
	for {
		p.mu.Lock()
		gate := p.gate
		p.mu.Unlock()
		select {
		case <-gate:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// pass forwards a request. The answer to a watch can be held up and cut.
func (p *Proxy) pass(w http.ResponseWriter, request *http.Request, call Call) {
	ctx, cancel := context.WithCancel(request.Context())
	defer cancel()
	s := &stream{ResponseWriter: w, proxy: p, context: ctx, cut: cancel}
	if call.Verb == "watch" {
		p.mu.Lock()
		p.watches[s] = true
		p.mu.Unlock()
		defer func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			delete(p.watches, s)
		}()
	}
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.record {
			p.calls = append(p.calls, Exchange{Call: call, Code: s.code})
		}
	}()
	p.forward.ServeHTTP(s, request.WithContext(ctx))
}

// stream is an answer on its way to the manager.
type stream struct {
	http.ResponseWriter
	proxy   *Proxy
	context context.Context
	cut     context.CancelFunc
	code    int
}

// WriteHeader implements http.ResponseWriter.
func (s *stream) WriteHeader(code int) {
	s.code = code
	s.ResponseWriter.WriteHeader(code)
}

// Write holds back what comes during a partition.
func (s *stream) Write(data []byte) (int, error) {
	if err := s.proxy.await(s.context); err != nil {
		return 0, err
	}
	return s.ResponseWriter.Write(data)
}

// Unwrap lets http.ResponseController flush.
func (s *stream) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// firstLull is how long a watch is silent when the API server has sent what there is.
const firstLull = 300 * time.Millisecond

// cutHalf sends the first half of an answer and breaks the connection.
func (p *Proxy) cutHalf(w http.ResponseWriter, request *http.Request) {
	ctx, cancel := context.WithCancel(request.Context())
	defer cancel()
	whole := newDiscarder()
	whole.lull = time.AfterFunc(time.Minute, cancel)
	func() {
		defer func() { _ = recover() }() // The proxy panics when its source breaks off, which is what ends a watch here.
		p.forward.ServeHTTP(whole, request.WithContext(ctx))
	}()
	w.Header().Set("Content-Type", whole.header.Get("Content-Type"))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(whole.body[:len(whole.body)/2])
	_ = http.NewResponseController(w).Flush()
	reset(w)
}

// discarder takes an answer that nobody is to see, or not all of it.
type discarder struct {
	header http.Header
	body   []byte
	lull   *time.Timer
}

func newDiscarder() *discarder { return &discarder{header: http.Header{}} }

func (d *discarder) Header() http.Header { return d.header }

func (d *discarder) WriteHeader(int) {}

func (d *discarder) Write(data []byte) (int, error) {
	d.body = append(d.body, data...)
	if d.lull != nil {
		d.lull.Reset(firstLull)
	}
	return len(data), nil
}

func (d *discarder) Flush() {}

// reset breaks the connection without an answer, or in the middle of it.
func reset(w http.ResponseWriter) {
	if d, ok := w.(*discarder); ok {
		d.body = nil
		return
	}
	connection, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if secure, ok := connection.(*tls.Conn); ok {
		if raw, ok := secure.NetConn().(*net.TCPConn); ok {
			_ = raw.SetLinger(0)
			_ = raw.Close()
			return
		}
	}
	_ = connection.Close()
}

// refuse answers like the API server.
func refuse(w http.ResponseWriter, code int, reason string) {
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: metav1.StatusReason(reason), //nolint:gosec // three digits
		Message: fmt.Sprintf("the fault harness answers %d", code),
	}
	if code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(status); err != nil && !errors.Is(err, io.ErrClosedPipe) {
		return
	}
}
