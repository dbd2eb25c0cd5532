package testbed

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// The users of a testbed. Parts of the control plane have the names and rights
// that they have in a real cluster.
const (
	userAdmin             = "admin"
	userControllerManager = "system:kube-controller-manager"
	userScheduler         = "system:kube-scheduler"
	userKwok              = "kwok"
	userKubelet           = "testbed-kubelet"
	userCertManager       = "system:serviceaccount:cert-manager:cert-manager"
)

const groupMasters = "system:masters"

// groupsOf maps each user to its groups.
var groupsOf = map[string][]string{
	userAdmin:             {groupMasters},
	userControllerManager: nil,
	userScheduler:         nil,
	userKwok:              {groupMasters},
	userKubelet:           {groupMasters},
	userCertManager:       {groupMasters},
}

// credentials are the keys, certificates and tokens of one testbed.
type credentials struct {
	dir    string
	caPEM  []byte
	tokens map[string]string
}

func (c *credentials) caFile() string             { return filepath.Join(c.dir, "ca.crt") }
func (c *credentials) serverCertFile() string     { return filepath.Join(c.dir, "apiserver.crt") }
func (c *credentials) serverKeyFile() string      { return filepath.Join(c.dir, "apiserver.key") }
func (c *credentials) serviceAccountFile() string { return filepath.Join(c.dir, "service-account.key") }
func (c *credentials) tokenFile() string          { return filepath.Join(c.dir, "tokens.csv") }

// newCredentials creates everything in dir.
func newCredentials(dir string) (*credentials, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create credentials: %w", err)
	}
	c := &credentials{dir: dir, tokens: map[string]string{}}
	for _, create := range []func() error{c.createCertificates, c.createServiceAccountKey, c.createTokens} {
		if err := create(); err != nil {
			return nil, fmt.Errorf("create credentials: %w", err)
		}
	}
	return c, nil
}

func (c *credentials) createCertificates() error {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	ca := certificateTemplate("testbed-ca", 1)
	ca.IsCA, ca.BasicConstraintsValid = true, true
	ca.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	if err != nil {
		return err
	}
	serverKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	server := certificateTemplate("kube-apiserver", 2)
	server.KeyUsage = x509.KeyUsageDigitalSignature
	server.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	server.IPAddresses = []net.IP{net.ParseIP("127.0.0.1"), net.ParseIP(kubernetesServiceIP)}
	server.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}
	serverDER, err := x509.CreateCertificate(rand.Reader, server, ca, serverKey.Public(), caKey)
	if err != nil {
		return err
	}
	c.caPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER})
	if err := os.WriteFile(c.caFile(), c.caPEM, 0o644); err != nil {
		return err
	}
	if err := writePEM(c.serverCertFile(), "CERTIFICATE", serverDER); err != nil {
		return err
	}
	return writeKey(c.serverKeyFile(), serverKey)
}

func certificateTemplate(name string, serial int64) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(serial),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.AddDate(1, 0, 0),
	}
}

// createServiceAccountKey creates the key that signs service account tokens.
func (c *credentials) createServiceAccountKey() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	return writeKey(c.serviceAccountFile(), key)
}

func (c *credentials) createTokens() error {
	var file strings.Builder
	for user, groups := range groupsOf {
		token := make([]byte, 16)
		if _, err := rand.Read(token); err != nil {
			return err
		}
		c.tokens[user] = hex.EncodeToString(token)
		fmt.Fprintf(&file, "%s,%s,%s", c.tokens[user], user, user)
		if len(groups) > 0 {
			fmt.Fprintf(&file, ",%q", strings.Join(groups, ","))
		}
		fmt.Fprintln(&file)
	}
	return os.WriteFile(c.tokenFile(), []byte(file.String()), 0o600)
}

// writeKubeconfig writes the file that lets a user talk to a server.
func (c *credentials) writeKubeconfig(path, user, server string) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["testbed"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: c.caPEM}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: c.tokens[user]}
	config.Contexts["testbed"] = &clientcmdapi.Context{Cluster: "testbed", AuthInfo: user}
	config.CurrentContext = "testbed"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("write kubeconfig of %s: %w", user, err)
	}
	return nil
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(path, "EC PRIVATE KEY", der)
}

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
