package egress

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
)

// only resolves one host and port.
type only struct {
	host    string
	port    int
	address string
}

func (o only) Resolve(host string, port int) (string, error) {
	if host == o.host && port == o.port {
		return o.address, nil
	}
	return "", errors.New("nobody is there")
}

// connect asks the proxy for a target and returns the answer and the connection.
func connect(t *testing.T, socket, target string) (status string, conn net.Conn) {
	t.Helper()
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_, _ = fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, target)
	answer := make([]byte, len("HTTP/1.1 200"))
	if _, err := io.ReadFull(conn, answer); err != nil {
		t.Fatal(err)
	}
	return string(answer), conn
}

func TestProxyConnectsToWhatTheResolverFinds(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "hello")
	}))
	defer server.Close()
	where, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(t.TempDir(), "s")
	proxy, err := Listen(socket, only{host: "10.96.0.9", port: 443, address: where.Host})
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()

	status, conn := connect(t, socket, "10.96.0.9:443")
	if status != "HTTP/1.1 200" {
		t.Fatalf("want a connection, got %s", status)
	}
	_, _ = fmt.Fprint(conn, "GET / HTTP/1.0\r\n\r\n")
	if body, err := io.ReadAll(conn); err != nil || !strings.HasSuffix(string(body), "hello") {
		t.Errorf("want the server's answer, got %q, %v", body, err)
	}
	if status, _ := connect(t, socket, "10.96.0.9:444"); status != "HTTP/1.1 503" {
		t.Errorf("want a refusal, got %s", status)
	}
}
