package integration

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/kick-dev/kick/test/testbed"
)

const (
	chart   = "../../charts/kick"
	release = "kick"
)

// upgradeKick sets values of KICK's release.
func upgradeKick(ctx context.Context, values string) (string, error) {
	return bed.Helm(ctx, "upgrade", release, chart, "--namespace", kickNamespace, "--reuse-values", "--set", values,
		// Other specs have edited the registration of the webhooks, which Helm then leaves to them otherwise.
		"--force-conflicts", "--wait", "--timeout", "3m")
}

// install installs KICK into a namespace, and uninstalls it after the spec. Values are those of a values file.
func install(ctx context.Context, home, chart, values string) {
	GinkgoHelper()
	DeferCleanup(uninstall, home)
	output, err := bed.Helm(ctx, "install", release, chart, "--namespace", home, "--values", rawManifest(values),
		"--take-ownership", "--wait", "--timeout", "3m") // The CRDs are those of an installation before.
	Expect(err).NotTo(HaveOccurred(), output)
}

// uninstall removes KICK from a namespace, if it is there, and waits until its Pods are gone.
func uninstall(ctx context.Context, home string) {
	GinkgoHelper()
	output, err := bed.Helm(ctx, "uninstall", release, "--namespace", home, "--ignore-not-found", "--wait", "--timeout", "3m")
	Expect(err).NotTo(HaveOccurred(), output)
	Eventually(func() ([]testbed.PodProcess, error) { return bed.Pods(home, kickSelector) }).WithContext(ctx).Should(BeEmpty())
}

// uninstallCRDs removes what an uninstallation keeps.
func uninstallCRDs(ctx context.Context) {
	GinkgoHelper()
	output, err := bed.Kubectl(ctx, "delete", "crd", "kickpolicies.kick.dev", "kickrequests.kick.dev", "kickledgers.kick.dev",
		"kicknotifications.kick.dev")
	Expect(err).NotTo(HaveOccurred(), output)
}

// removeCertManager stops cert-manager and removes its API.
func removeCertManager(ctx context.Context) {
	GinkgoHelper()
	bed.Component(testbed.CertManager).Stop()
	names, err := bed.Kubectl(ctx, "get", "crd", "--output", "name")
	Expect(err).NotTo(HaveOccurred())
	for name := range strings.FieldsSeq(names) {
		if strings.HasSuffix(name, "cert-manager.io") {
			output, err := bed.Kubectl(ctx, "delete", name)
			Expect(err).NotTo(HaveOccurred(), output)
		}
	}
}

// formerChart is the chart as it may have been before: a policy had no field dryRun, but one that is gone since.
func formerChart() string {
	GinkgoHelper()
	former := filepath.Join(GinkgoT().TempDir(), "kick")
	Expect(os.CopyFS(former, os.DirFS(chart))).To(Succeed())
	crd := filepath.Join(former, "templates", "generated", "crd.kickpolicies.yaml")
	present, err := os.ReadFile(crd)
	Expect(err).NotTo(HaveOccurred())
	const field = "\n              dryRun:\n"
	Expect(string(present)).To(ContainSubstring(field))
	changed := strings.Replace(string(present), field, "\n              formerRun:\n", 1)
	Expect(os.WriteFile(crd, []byte(changed), 0o600)).To(Succeed())
	return former
}
