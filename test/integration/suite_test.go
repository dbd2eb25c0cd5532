// Package integration tests KICK as its users run it: installed by Helm with the chart as it is, on a real control
// plane, with the certificate of its webhook from the real cert-manager.
package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/test/testbed"
)

const (
	kickNamespace = "kick-system"
	kickSelector  = "app.kubernetes.io/name=kick"
	image         = "ghcr.io/kick-dev/kick"
)

// Limits of the polls. They only end a test that has failed; nothing is asserted about time.
const (
	patience = 2 * time.Minute
	glance   = 100 * time.Millisecond
)

// bed is the testbed of the suite, k8s an administrator's client to it.
var (
	bed *testbed.Testbed
	k8s client.Client
)

func TestIntegration(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "KICK on a real control plane")
}

var _ = BeforeSuite(func(ctx context.Context) {
	SetDefaultEventuallyTimeout(patience)
	SetDefaultEventuallyPollingInterval(glance)
	EnforceDefaultTimeoutsWhenUsingContexts()

	Expect(v1alpha1.AddToScheme(clientgoscheme.Scheme)).To(Succeed())
	startTestbed(ctx)
	DeferCleanup(stopTestbed)

	output, err := bed.Helm(ctx, "install", "kick", "../../charts/kick", "--namespace", kickNamespace, "--create-namespace",
		"--wait", "--timeout", "3m")
	Expect(err).NotTo(HaveOccurred(), output)
}, NodeTimeout(15*time.Minute))

// startTestbed starts a control plane and makes it that of the specs.
func startTestbed(ctx context.Context) {
	GinkgoHelper()
	manager, err := filepath.Abs("../../bin/manager")
	Expect(err).NotTo(HaveOccurred())
	Expect(manager).To(BeAnExistingFile(), "run `make build`, or `make test-integration`, which does")

	binaries, err := testbed.Build(ctx, testbed.BuildOptions{Out: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	dir, err := os.MkdirTemp("", "kick-integration-")
	Expect(err).NotTo(HaveOccurred())
	bed, err = testbed.Start(ctx, testbed.Options{
		Dir: dir, Binaries: binaries, CertManager: true, Out: GinkgoWriter,
		Images: map[string]string{image: manager},
	})
	Expect(err).NotTo(HaveOccurred())
	config := bed.RESTConfig()
	config.WarningHandler = rest.NoWarnings{}
	k8s, err = client.New(config, client.Options{Scheme: clientgoscheme.Scheme})
	Expect(err).NotTo(HaveOccurred())
}

// stopTestbed keeps the logs of a run that failed.
func stopTestbed(ctx context.Context) {
	Expect(bed.Stop(ctx)).To(Succeed())
	if CurrentSpecReport().Failed() || suiteFailed {
		fmt.Fprintln(os.Stderr, "logs of the failed run:", filepath.Join(bed.Dir(), "logs"))
		return
	}
	Expect(os.RemoveAll(bed.Dir())).To(Succeed())
}

// suiteFailed is set once a spec has failed.
var suiteFailed bool

var _ = ReportAfterEach(func(report SpecReport) {
	suiteFailed = suiteFailed || report.Failed()
})
