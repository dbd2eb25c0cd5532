package integration

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/policy"
)

func windows(list ...v1alpha1.Window) v1alpha1.Schedule { return v1alpha1.Schedule{Windows: list} }

// closedNow is a Deny window that is always active.
func closedNow() v1alpha1.Schedule {
	return windows(v1alpha1.Window{Kind: v1alpha1.WindowDeny, Cron: "0 0 * * *", Duration: "48h"})
}

// at is a cron expression for one minute of the day.
func at(minute time.Time) string { return fmt.Sprintf("%d %d * * *", minute.Minute(), minute.Hour()) }

var _ = Describe("A schedule", func() {
	It("holds a change until its window opens, with nothing else to wake KICK (C070)", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		source, w := secret(namespace, "db", "1"), deployment(namespace, "web", envFromSecret("db"))
		adopted(ctx, namespace, source, w)
		opening := time.Now().UTC().Truncate(time.Minute).Add(2 * time.Minute)
		change(ctx, everything(namespace), func(p *v1alpha1.KickPolicy) {
			p.Spec.Schedule = windows(v1alpha1.Window{Kind: v1alpha1.WindowAllow, Cron: at(opening), Duration: "1h"})
		})
		rewrite(ctx, source, "2")
		Eventually(func(g Gomega) {
			found, err := requestOf(ctx, w)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found.Status.Gate).NotTo(BeNil())
			g.Expect(found.Status.Gate.Reason).To(Equal(v1alpha1.ReasonOutsideSchedule))
			g.Expect(found.Status.Gate.RequeueAt).To(Equal(opening.Format(time.RFC3339)))
		}).WithContext(ctx).Should(Succeed())
		waiting, err := requestOf(ctx, w)
		Expect(err).NotTo(HaveOccurred())

		Eventually(func() time.Time {
			found, err := requestOf(ctx, w)
			Expect(err).NotTo(HaveOccurred())
			if found.Status.Phase == v1alpha1.PhaseWaitingForGate {
				Expect(found.ResourceVersion).To(Equal(waiting.ResourceVersion), "the request was written while it waited")
			}
			if found.Status.CurrentRollout == nil || found.Status.CurrentRollout.Stamp == "" {
				return time.Time{}
			}
			stamp, err := time.Parse(time.RFC3339Nano, found.Status.CurrentRollout.Stamp)
			Expect(err).NotTo(HaveOccurred())
			return stamp
		}).WithContext(ctx).WithTimeout(2 * patience).Should(BeTemporally(">=", opening))
		reached(ctx, v1alpha1.PhaseSucceeded, w)
		restarted(ctx, 1, w)
	}, NodeTimeout(patience*4))

	It("may be edited while requests wait (C074)", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		sources := []*corev1.Secret{secret(namespace, "a", "1"), secret(namespace, "b", "1"), secret(namespace, "c", "1")}
		workloads := []client.Object{
			deployment(namespace, "a", envFromSecret("a")), statefulSet(namespace, "b", envFromSecret("b")), daemonSet(namespace, "c", envFromSecret("c")),
		}
		adopted(ctx, namespace, sources[0], sources[1], sources[2], workloads[0], workloads[1], workloads[2])
		plan := everything(namespace)
		blockedBy := func(reason string) {
			GinkgoHelper()
			for _, w := range workloads {
				Eventually(func(g Gomega) {
					found, err := requestOf(ctx, w)
					g.Expect(err).NotTo(HaveOccurred())
					g.Expect(found.Status.Phase).To(Equal(v1alpha1.PhaseWaitingForGate))
					g.Expect(found.Status.Gate.Reason).To(Equal(reason))
				}).WithContext(ctx).Should(Succeed())
			}
		}
		never := windows(v1alpha1.Window{Kind: v1alpha1.WindowAllow, Cron: at(time.Now().UTC().Add(6 * time.Hour)), Duration: "1h"})
		change(ctx, plan, func(p *v1alpha1.KickPolicy) { p.Spec.Schedule = never })
		for _, source := range sources {
			rewrite(ctx, source, "2")
		}
		blockedBy(v1alpha1.ReasonOutsideSchedule)
		change(ctx, plan, func(p *v1alpha1.KickPolicy) { p.Spec.Schedule = closedNow() })
		blockedBy(v1alpha1.ReasonNeverOpens)
		found, err := requestOf(ctx, workloads[0])
		Expect(err).NotTo(HaveOccurred())
		Expect(meta.IsStatusConditionTrue(found.Status.Conditions, v1alpha1.ConditionStalled)).To(BeTrue())
		change(ctx, plan, func(p *v1alpha1.KickPolicy) { p.Spec.Suspend = true })
		blockedBy(v1alpha1.ReasonPolicySuspended)
		change(ctx, plan, func(p *v1alpha1.KickPolicy) { p.Spec.Schedule = v1alpha1.Schedule{} })
		blockedBy(v1alpha1.ReasonPolicySuspended)
		for _, w := range workloads {
			restarted(ctx, 0, w)
		}
		change(ctx, plan, func(p *v1alpha1.KickPolicy) { p.Spec.Suspend = false })
		reached(ctx, v1alpha1.PhaseSucceeded, workloads...)
		restarted(ctx, 1, workloads...)
	}, NodeTimeout(patience*3))

	DescribeTable("that cannot be read is refused with the place and the reason (C060, C063)",
		func(ctx SpecContext, window v1alpha1.Window, path, reason string) {
			policy := everything(newNamespace(ctx))
			policy.Spec.Schedule = windows(v1alpha1.Window{Kind: v1alpha1.WindowAllow, Cron: "0 2 * * *", Duration: "1h"}, window)
			err := k8s.Create(ctx, policy)
			Expect(errors.IsInvalid(err)).To(BeTrue(), "%v", err)
			Expect(err).To(MatchError(And(ContainSubstring("spec.schedule.windows[1]."+path), ContainSubstring(reason))))
		},
		Entry("a range that wraps", allowing("0 0 * * sat-sun", "1h", ""), "cron", "range"),
		Entry("a range to 7", allowing("30 10 * * 1-7", "1h", ""), "cron", "above maximum"),
		Entry("Sunday as 7", allowing("0 0 * * 7", "1h", ""), "cron", "above maximum"),
		Entry("a zone in the expression", allowing("TZ=Europe/Paris 0 2 * * *", "1h", "UTC"), "cron", "timeZone"),
		Entry("a cron zone in the expression", allowing("CRON_TZ=UTC 0 2 * * *", "1h", ""), "cron", "timeZone"),
		Entry("only a zone", allowing("TZ=UTC", "1h", ""), "cron", "timeZone"),
		Entry("a date that never comes", allowing("0 0 30 2 *", "1h", ""), "cron", "no date ever matches"),
		Entry("no time at all, by the schema", allowing("0 0 * * *", "0s", ""), "duration", "must be positive"),
		Entry("days, by the schema", allowing("0 0 * * *", "3d", ""), "duration", "should match"),
		Entry("an unknown zone", allowing("0 0 * * *", "1h", "Europe/Atlantis"), "timeZone", "IANA"),
	)
})

func allowing(cron, duration, zone string) v1alpha1.Window {
	return v1alpha1.Window{Kind: v1alpha1.WindowAllow, Cron: cron, Duration: duration, TimeZone: zone}
}

// patiently is the policy everything with the quiet period that the API server gives it.
func patiently(namespace string) *v1alpha1.KickPolicy {
	p := everything(namespace)
	p.Spec.Restart = v1alpha1.Restart{}
	return p
}

var _ = Describe("The quiet period", func() {
	It("makes one restart of changes that come together (C046)", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		cfg, db, tls := configMap(namespace, "cfg", "1"), secret(namespace, "db", "1"), secret(namespace, "tls", "1")
		w := deployment(namespace, "web", envFromConfigMap("cfg"), envFromSecret("db"), secretVolume("tls"))
		create(ctx, cfg, db, tls, w)
		rolledOut(ctx, w)
		create(ctx, patiently(namespace))
		reached(ctx, v1alpha1.PhaseNoLongerRequired, w)
		rewrite(ctx, cfg, "2")
		nextSecond()
		rewrite(ctx, db, "2")
		nextSecond()
		rewrite(ctx, tls, "2")
		reached(ctx, v1alpha1.PhaseSucceeded, w)
		barrier(ctx, namespace)
		restarted(ctx, 1, w)
		found, err := requestOf(ctx, w)
		Expect(err).NotTo(HaveOccurred())
		Expect(causesOf(found)).To(Equal("Secret/tls Secret/db ConfigMap/cfg"))
	}, NodeTimeout(patience*2))

	It("leaves a rollout to whoever changes source and template together (C026)", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		source, w := configMap(namespace, "cfg", "1"), deployment(namespace, "web", envFromConfigMap("cfg"))
		create(ctx, source, w)
		rolledOut(ctx, w)
		create(ctx, patiently(namespace))
		reached(ctx, v1alpha1.PhaseNoLongerRequired, w)
		nextSecond()
		rewrite(ctx, source, "2")
		nextSecond()
		change(ctx, w, func(d *appsv1.Deployment) { d.Spec.Template.Annotations = map[string]string{"checksum/config": "2"} })
		rolledOut(ctx, w)
		barrier(ctx, namespace)
		reached(ctx, v1alpha1.PhaseNoLongerRequired, w)
		Expect(revisions(ctx, w)).To(Equal(2), "the native rollout, and no restart")
		Expect(w.Spec.Template.Annotations).NotTo(HaveKey(v1alpha1.RestartedAtAnnotation))
	}, NodeTimeout(patience*2))
})

var _ = Describe("A source that is to be ignored", func() {
	It("never triggers, whatever a policy says (C019)", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		ignored, counted := configMap(namespace, "platform", "1"), secret(namespace, "db", "1")
		ignored.Labels[policy.IgnoreLabel] = "true"
		w := deployment(namespace, "web", envFromConfigMap("platform"), envFromSecret("db"))
		adopted(ctx, namespace, ignored, counted, w)
		rewrite(ctx, ignored, "2")
		barrier(ctx, namespace)
		restarted(ctx, 0, w)
		rewrite(ctx, counted, "2")
		reached(ctx, v1alpha1.PhaseSucceeded, w)
		restarted(ctx, 1, w)
		found, err := requestOf(ctx, w)
		Expect(err).NotTo(HaveOccurred())
		Expect(causesOf(found)).To(Equal("Secret/db"))
	}, NodeTimeout(patience*2))
})
