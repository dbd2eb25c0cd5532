package integration

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kick-dev/kick/test/testbed"
)

// authority is a CA that nobody knows but a test.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// pair is a certificate with its key, or with another, in PEM.
type pair struct{ certificate, key []byte }

// existingSecret is the Secret from which the chart takes a certificate that cert-manager has not made.
const existingSecret = "from-elsewhere"

func newAuthority() authority {
	GinkgoHelper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	ca := authority{key: key}
	ca.certificate = ca.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "the CA of a test"}, NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, key)
	return ca
}

// sign makes a certificate for a key. The authority's own is the first it signs.
func (a authority) sign(template *x509.Certificate, key *ecdsa.PrivateKey) *x509.Certificate {
	GinkgoHelper()
	var err error
	template.NotBefore = time.Now().Add(-time.Hour)
	template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 100))
	Expect(err).NotTo(HaveOccurred())
	parent := a.certificate
	if parent == nil {
		parent = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), a.key)
	Expect(err).NotTo(HaveOccurred())
	signed, err := x509.ParseCertificate(der)
	Expect(err).NotTo(HaveOccurred())
	return signed
}

// issue makes a certificate with a key of its own for the webhook of an installation.
func (a authority) issue(home string, valid time.Duration) pair {
	GinkgoHelper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	certificate := a.sign(&x509.Certificate{
		DNSNames: []string{release + "-webhook." + home + ".svc"}, NotAfter: time.Now().Add(valid),
	}, key)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	Expect(err).NotTo(HaveOccurred())
	return pair{
		certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw}),
		key:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}
}

// bundle is what trusts the authority.
func (a authority) bundle() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw}))
}

// values are those with which the chart uses a certificate of the authority.
func (a authority) values() string {
	return "webhook: {existingSecret: " + existingSecret + ", caBundle: " + base64.StdEncoding.EncodeToString([]byte(a.bundle())) + "}"
}

// leaf is the certificate.
func (p pair) leaf() *x509.Certificate {
	GinkgoHelper()
	block, _ := pem.Decode(p.certificate)
	certificate, err := x509.ParseCertificate(block.Bytes)
	Expect(err).NotTo(HaveOccurred())
	return certificate
}

func (p pair) secret(home string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: existingSecret},
		Type:       corev1.SecretTypeTLS,
		Data:       map[string][]byte{corev1.TLSCertKey: p.certificate, corev1.TLSPrivateKeyKey: p.key},
	}
}

// ownCertificate stores a certificate for the webhook that is made by nobody but the test, and returns the values with
// which the chart uses it.
func ownCertificate(ctx context.Context, home string) string {
	GinkgoHelper()
	ca := newAuthority()
	create(ctx, ca.issue(home, 24*time.Hour).secret(home))
	return ca.values()
}

// halves are ways in which a renewal may stand half done.
var halves = map[string]func(old, next pair) pair{
	"the certificate comes before its key": func(old, next pair) pair { return pair{certificate: next.certificate, key: old.key} },
	"the key comes before its certificate": func(old, next pair) pair { return pair{certificate: old.certificate, key: next.key} },
	"the key is cut off":                   func(_, next pair) pair { return pair{certificate: next.certificate, key: next.key[:50]} },
}

// replacePair stores a certificate and a key, whether or not they belong together.
func replacePair(ctx context.Context, stored *corev1.Secret, p pair) {
	GinkgoHelper()
	change(ctx, stored, func(s *corev1.Secret) { s.Data = p.secret(s.Namespace).Data })
}

// unreadable counts, for each Pod, how often it has found no pair.
func unreadable(ctx context.Context, pods []testbed.PodProcess) []int {
	GinkgoHelper()
	var errors []int
	for _, pod := range pods {
		errors = append(errors, total(scrape(ctx, pod), "certwatcher_read_certificate_errors_total"))
	}
	return errors
}

// servedByAll are the certificates that the Pods show to whom trusts the authority.
func servedByAll(ctx context.Context, pods []testbed.PodProcess, ca authority) ([]*x509.Certificate, error) {
	var served []*x509.Certificate
	for _, pod := range pods {
		certificate, err := servedBy(ctx, pod, []string{ca.bundle()})
		if err != nil {
			return nil, err
		}
		served = append(served, certificate)
	}
	return served, nil
}

// goOn waits until the time has passed since the beginning.
func goOn(ctx context.Context, began time.Time, passed time.Duration) {
	GinkgoHelper()
	Eventually(func() time.Duration { return time.Since(began) }).WithContext(ctx).WithTimeout(passed + patience).Should(BeNumerically(">=", passed))
}
