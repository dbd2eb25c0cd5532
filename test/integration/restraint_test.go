package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
)

// policyWith is a policy that manages everything, changed.
func policyWith(namespace string, edit func(*v1alpha1.KickPolicySpec)) *v1alpha1.KickPolicy {
	plan := everything(namespace)
	edit(&plan.Spec)
	return plan
}

// blocked waits until the request of a workload is held back by the reason, and returns it.
func blocked(ctx context.Context, reason string, w client.Object) *v1alpha1.KickRequest {
	GinkgoHelper()
	var found *v1alpha1.KickRequest
	Eventually(func(g Gomega) {
		var err error
		found, err = requestOf(ctx, w)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found.Status.Gate).NotTo(BeNil(), "%s", found.Status.Phase)
		g.Expect(found.Status.Gate.Reason).To(Equal(reason))
	}).WithContext(ctx).Should(Succeed())
	return found
}

// eventsOn lists the notes of the events with the reason that regard an object of the namespace.
func eventsOn(ctx context.Context, namespace, reason string) []string {
	GinkgoHelper()
	var list eventsv1.EventList
	Expect(k8s.List(ctx, &list, client.InNamespace(namespace))).To(Succeed())
	var notes []string
	for i := range list.Items {
		if list.Items[i].Reason == reason {
			notes = append(notes, list.Items[i].Note)
		}
	}
	return notes
}

var _ = Describe("A required source that is missing", func() {
	It("holds the restart back until it is complete (C007)", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		source := secret(namespace, "db", "1")
		w := statefulSet(namespace, "web", envOfSecretKey("db"))
		w.Spec.Replicas = replicas(3)
		adopted(ctx, namespace, source, w)

		Expect(k8s.Delete(ctx, source)).To(Succeed())
		barrier(ctx, namespace)
		restarted(ctx, 0, w)

		incomplete := secret(namespace, "db", "2")
		incomplete.Data = map[string][]byte{"other": []byte("2")}
		create(ctx, incomplete)
		found := blocked(ctx, v1alpha1.ReasonMissingSource, w)
		Expect(found.Status.Gate.Message).To(ContainSubstring("the key key of the Secret db"))
		Expect(meta.IsStatusConditionTrue(found.Status.Conditions, v1alpha1.ConditionStalled)).To(BeTrue())
		restarted(ctx, 0, w)

		rewrite(ctx, incomplete, "2")
		reached(ctx, v1alpha1.PhaseSucceeded, w)
		restarted(ctx, 1, w)
	}, NodeTimeout(patience*3))

	It("holds the restart for another source back", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		source, required := secret(namespace, "db", "1"), configMap(namespace, "cfg", "1")
		w := deployment(namespace, "web", envFromSecret("db"), configMapVolume("cfg", ""))
		adopted(ctx, namespace, source, required, w)
		Expect(k8s.Delete(ctx, required)).To(Succeed())
		rewrite(ctx, source, "2")
		Expect(blocked(ctx, v1alpha1.ReasonMissingSource, w).Status.Gate.Message).To(ContainSubstring("the ConfigMap cfg"))
		create(ctx, configMap(namespace, "cfg", "1"))
		reached(ctx, v1alpha1.PhaseSucceeded, w)
		restarted(ctx, 1, w)
	}, NodeTimeout(patience*2))
})

var _ = Describe("Granularity Key", func() {
	It("restarts the consumers of the keys that changed (C015)", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		shared := secret(namespace, "shared", "")
		var readers []client.Object
		for i := range 12 {
			key := fmt.Sprintf("key%d", i)
			shared.Data[key] = []byte("1")
			readers = append(readers, deployment(namespace, fmt.Sprintf("reads-%d", i), envOfKey("shared", key)))
		}
		whole := deployment(namespace, "whole", envFromSecret("shared"))
		items := deployment(namespace, "items", itemsOfSecret("shared", "key7", "key8"))
		others := deployment(namespace, "others", itemsOfSecret("shared", "key1", "key2"))
		create(ctx, shared)
		create(ctx, readers...)
		create(ctx, whole, items, others)
		rolledOut(ctx, append(readers, whole, items, others)...)
		create(ctx, policyWith(namespace, func(s *v1alpha1.KickPolicySpec) { s.Discovery.Granularity = v1alpha1.GranularityKey }))
		barrier(ctx, namespace)

		change(ctx, shared, func(s *corev1.Secret) { s.Data["key7"] = []byte("2") })
		reached(ctx, v1alpha1.PhaseSucceeded, readers[7], whole, items)
		barrier(ctx, namespace)
		restarted(ctx, 1, readers[7], whole, items)
		restarted(ctx, 0, append(readers[:7:7], readers[8:]...)...)
		restarted(ctx, 0, others)
		found, err := requestOf(ctx, readers[7])
		Expect(err).NotTo(HaveOccurred())
		Expect(found.Status.Causes).To(HaveLen(1))
		Expect(found.Status.Causes[0].Keys).To(Equal([]string{"key7"}))
	}, NodeTimeout(patience*3))
})

var _ = Describe("A dry run", func() {
	It("says what it would restart, and restarts it once it acts (C128)", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		source, w := secret(namespace, "db", "1"), deployment(namespace, "web", envFromSecret("db"))
		create(ctx, source, w)
		rolledOut(ctx, w)
		plan := policyWith(namespace, func(s *v1alpha1.KickPolicySpec) { s.DryRun = true })
		create(ctx, plan)
		reached(ctx, v1alpha1.PhaseNoLongerRequired, w)
		var before *metav1.MicroTime
		for _, value := range []string{"2", "3"} {
			rewrite(ctx, source, value)
			Eventually(func(g Gomega) {
				found := blocked(ctx, v1alpha1.ReasonDryRun, w)
				g.Expect(found.Status.LatestObservedDependencyChange).NotTo(Equal(before))
				before = found.Status.LatestObservedDependencyChange
			}).WithContext(ctx).Should(Succeed())
		}
		Expect(eventsOn(ctx, namespace, "KickWaiting")).To(ContainElement(ContainSubstring("would restart because of Secret db")))
		restarted(ctx, 0, w)
		change(ctx, plan, func(p *v1alpha1.KickPolicy) { p.Spec.DryRun = false })
		reached(ctx, v1alpha1.PhaseSucceeded, w)
		restarted(ctx, 1, w)
	}, NodeTimeout(patience*2))
})

var _ = Describe("A source that is fought over", func() {
	It("restarts its consumers less and less often, and says who writes it (C049)", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		source, w := secret(namespace, "db", "0"), deployment(namespace, "web", envFromSecret("db"))
		create(ctx, source, w)
		rolledOut(ctx, w)
		create(ctx, policyWith(namespace, func(s *v1alpha1.KickPolicySpec) { s.Restart.MinInterval = &metav1.Duration{Duration: 2 * time.Second} }))
		reached(ctx, v1alpha1.PhaseNoLongerRequired, w)

		fight, stop := context.WithCancel(ctx)
		var writers sync.WaitGroup
		for _, name := range []string{"left", "right"} {
			writers.Go(func() {
				for n := 0; fight.Err() == nil; n++ {
					patch := fmt.Appendf(nil, `{"stringData":{"key":"%s %d"}}`, name, n)
					_ = k8s.Patch(fight, secret(namespace, "db", ""), client.RawPatch("application/merge-patch+json", patch), client.FieldOwner(name))
					time.Sleep(glance)
				}
			})
		}
		DeferCleanup(func() { stop(); writers.Wait() })
		Eventually(func(g Gomega) {
			g.Expect(eventsOn(ctx, namespace, "SourceFlapping")).To(ContainElement(
				And(ContainSubstring("Secret db"), Or(ContainSubstring("left"), ContainSubstring("right")))))
			found, err := requestOf(ctx, w)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found.Status.CurrentRollout.Streak).To(BeNumerically(">=", 3))
		}).WithContext(ctx).Should(Succeed())
		stop()
		writers.Wait()
		reached(ctx, v1alpha1.PhaseSucceeded, w)

		var sets appsv1.ReplicaSetList
		Expect(k8s.List(ctx, &sets, client.InNamespace(namespace))).To(Succeed())
		var starts []time.Time
		for i := range sets.Items {
			if stamp := sets.Items[i].Spec.Template.Annotations[v1alpha1.RestartedAtAnnotation]; stamp != "" {
				at, err := time.Parse(time.RFC3339Nano, stamp)
				Expect(err).NotTo(HaveOccurred())
				starts = append(starts, at)
			}
		}
		slices.SortFunc(starts, time.Time.Compare)
		least := 2 * time.Second
		for i := 1; i < len(starts); i++ {
			Expect(starts[i].Sub(starts[i-1])).To(BeNumerically(">=", least), "restart %d of %v", i, starts)
			least *= 2
		}
	}, NodeTimeout(patience*3))
})

var _ = Describe("The limit on concurrent restarts", func() {
	It("of a policy holds at all times, and all are restarted in the end (C051)", func(ctx SpecContext) {
		const limit, workloads = 3, 14
		namespace := newNamespace(ctx)
		source := secret(namespace, "shared", "1")
		create(ctx, source)
		var all []client.Object
		for i := range workloads {
			all = append(all, deployment(namespace, fmt.Sprintf("w%d", i), envFromSecret("shared"), podLabel("testbed.kick.dev/start-delay", "1s")))
		}
		create(ctx, all...)
		rolledOut(ctx, all...)
		most := int32(limit)
		create(ctx, policyWith(namespace, func(s *v1alpha1.KickPolicySpec) { s.Restart.MaxConcurrent = &most }))
		barrier(ctx, namespace)
		rewrite(ctx, source, "2")
		sawWaiting := false
		Eventually(func(g Gomega) {
			var list v1alpha1.KickRequestList
			g.Expect(k8s.List(ctx, &list, client.InNamespace(namespace))).To(Succeed())
			rolling, done := 0, 0
			for i := range list.Items {
				switch status := &list.Items[i].Status; status.Phase {
				case v1alpha1.PhaseExecuting:
					rolling++
				case v1alpha1.PhaseSucceeded:
					done++
				default:
					sawWaiting = sawWaiting || (status.Gate != nil && status.Gate.Reason == v1alpha1.ReasonConcurrencyLimit)
				}
			}
			if rolling > limit {
				StopTrying(fmt.Sprintf("%d restarts at the same time", rolling)).Now()
			}
			g.Expect(done).To(BeNumerically(">=", workloads))
		}).WithContext(ctx).WithTimeout(2 * patience).Should(Succeed())
		Expect(sawWaiting).To(BeTrue(), "nothing had to wait")
		restarted(ctx, 1, all...)
	}, NodeTimeout(patience*4))
})

var _ = Describe("A person who asks for a restart", func() {
	ask := func(ctx context.Context, w client.Object, override bool) {
		GinkgoHelper()
		found, err := requestOf(ctx, w)
		Expect(err).NotTo(HaveOccurred())
		change(ctx, found, func(r *v1alpha1.KickRequest) {
			r.Spec.Manual = &v1alpha1.ManualRestart{
				RequestedAt: metav1.NowMicro(), RequestedBy: "admin", Reason: "an incident", Override: override,
			}
		})
	}
	It("gets one, through closed windows only by override (C076)", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		source, w, other := secret(namespace, "db", "1"), deployment(namespace, "web", envFromSecret("db")), deployment(namespace, "other", envFromSecret("db"))
		create(ctx, source, w, other)
		rolledOut(ctx, w, other)
		plan := policyWith(namespace, func(s *v1alpha1.KickPolicySpec) { s.Restart.MinInterval = &metav1.Duration{Duration: time.Hour} })
		create(ctx, plan)
		reached(ctx, v1alpha1.PhaseNoLongerRequired, w, other)
		ask(ctx, w, false)
		reached(ctx, v1alpha1.PhaseSucceeded, w)
		restarted(ctx, 1, w)
		found, err := requestOf(ctx, w)
		Expect(err).NotTo(HaveOccurred())
		Expect(found.Status.Causes[0].Kind).To(Equal(v1alpha1.Manual))
		Expect(found.Status.Causes[0].Name).To(Equal("admin"))

		change(ctx, plan, func(p *v1alpha1.KickPolicy) { p.Spec.Schedule = closedNow() })
		ask(ctx, w, false)
		blocked(ctx, v1alpha1.ReasonNeverOpens, w)
		ask(ctx, w, true)
		reached(ctx, v1alpha1.PhaseSucceeded, w)
		restarted(ctx, 2, w)
		rewrite(ctx, source, "2")
		blocked(ctx, v1alpha1.ReasonNeverOpens, w)
		blocked(ctx, v1alpha1.ReasonNeverOpens, other)
		restarted(ctx, 0, other)
	}, NodeTimeout(patience*3))
})

var _ = Describe("Policies that share workloads", func() {
	It("name each other", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		w, own := deployment(namespace, "web", envFromSecret("db")), deployment(namespace, "own", envFromSecret("db"))
		first, second := everything(namespace), everything(namespace)
		second.Name = "second"
		second.Spec.Discovery.WorkloadSelector.MatchLabels = map[string]string{"app": "web"}
		create(ctx, w, own, first)
		exclusive := func(p *v1alpha1.KickPolicy, status metav1.ConditionStatus, says string) {
			GinkgoHelper()
			Eventually(func(g Gomega) {
				g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(p), p)).To(Succeed())
				condition := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionScopeExclusive)
				g.Expect(condition).NotTo(BeNil())
				g.Expect(condition.Status).To(Equal(status))
				g.Expect(condition.Message).To(ContainSubstring(says))
			}).WithContext(ctx).Should(Succeed())
		}
		exclusive(first, metav1.ConditionTrue, "no other policy")
		create(ctx, second)
		exclusive(second, metav1.ConditionFalse, "everything (1)")
		exclusive(first, metav1.ConditionFalse, "second (1)")
	}, NodeTimeout(patience*2))
})

var _ = Describe("A rollout that does not end", func() {
	It("fails the request after the deadline of the policy, and a fix gets through (C033)", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		source, w := secret(namespace, "db", "1"), statefulSet(namespace, "web", envFromSecret("db"))
		create(ctx, source, w)
		rolledOut(ctx, w)
		create(ctx, policyWith(namespace, func(s *v1alpha1.KickPolicySpec) {
			s.Restart.RolloutDeadline = &metav1.Duration{Duration: 10 * time.Second}
		}))
		reached(ctx, v1alpha1.PhaseNoLongerRequired, w)
		change(ctx, w, func(s *appsv1.StatefulSet) { s.Spec.Template.Labels["testbed.kick.dev/never-ready"] = "true" })
		rewrite(ctx, source, "2")
		Eventually(func(g Gomega) {
			found, err := requestOf(ctx, w)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found.Status.CurrentRollout).NotTo(BeNil())
			g.Expect(strings.Join([]string{string(found.Status.Phase), meta.FindStatusCondition(found.Status.Conditions, "Ready").Reason}, "/")).
				To(Equal("Failed/" + v1alpha1.ReasonRolloutDeadlineExceeded))
		}).WithContext(ctx).Should(Succeed())
		rewrite(ctx, source, "3")
		Eventually(func(g Gomega) {
			g.Expect(revisions(ctx, w)).To(Equal(4), "the template edit, the restart and the fix")
		}).WithContext(ctx).Should(Succeed())
	}, NodeTimeout(patience*2))
})
