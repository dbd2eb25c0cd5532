package outbound

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/kick-dev/kick/internal/core/notify"
)

const token = "s3cr3t-t0k3n"

func endpoint(t *testing.T, text string) notify.Endpoint {
	t.Helper()
	target, err := url.Parse(text + "/" + token)
	if err != nil {
		t.Fatal(err)
	}
	return notify.Endpoint{URL: target, Headers: []notify.Header{{Name: "Authorization", Value: "Bearer " + token}}}
}

var hello = notify.Message{ID: "id-1", ContentType: "application/json", Body: []byte(`{"a":1}`)}

func TestAMessageArrivesAsComposed(t *testing.T) {
	var got *http.Request
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
	}))
	defer server.Close()
	if outcome := New("kick/test").Send(t.Context(), endpoint(t, server.URL), hello); !outcome.Delivered() {
		t.Fatal(outcome)
	}
	if got.Method != http.MethodPost || got.URL.Path != "/"+token || string(body) != `{"a":1}` {
		t.Errorf("%s %s %s", got.Method, got.URL, body)
	}
	for name, want := range map[string]string{
		"Authorization": "Bearer " + token, "Content-Type": "application/json", "Idempotency-Key": "id-1", "User-Agent": "kick/test",
	} {
		if got.Header.Get(name) != want {
			t.Errorf("header %s is %q, want %q", name, got.Header.Get(name), want)
		}
	}
}

func TestARedirectIsNotFollowed(t *testing.T) {
	followed := false
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed = true }))
	defer elsewhere.Close()
	server := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	outcome := New("").Send(t.Context(), endpoint(t, server.URL), hello)
	if outcome.Delivered() || followed || !strings.Contains(outcome.Failure, "redirect") {
		t.Errorf("%+v, followed %v", outcome, followed)
	}
}

func TestFailuresSayWhatAndNotWhere(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	untrusted := httptest.NewTLSServer(http.NotFoundHandler())
	defer untrusted.Close()
	untrusted.Config.ErrorLog = nil
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, token)
	}))
	defer plain.Close()
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		connection, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = connection.Close()
		}
	}))
	defer broken.Close()
	for target, want := range map[string]string{
		closed.URL:    "the receiver cannot be connected to",
		untrusted.URL: "the certificate of the receiver is not trusted",
		plain.URL:     "the receiver answers with status 500",
		broken.URL:    "the connection to the receiver broke",
		strings.Replace(plain.URL, "http:", "https:", 1): "the receiver does not speak TLS",
		"https://nowhere.invalid":                        "the host of the receiver cannot be looked up",
	} {
		outcome := New("").Send(t.Context(), endpoint(t, target), hello)
		if outcome.Failure != want {
			t.Errorf("%s: %q, want %q", target, outcome.Failure, want)
		}
	}
}

func TestAReceiverThatDoesNotAnswerIsLeft(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	sender := New("")
	sender.client.Timeout = 1 // nanosecond
	if outcome := sender.Send(t.Context(), endpoint(t, "http://"+listener.Addr().String()), hello); outcome.Failure != "the receiver does not answer in time" {
		t.Errorf("%+v", outcome)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if outcome := New("").Send(ctx, endpoint(t, "http://"+listener.Addr().String()), hello); outcome.Failure != "the attempt was broken off" {
		t.Errorf("%+v", outcome)
	}
}
