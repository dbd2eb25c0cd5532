package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

// syncGlance is how long a probe waits for the caches: it asks whether they are synced and does not wait for it.
const syncGlance = 100 * time.Millisecond

// cachesSynced reports ready once the first lists of all watched objects have arrived.
func cachesSynced(mgr ctrl.Manager) healthz.Checker {
	return func(r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), syncGlance)
		defer cancel()
		if !mgr.GetCache().WaitForCacheSync(ctx) {
			return errors.New("the caches are not synced yet")
		}
		return nil
	}
}

// serving checks that the webhooks answer over TLS, with a certificate that the API server will accept.
type serving struct {
	address           string
	certFile, keyFile string
	clock             clock.PassiveClock
}

func newServing(o options, clock clock.PassiveClock) serving {
	return serving{
		address:  net.JoinHostPort("127.0.0.1", strconv.Itoa(o.webhookPort)),
		certFile: filepath.Join(o.webhookCertDir, "tls.crt"),
		keyFile:  filepath.Join(o.webhookCertDir, "tls.key"),
		clock:    clock,
	}
}

// check implements healthz.Checker. The certificate that is served has to be valid now, and the one on disk. While what
// is on disk is no pair, as in the middle of a renewal, the last good one goes on serving.
func (s serving) check(r *http.Request) error {
	served, err := s.served(r.Context())
	if err != nil {
		return fmt.Errorf("the webhook does not answer: %w", err)
	}
	if now := s.clock.Now(); now.Before(served.NotBefore) || now.After(served.NotAfter) {
		return fmt.Errorf("the webhook serves a certificate that is valid from %s to %s only", served.NotBefore, served.NotAfter)
	}
	pair, err := tls.LoadX509KeyPair(s.certFile, s.keyFile)
	if err != nil {
		return nil //nolint:nilerr // documented: what is not a pair is not served
	}
	if !bytes.Equal(pair.Certificate[0], served.Raw) {
		return errors.New("the webhook does not serve the certificate on disk yet")
	}
	return nil
}

// served returns the certificate that the server presents. Who it is for does not matter here: it is our own.
func (s serving) served(ctx context.Context) (*x509.Certificate, error) {
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // the certificate is what is looked at
	connection, err := dialer.DialContext(ctx, "tcp", s.address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = connection.Close() }()
	return connection.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
}
