package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A replica reads the registration that its readiness depends on, and no other.
//
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,verbs=get,resourceNames=kick

// trust is the readiness check of the webhook's certificate. A certificate that was just issued is only worth something
// once its CA has been entered into the registration of the webhooks, for which the API server calls them: a replica that
// is ready before would have the first policy refused with an unknown authority.
type trust struct {
	live          client.Reader
	configuration string
	address       string
	// seen is set once everything was in order. From then on the certificate is the issuer's concern, and taking a
	// replica that answers out of service would help nobody.
	seen atomic.Bool
}

func newTrust(live client.Reader, o options) *trust {
	return &trust{
		live:          live,
		configuration: o.webhookConfiguration,
		address:       net.JoinHostPort("localhost", strconv.Itoa(o.webhookPort)),
	}
}

// check implements healthz.Checker.
func (t *trust) check(r *http.Request) error {
	if t.seen.Load() {
		return nil
	}
	registered := &admissionv1.ValidatingWebhookConfiguration{}
	if err := t.live.Get(r.Context(), types.NamespacedName{Name: t.configuration}, registered); err != nil {
		return fmt.Errorf("read the registration of the webhooks: %w", err)
	}
	for i := range registered.Webhooks {
		if err := t.greet(r.Context(), &registered.Webhooks[i]); err != nil {
			return fmt.Errorf("the registration of webhook %s does not trust the certificate: %w", registered.Webhooks[i].Name, err)
		}
	}
	t.seen.Store(true)
	return nil
}

// greet opens a connection to this replica the way the API server does for a webhook.
func (t *trust) greet(ctx context.Context, hook *admissionv1.ValidatingWebhook) error {
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(hook.ClientConfig.CABundle) {
		return errors.New("it holds no CA yet")
	}
	dialer := tls.Dialer{Config: &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}}
	if service := hook.ClientConfig.Service; service != nil {
		dialer.Config.ServerName = service.Name + "." + service.Namespace + ".svc"
	}
	connection, err := dialer.DialContext(ctx, "tcp", t.address)
	if err != nil {
		return err
	}
	return connection.Close()
}
