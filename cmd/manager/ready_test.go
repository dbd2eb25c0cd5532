package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// pair is a certificate and its key, in PEM.
type pair struct{ certificate, key []byte }

// issuePair makes a certificate that is valid for a time from now on.
func issuePair(t *testing.T, valid time.Duration) pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "kick"}, DNSNames: []string{"kick"},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(valid),
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pair{
		certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		key:         pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded}),
	}
}

// serialOf names a certificate.
func serialOf(t *testing.T, p pair) string {
	t.Helper()
	block, _ := pem.Decode(p.certificate)
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return parsed.SerialNumber.String()
}

// store writes a pair to a folder as the kubelet does: both files appear at once, behind a link, and the old ones go.
func store(t *testing.T, dir string, p pair) {
	t.Helper()
	data := filepath.Join(dir, "..data")
	old, _ := os.Readlink(data)
	version, err := os.MkdirTemp(dir, "..version-") //nolint:usetesting // the kubelet keeps its versions beside the links
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"tls.crt": p.certificate, "tls.key": p.key} {
		if err := os.WriteFile(filepath.Join(version, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
		if link := filepath.Join(dir, name); !exists(link) {
			if err := os.Symlink(filepath.Join("..data", name), link); err != nil {
				t.Fatal(err)
			}
		}
	}
	next := filepath.Join(dir, "..next")
	if err := os.Symlink(filepath.Base(version), next); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, data); err != nil {
		t.Fatal(err)
	}
	if old == "" {
		return
	}
	if err := os.RemoveAll(filepath.Join(dir, old)); err != nil {
		t.Fatal(err)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// server is a webhook server of the kind the manager runs, with its readiness check.
type server struct {
	dir   string
	clock *testingclock.FakePassiveClock
	serving
}

func newServer(t *testing.T) server {
	t.Helper()
	o := options{webhookPort: freePort(t), webhookCertDir: t.TempDir()}
	clock := testingclock.NewFakePassiveClock(time.Now())
	return server{dir: o.webhookCertDir, clock: clock, serving: newServing(o, clock)}
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port
}

// start runs the server until the test ends, and returns once it answers.
func (s server) start(t *testing.T) {
	t.Helper()
	_, port, err := net.SplitHostPort(s.address)
	if err != nil {
		t.Fatal(err)
	}
	number := 0
	if _, err := fmt.Sscan(port, &number); err != nil {
		t.Fatal(err)
	}
	hooks := webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: number, CertDir: s.dir})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- hooks.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	eventually(t, "the server answers", func() bool { _, err := s.served(t.Context()); return err == nil })
}

// eventually waits for what only takes time. The limit ends a test that has failed.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for limit := time.Now().Add(time.Minute); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("not so: %s", what)
		}
	}
}

func (s server) ready() error {
	return s.check(httptest.NewRequest(http.MethodGet, "/readyz", nil))
}

func (s server) presents(t *testing.T, p pair) bool {
	t.Helper()
	served, err := s.served(t.Context())
	if err != nil {
		t.Fatalf("a call failed: %v", err)
	}
	return served.SerialNumber.String() == serialOf(t, p)
}

func TestReadyMeansThatTheWebhookAnswersWithAValidCertificate(t *testing.T) {
	s := newServer(t)
	if err := s.ready(); err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("before the start: %v", err)
	}
	first := issuePair(t, time.Hour)
	store(t, s.dir, first)
	s.start(t)
	if err := s.ready(); err != nil {
		t.Errorf("with a valid certificate: %v", err)
	}
	for name, at := range map[string]time.Time{"before it is valid": time.Now().Add(-time.Hour), "after it has expired": time.Now().Add(2 * time.Hour)} {
		s.clock.SetTime(at)
		if err := s.ready(); err == nil || !strings.Contains(err.Error(), "valid from") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The watcher of the files belongs to controller-runtime; that it does what KICK needs is shown here.
func TestARenewedCertificateIsServedAndABadPairIsNot(t *testing.T) {
	s := newServer(t)
	first, second, third := issuePair(t, time.Hour), issuePair(t, time.Hour), issuePair(t, time.Hour)
	store(t, s.dir, first)
	s.start(t)
	if !s.presents(t, first) {
		t.Fatal("another certificate than the one on disk is served")
	}
	store(t, s.dir, pair{certificate: second.certificate, key: third.key}) // the key does not match yet
	for range 20 {
		if !s.presents(t, first) {
			t.Fatal("the last good pair is gone")
		}
		if err := s.ready(); err != nil {
			t.Fatalf("a pair that is no pair takes the replica away: %v", err)
		}
	}
	store(t, s.dir, second)
	eventually(t, "the renewed certificate is served", func() bool { return s.presents(t, second) })
	eventually(t, "the replica is ready", func() bool { return s.ready() == nil })
}

func TestAReplicaThatServesAnOldCertificateIsNotReady(t *testing.T) {
	s := newServer(t)
	first := issuePair(t, time.Hour)
	store(t, s.dir, first)
	s.start(t)
	elsewhere := t.TempDir()
	store(t, elsewhere, issuePair(t, time.Hour))
	s.certFile, s.keyFile = filepath.Join(elsewhere, "tls.crt"), filepath.Join(elsewhere, "tls.key")
	if err := s.ready(); err == nil || !strings.Contains(err.Error(), "on disk") {
		t.Errorf("ready: %v", err)
	}
}
