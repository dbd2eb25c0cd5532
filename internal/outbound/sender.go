// Package outbound sends messages to receivers outside of the cluster. It knows no Kubernetes, and tells nobody where it
// sends to or what it was answered, but for the kind of a failure.
package outbound

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/kick-dev/kick/internal/core/notify"
)

const (
	// patience bounds one attempt, from the name look-up to the end of the answer.
	patience = 10 * time.Second
	// maxAnswer is how much of an answer is read, so that the connection can be used again.
	maxAnswer = 64 << 10
)

// Sender sends messages.
type Sender struct {
	client    *http.Client
	userAgent string
}

// New returns a sender. It follows no redirects: where they lead to, nobody has permitted.
func New(userAgent string) *Sender {
	transport := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12},
		MaxIdleConnsPerHost:   1,
		IdleConnTimeout:       time.Minute,
		TLSHandshakeTimeout:   patience,
		ResponseHeaderTimeout: patience,
		ForceAttemptHTTP2:     true,
	}
	return &Sender{userAgent: userAgent, client: &http.Client{
		Transport:     transport,
		Timeout:       patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Send makes one attempt to deliver a message.
func (s *Sender) Send(ctx context.Context, to notify.Endpoint, message notify.Message) notify.Outcome {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to.URL.String(), bytes.NewReader(message.Body))
	if err != nil {
		return notify.Outcome{Failure: "the request cannot be made from the URL and the headers"}
	}
	for _, header := range to.Headers {
		request.Header.Add(header.Name, header.Value)
	}
	request.Header.Set("Content-Type", message.ContentType)
	request.Header.Set("Idempotency-Key", message.ID)
	if request.Header.Get("User-Agent") == "" {
		request.Header.Set("User-Agent", s.userAgent)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return notify.Outcome{Failure: failure(err)}
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxAnswer)) // What it says does not matter.
	return notify.OutcomeOfStatus(response.StatusCode)
}

// failure names the kind of an error. The error itself repeats the URL.
func failure(err error) string {
	var (
		lookup   *net.DNSError
		verify   *tls.CertificateVerificationError
		unknown  x509.UnknownAuthorityError
		mismatch x509.HostnameError
		timeout  net.Error
		dial     *net.OpError
	)
	switch {
	case errors.As(err, &verify), errors.As(err, &unknown), errors.As(err, &mismatch):
		return "the certificate of the receiver is not trusted"
	case errors.Is(err, http.ErrSchemeMismatch):
		return "the receiver does not speak TLS"
	case errors.As(err, &lookup):
		return "the host of the receiver cannot be looked up"
	case errors.Is(err, context.Canceled):
		return "the attempt was broken off"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "the receiver does not answer in time"
	case errors.As(err, &dial) && dial.Op == "dial":
		return "the receiver cannot be connected to"
	default:
		return "the connection to the receiver broke"
	}
}
