package integration

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/test/testbed"
)

// Where the manager serves in its Pod.
const (
	webhookPort = 9443
	healthPort  = 8081
)

// callInterval is the time between two calls of the webhook during a renewal.
const callInterval = 100 * time.Millisecond

// calls are dry runs of a policy, which the API server asks the webhook about, with a greeting of every replica each: the API
// server keeps its connections, and a certificate only matters to a new one.
type calls struct {
	end    context.CancelFunc
	ended  chan struct{}
	made   atomic.Int64
	failed []error
}

// startCalling calls the webhook until it is told to stop.
func startCalling(ctx context.Context, home, namespace string) *calls {
	GinkgoHelper()
	trusted := trustedCAs(ctx)
	running, err := bed.Pods(home, kickSelector)
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(ctx)
	c := &calls{end: cancel, ended: make(chan struct{})}
	go func() {
		defer close(c.ended)
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(callInterval):
			}
			err := k8s.Create(ctx, everything(namespace), client.DryRunAll)
			for _, pod := range running {
				_, greeted := servedBy(ctx, pod, trusted)
				err = errors.Join(err, greeted)
			}
			if ctx.Err() != nil {
				return
			}
			c.made.Add(1)
			if err != nil {
				c.failed = append(c.failed, err)
			}
		}
	}()
	return c
}

// more waits until so many calls more have been made.
func (c *calls) more(ctx context.Context, calls int64) {
	GinkgoHelper()
	Eventually(c.made.Load).WithContext(ctx).Should(BeNumerically(">=", c.made.Load()+calls))
}

// stop returns the errors of the calls that failed.
func (c *calls) stop() []error {
	c.end()
	<-c.ended
	return c.failed
}

// renew has cert-manager renew the webhook's certificate, as `cmctl renew` does, and returns the new one.
func renew(ctx context.Context, home string) *x509.Certificate {
	GinkgoHelper()
	before := storedCertificate(ctx, home)
	certificate := &unstructured.Unstructured{}
	certificate.SetAPIVersion("cert-manager.io/v1")
	certificate.SetKind("Certificate")
	certificate.SetNamespace(home)
	certificate.SetName(release + "-webhook")
	Eventually(func(g Gomega) {
		g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(certificate), certificate)).To(Succeed())
		conditions, _, err := unstructured.NestedSlice(certificate.Object, "status", "conditions")
		g.Expect(err).NotTo(HaveOccurred())
		conditions = append(conditions, map[string]any{
			"type": "Issuing", "status": "True", "reason": "ManuallyTriggered", "message": "renewed by a test",
			"lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
		})
		g.Expect(unstructured.SetNestedSlice(certificate.Object, conditions, "status", "conditions")).To(Succeed())
		g.Expect(k8s.Status().Update(ctx, certificate)).To(Succeed())
	}).WithContext(ctx).Should(Succeed())

	var renewed *x509.Certificate
	Eventually(func() *x509.Certificate {
		renewed = storedCertificate(ctx, home)
		return renewed
	}).WithContext(ctx).ShouldNot(Equal(before))
	return renewed
}

func storedCertificate(ctx context.Context, home string) *x509.Certificate {
	GinkgoHelper()
	stored := &corev1.Secret{}
	Expect(k8s.Get(ctx, client.ObjectKey{Namespace: home, Name: release + "-webhook-cert"}, stored)).To(Succeed())
	block, _ := pem.Decode(stored.Data[corev1.TLSCertKey])
	Expect(block).NotTo(BeNil())
	certificate, err := x509.ParseCertificate(block.Bytes)
	Expect(err).NotTo(HaveOccurred())
	return certificate
}

// servedBy is the certificate that a Pod shows to an API server that trusts these CAs.
func servedBy(ctx context.Context, pod testbed.PodProcess, trusted []string) (*x509.Certificate, error) {
	authorities := x509.NewCertPool()
	for _, bundle := range trusted {
		authorities.AppendCertsFromPEM([]byte(bundle))
	}
	dialer := tls.Dialer{Config: &tls.Config{RootCAs: authorities, ServerName: release + "-webhook." + pod.Namespace + ".svc"}}
	connection, err := dialer.DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", pod.Ports[webhookPort]))
	if err != nil {
		return nil, err
	}
	defer func() { _ = connection.Close() }()
	return connection.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
}

// trustedCAs is what the API server trusts of the webhook.
func trustedCAs(ctx context.Context) []string {
	GinkgoHelper()
	registration := &admissionv1.ValidatingWebhookConfiguration{}
	Expect(k8s.Get(ctx, client.ObjectKey{Name: release}, registration)).To(Succeed())
	var bundles []string
	for _, hook := range registration.Webhooks {
		bundles = append(bundles, string(hook.ClientConfig.CABundle))
	}
	return bundles
}

// distrust takes the CAs out of the registration of the webhooks.
func distrust(ctx context.Context) {
	GinkgoHelper()
	registration := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: release}}
	change(ctx, registration, func(r *admissionv1.ValidatingWebhookConfiguration) {
		for i := range r.Webhooks {
			r.Webhooks[i].ClientConfig.CABundle = nil
		}
	})
}

// checks are the readiness checks of the only Pod, with their results.
func checks(ctx context.Context, home string) (string, error) {
	running, err := bed.Pods(home, kickSelector)
	if err != nil {
		return "", err
	}
	if len(running) != 1 {
		return "", fmt.Errorf("%d Pods, want one", len(running))
	}
	url := fmt.Sprintf("http://127.0.0.1:%d/readyz?verbose=1", running[0].Ports[healthPort])
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}
