package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/test/testbed"
)

const (
	chart   = "../../charts/kick"
	release = "kick"
)

// Each installation is one of the whole cluster. So these have a control plane of their own, and come one after the
// other; those that do without cert-manager come last, because it does not come back.
var _ = Describe("An installation", Ordered, Serial, ContinueOnFailure, func() {
	BeforeAll(func(ctx SpecContext) {
		shared, sharedClient := bed, k8s
		startTestbed(ctx)
		DeferCleanup(func(ctx context.Context) {
			stopTestbed(ctx)
			bed, k8s = shared, sharedClient
		})
	}, NodeTimeout(patience*3))

	for attempt := range 3 {
		It(fmt.Sprintf("takes the first policy as soon as Helm is done, time %d", attempt+1), func(ctx SpecContext) {
			home, namespace := newNamespace(ctx), newNamespace(ctx)
			install(ctx, home, chart, "")
			Expect(k8s.Create(ctx, everything(namespace))).To(Succeed())
		}, NodeTimeout(patience*3))
	}

	It("brings the CRDs up to date and keeps what is stored", func(ctx SpecContext) {
		home, namespace := newNamespace(ctx), newNamespace(ctx)
		uninstallCRDs(ctx)
		install(ctx, home, formerChart(), "")
		Expect(k8s.Create(ctx, everything(namespace))).To(Succeed())
		dry := everything(namespace)
		dry.Name, dry.Spec.DryRun = "dry", true
		strict := client.WithFieldValidation(k8s, metav1.FieldValidationStrict)
		Expect(strict.Create(ctx, dry)).To(MatchError(ContainSubstring(`unknown field "spec.dryRun"`)))

		output, err := bed.Helm(ctx, "upgrade", release, chart, "--namespace", home, "--wait", "--timeout", "3m")
		Expect(err).NotTo(HaveOccurred(), output)
		Expect(strict.Create(ctx, dry)).To(Succeed())
		refresh(ctx, everything(namespace))
	}, NodeTimeout(patience*4))

	It("renews its certificate without failing a call", func(ctx SpecContext) {
		home, namespace := newNamespace(ctx), newNamespace(ctx)
		install(ctx, home, chart, "")
		trusted := trustedCAs(ctx)
		calls := startCalling(ctx, namespace)
		calls.more(ctx, 5)
		renewed := renew(ctx, home)
		Eventually(func(g Gomega) {
			running, err := bed.Pods(home, kickSelector)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(running).To(HaveLen(2))
			for _, pod := range running {
				g.Expect(servedBy(ctx, pod, trusted)).To(Equal(renewed), "of Pod %s", pod.Pod)
			}
		}).WithContext(ctx).Should(Succeed())
		calls.more(ctx, 5)
		Expect(calls.stop()).To(BeEmpty())
		Expect(trustedCAs(ctx)).To(Equal(trusted))
	}, NodeTimeout(patience*4))

	It("is not ready before the API server trusts it", func(ctx SpecContext) {
		home := newNamespace(ctx)
		install(ctx, home, chart, "replicas: 1")
		bed.Component(testbed.CertManager).Stop()
		distrust(ctx)
		Expect(k8s.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(home))).To(Succeed())
		Eventually(func() (string, error) { return checks(ctx, home) }).WithContext(ctx).
			Should(And(ContainSubstring("[-]trust failed"), ContainSubstring("[+]webhook ok"), ContainSubstring("[+]caches ok")))
		Expect(bed.Component(testbed.CertManager).Start(ctx)).To(Succeed())
		Eventually(func() (string, error) { return checks(ctx, home) }).WithContext(ctx).Should(ContainSubstring("[+]trust ok"))
	}, NodeTimeout(patience*4))

	It("leaves nothing behind that blocks anything (C106)", func(ctx SpecContext) {
		home, namespace := newNamespace(ctx), newNamespace(ctx)
		install(ctx, home, chart, "")
		source := secret(namespace, "db", "1")
		create(ctx, source)
		var workloads []client.Object
		for i := range 20 {
			workloads = append(workloads, deployment(namespace, fmt.Sprintf("web-%d", i), envFromSecret("db")))
		}
		create(ctx, workloads...)
		rolledOut(ctx, workloads...)
		policy := everything(namespace)
		policy.Spec.Schedule = closedNow()
		create(ctx, policy)
		rewrite(ctx, source, "2")
		reached(ctx, v1alpha1.PhaseWaitingForGate, workloads...)

		uninstall(ctx, home)
		left, err := bed.Kubectl(ctx, "get", "all,validatingwebhookconfigurations,clusterroles,clusterrolebindings,roles,rolebindings,serviceaccounts,"+
			"poddisruptionbudgets,issuers.cert-manager.io,certificates.cert-manager.io",
			"--all-namespaces", "--selector", "app.kubernetes.io/instance="+release, "--output", "name")
		Expect(err).NotTo(HaveOccurred())
		Expect(strings.Fields(left)).To(BeEmpty())
		refresh(ctx, policy)
		expectNoFinalizers(ctx)

		output, err := bed.Kubectl(ctx, "rollout", "restart", "deployment/web-0", "--namespace", namespace)
		Expect(err).NotTo(HaveOccurred(), output)
		restarted(ctx, 1, workloads[0])
		for _, name := range []string{namespace, home} {
			Expect(k8s.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
		}
		for _, name := range []string{namespace, home} {
			Eventually(func() bool {
				return errors.IsNotFound(k8s.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{}))
			}).WithContext(ctx).Should(BeTrue(), "namespace %s hangs", name)
		}
	}, NodeTimeout(patience*5))

	It("without cert-manager is refused in one sentence (C103)", func(ctx SpecContext) {
		removeCertManager(ctx)
		home := newNamespace(ctx)
		output, err := bed.Helm(ctx, "install", release, chart, "--namespace", home)
		Expect(err).To(MatchError(ContainSubstring("KICK needs cert-manager")), output)
		Expect(bed.Helm(ctx, "list", "--namespace", home, "--short")).To(BeEmpty())
	}, NodeTimeout(patience*2))

	It("works with a certificate from elsewhere (C103)", func(ctx SpecContext) {
		home, namespace := newNamespace(ctx), newNamespace(ctx)
		install(ctx, home, chart, ownCertificate(ctx, home))
		source, w := secret(namespace, "db", "1"), deployment(namespace, "web", envFromSecret("db"))
		adopted(ctx, namespace, source, w)
		rewrite(ctx, source, "2")
		reached(ctx, v1alpha1.PhaseSucceeded, w)
		restarted(ctx, 1, w)
		Expect(k8s.Create(ctx, withoutSense(namespace))).To(MatchError(ContainSubstring("spec.schedule.windows[0].cron")))
	}, NodeTimeout(patience*4))

	It("works without the webhook (C103)", func(ctx SpecContext) {
		home, namespace := newNamespace(ctx), newNamespace(ctx)
		install(ctx, home, chart, "webhook: {enabled: false}")
		source, w := secret(namespace, "db", "1"), deployment(namespace, "web", envFromSecret("db"))
		adopted(ctx, namespace, source, w)
		rewrite(ctx, source, "2")
		reached(ctx, v1alpha1.PhaseSucceeded, w)
		restarted(ctx, 1, w)
		senseless := withoutSense(namespace)
		create(ctx, senseless)
		Eventually(func(g Gomega) {
			g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(senseless), senseless)).To(Succeed())
			g.Expect(meta.IsStatusConditionTrue(senseless.Status.Conditions, v1alpha1.ConditionStalled)).To(BeTrue())
		}).WithContext(ctx).Should(Succeed())
	}, NodeTimeout(patience*4))

	It("for some namespaces asks for nothing beyond them (C108)", func(ctx SpecContext) {
		home, a, b, c := newNamespace(ctx), newNamespace(ctx), newNamespace(ctx), newNamespace(ctx)
		began := bed.Audit().Mark()
		install(ctx, home, chart, ownCertificate(ctx, home)+"\nwatchNamespaces: ["+a+", "+b+"]\n")

		stranger, ignored := secret(c, "db", "1"), deployment(c, "web", envFromSecret("db"))
		create(ctx, stranger, ignored, everything(c))
		rolledOut(ctx, ignored)
		for _, namespace := range []string{a, b} {
			source, w := secret(namespace, "db", "1"), deployment(namespace, "web", envFromSecret("db"))
			adopted(ctx, namespace, source, w)
			rewrite(ctx, stranger, "2 after "+namespace)
			rewrite(ctx, source, "2")
			reached(ctx, v1alpha1.PhaseSucceeded, w)
			restarted(ctx, 1, w)
		}
		restarted(ctx, 0, ignored)

		uninstall(ctx, home) // A watch is in the audit log once it has ended.
		account := "system:serviceaccount:" + home + ":" + release
		for verb, least := range map[string]int{"watch": 10, "": 50} {
			Expect(bed.Audit().Count(testbed.AuditFilter{User: account, Verb: verb, From: began})).To(BeNumerically(">", least), "requests %s", verb)
		}
		beyond, err := bed.Audit().Events(testbed.AuditFilter{User: account, From: began, Match: func(e testbed.AuditEvent) bool {
			inside := e.Namespace == home || e.Namespace == a || e.Namespace == b
			discovery := e.Resource == "" && e.Verb == "get"
			return !inside && !discovery
		}})
		Expect(err).NotTo(HaveOccurred())
		Expect(beyond).To(BeEmpty())
	}, NodeTimeout(patience*6))
})

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

// withoutSense is a policy that only the webhook can refuse.
func withoutSense(namespace string) *v1alpha1.KickPolicy {
	policy := everything(namespace)
	policy.Name = "senseless"
	policy.Spec.Schedule = windows(v1alpha1.Window{Kind: v1alpha1.WindowAllow, Cron: "0 0 30 2 *", Duration: "1h"})
	return policy
}

// expectNoFinalizers checks that nothing of KICK's needs it alive to go.
func expectNoFinalizers(ctx context.Context) {
	GinkgoHelper()
	held, err := bed.Kubectl(ctx, "get", "kickpolicies,kickrequests,kickledgers", "--all-namespaces",
		"--output", `jsonpath={range .items[*]}{.kind}{" "}{.metadata.finalizers}{"\n"}{end}`)
	Expect(err).NotTo(HaveOccurred())
	for line := range strings.Lines(held) {
		Expect(strings.Fields(line)).To(HaveLen(1), "a finalizer")
	}
	Expect(strings.Count(held, "KickRequest")).To(BeNumerically(">=", 20))
}
