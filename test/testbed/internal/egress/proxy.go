// Package egress plays the network between the API server and Pods. The API
// server dials webhooks through an HTTP CONNECT proxy on a unix socket; the
// proxy finds the process that plays the target.
package egress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	dialTimeout    = 5 * time.Second
	requestTimeout = 10 * time.Second
)

// Resolver finds the loopback address that plays a host and port of the
// cluster.
type Resolver interface {
	Resolve(host string, port int) (string, error)
}

// Proxy is a CONNECT proxy.
type Proxy struct {
	listener net.Listener
	resolver Resolver
	ctx      context.Context
	cancel   context.CancelFunc
	open     sync.WaitGroup
}

// Listen starts a proxy on a unix socket.
func Listen(socket string, resolver Resolver) (*Proxy, error) {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("listen for egress: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &Proxy{listener: listener, resolver: resolver, ctx: ctx, cancel: cancel}
	p.open.Go(p.accept)
	return p, nil
}

// Close ends the proxy and all connections through it.
func (p *Proxy) Close() {
	p.cancel()
	_ = p.listener.Close()
	p.open.Wait()
}

func (p *Proxy) accept() {
	for {
		conn, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		p.open.Go(func() { p.serve(conn) })
	}
}

func (p *Proxy) serve(client net.Conn) {
	defer func() { _ = client.Close() }()
	stop := context.AfterFunc(p.ctx, func() { _ = client.Close() })
	defer stop()

	_ = client.SetReadDeadline(time.Now().Add(requestTimeout))
	reader := bufio.NewReader(client)
	request, err := http.ReadRequest(reader)
	if err != nil {
		return
	}
	_ = client.SetReadDeadline(time.Time{})
	if request.Method != http.MethodConnect {
		refuse(client, http.StatusMethodNotAllowed, errors.New("only CONNECT is served"))
		return
	}
	server, err := p.dial(request.Host)
	if err != nil {
		refuse(client, http.StatusServiceUnavailable, err)
		return
	}
	defer func() { _ = server.Close() }()
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	splice(client, reader, server)
}

func (p *Proxy) dial(target string) (net.Conn, error) {
	host, service, err := net.SplitHostPort(target)
	if err != nil {
		return nil, fmt.Errorf("parse target: %w", err)
	}
	port, err := net.LookupPort("tcp", service)
	if err != nil {
		return nil, fmt.Errorf("parse target: %w", err)
	}
	address, err := p.resolver.Resolve(host, port)
	if err != nil {
		return nil, err
	}
	dialer := net.Dialer{Timeout: dialTimeout}
	conn, err := dialer.DialContext(p.ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("dial %s for %s: %w", address, target, err)
	}
	return conn, nil
}

func refuse(client net.Conn, status int, reason error) {
	message := reason.Error()
	_, _ = fmt.Fprintf(client, "HTTP/1.1 %d %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		status, http.StatusText(status), len(message), message)
}

// splice copies both ways until one side ends. What the client sent ahead is
// still in its reader.
func splice(client net.Conn, reader io.Reader, server net.Conn) {
	ended := make(chan struct{}, 2)
	go func() {
		_, _ = io.Copy(server, reader)
		ended <- struct{}{}
	}()
	go func() {
		_, _ = io.Copy(client, server)
		ended <- struct{}{}
	}()
	<-ended
	_ = client.Close()
	_ = server.Close()
	<-ended
}
