package integration

import (
	"bytes"
	"context"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/ledger"
	"github.com/kick-dev/kick/test/testbed"
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

	for attempt := range lasting(3, 10) {
		It(fmt.Sprintf("takes the first policy as soon as Helm is done, time %d", attempt+1), func(ctx SpecContext) {
			home, namespace := newNamespace(ctx), newNamespace(ctx)
			first := manifest(everything(namespace))
			install(ctx, home, chart, "")
			output, err := bed.Kubectl(ctx, "apply", "-f", first)
			Expect(err).NotTo(HaveOccurred(), output)
			Expect(output).To(ContainSubstring("kickpolicy.kick.dev/everything created"))
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
		calls := startCalling(ctx, home, namespace)
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

	It("for some namespaces shares the cluster with one for others", func(ctx SpecContext) {
		const other = "other"
		homes := map[string]string{} // of the release that works in a namespace
		first, second := newNamespace(ctx), newNamespace(ctx)
		homes[first], homes[second] = newNamespace(ctx), newNamespace(ctx)
		install(ctx, homes[first], chart, "watchNamespaces: ["+first+"]\n")
		values := rawManifest("watchNamespaces: [" + second + "]\ncrds: {enabled: false}\n")
		output, err := bed.Helm(ctx, "install", other, chart, "--namespace", homes[second], "--values", values, "--wait", "--timeout", "3m")
		Expect(err).NotTo(HaveOccurred(), output)
		leave := func(ctx SpecContext) {
			output, err := bed.Helm(ctx, "uninstall", other, "--namespace", homes[second], "--ignore-not-found", "--wait", "--timeout", "3m")
			Expect(err).NotTo(HaveOccurred(), output)
		}
		DeferCleanup(leave)

		workloads := map[string]*appsv1.Deployment{}
		for namespace, home := range homes {
			source, w := secret(namespace, "db", "1"), deployment(namespace, "web", envFromSecret("db"))
			workloads[namespace] = w
			adopted(ctx, namespace, source, w)
			rewrite(ctx, source, "2")
			reached(ctx, v1alpha1.PhaseSucceeded, w)
			restarted(ctx, 1, w)
			guarded(ctx, w)
			for _, each := range homes {
				err := k8s.Get(ctx, client.ObjectKey{Namespace: each, Name: namespace}, &v1alpha1.KickLedger{})
				Expect(errors.IsNotFound(err)).To(Equal(each != home), "the ledger of %s in %s: %v", namespace, each, err)
			}
		}

		leave(ctx)
		rewrite(ctx, secret(first, "db", ""), "3")
		rewrite(ctx, secret(second, "db", ""), "3")
		reached(ctx, v1alpha1.PhaseSucceeded, workloads[first])
		barrier(ctx, first)
		restarted(ctx, 2, workloads[first])
		restarted(ctx, 1, workloads[second])
	}, NodeTimeout(patience*6))

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

	It("serves the last good certificate while what it finds is no pair (C104)", func(ctx SpecContext) {
		home, namespace := newNamespace(ctx), newNamespace(ctx)
		ca := newAuthority()
		serving := ca.issue(home, lasting(time.Hour, 5*time.Minute))
		stored := serving.secret(home)
		create(ctx, stored)
		install(ctx, home, chart, ca.values())
		began := time.Now()
		running, err := bed.Pods(home, kickSelector)
		Expect(err).NotTo(HaveOccurred())
		Expect(running).To(HaveLen(2))
		calls := startCalling(ctx, home, namespace)
		calls.more(ctx, 5)

		for name, half := range halves {
			By(name)
			next := ca.issue(home, time.Hour)
			goOn(ctx, began, lasting(0, 2*time.Minute))
			before := unreadable(ctx, running)
			replacePair(ctx, stored, half(serving, next))
			Eventually(func() []int { return unreadable(ctx, running) }).WithContext(ctx).Should(HaveEach(BeNumerically(">", slices.Max(before))))
			calls.more(ctx, 20)
			Expect(servedByAll(ctx, running, ca)).To(HaveEach(Equal(serving.leaf())))
			replacePair(ctx, stored, next)
			Eventually(func() ([]*x509.Certificate, error) { return servedByAll(ctx, running, ca) }).WithContext(ctx).Should(HaveEach(Equal(next.leaf())))
			calls.more(ctx, 20)
			serving = next
		}
		goOn(ctx, began, lasting(0, 10*time.Minute)) // When all is told, the first certificate has expired.
		calls.more(ctx, 20)
		Expect(calls.stop()).To(BeEmpty())
		Expect(bed.Pods(home, kickSelector)).To(HaveEach(HaveField("PID", BeElementOf(running[0].PID, running[1].PID))))
	}, NodeTimeout(lasting(patience*4, 15*time.Minute)))

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
		Expect(k8s.Delete(ctx, senseless)).To(Succeed())

		// Nobody checks who may override, so nobody may.
		change(ctx, everything(namespace), func(p *v1alpha1.KickPolicy) { p.Spec.Schedule = closedNow() })
		asked, err := requestOf(ctx, w)
		Expect(err).NotTo(HaveOccurred())
		change(ctx, asked, func(r *v1alpha1.KickRequest) {
			r.Spec.Manual = asking(w, "whoever").Spec.Manual
			r.Spec.Manual.Override = true
		})
		Eventually(func(g Gomega) {
			refresh(ctx, asked)
			ready := meta.FindStatusCondition(asked.Status.Conditions, v1alpha1.ConditionReady)
			g.Expect(ready.ObservedGeneration).To(Equal(asked.Generation))
			g.Expect(ready.Reason).To(Equal(v1alpha1.ReasonNeverOpens))
			g.Expect(ready.Message).To(ContainSubstring("spec.manual.override is ignored"))
		}).WithContext(ctx).Should(Succeed())
		restarted(ctx, 1, w)
		change(ctx, everything(namespace), func(p *v1alpha1.KickPolicy) { p.Spec.Schedule = windows() })
		reached(ctx, v1alpha1.PhaseSucceeded, w)
		restarted(ctx, 2, w)
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

	It("for some namespaces keeps the key of the fingerprints, which is in none of them", func(ctx SpecContext) {
		home, namespace := newNamespace(ctx), newNamespace(ctx)
		install(ctx, home, chart, "webhook: {enabled: false}\nwatchNamespaces: ["+namespace+"]\n")
		source, w := secret(namespace, "db", "1"), deployment(namespace, "web", envFromSecret("db"))
		adopted(ctx, namespace, source, w)
		before, err := fingerprintKeyOf(ctx, home)
		Expect(err).NotTo(HaveOccurred())
		Expect(k8s.Delete(ctx, before)).To(Succeed())
		Eventually(func(g Gomega) {
			restored, err := fingerprintKeyOf(ctx, home)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(restored.UID).NotTo(Equal(before.UID))
			same := bytes.Equal(restored.Data["key"], before.Data["key"]) // A key is not to be shown by a failure.
			g.Expect(same).To(BeTrue(), "it is another key")
		}).WithContext(ctx).Should(Succeed())
		barrier(ctx, namespace)
		restarted(ctx, 0, w)
		rewrite(ctx, source, "2")
		reached(ctx, v1alpha1.PhaseSucceeded, w)
		restarted(ctx, 1, w)
	}, NodeTimeout(patience*4))
})

// fingerprintKeyOf reads the Secret with the key of the fingerprints, of an installation.
func fingerprintKeyOf(ctx context.Context, home string) (*corev1.Secret, error) {
	key := &corev1.Secret{}
	return key, k8s.Get(ctx, client.ObjectKey{Namespace: home, Name: ledger.KeySecret}, key)
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
