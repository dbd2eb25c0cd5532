package integration

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
)

// closings are the ways to shut the gate of a policy for hours.
var closings = map[string]func(*v1alpha1.KickPolicySpec){
	v1alpha1.ReasonPolicySuspended: func(s *v1alpha1.KickPolicySpec) { s.Suspend = true },
	v1alpha1.ReasonOutsideSchedule: func(s *v1alpha1.KickPolicySpec) {
		s.Schedule = windows(v1alpha1.Window{Kind: v1alpha1.WindowAllow, Cron: at(time.Now().UTC().Add(6 * time.Hour)), Duration: "1h"})
	},
}

var _ = Describe("A gate that was shut for hours", func() {
	DescribeTable("opens to a judgement of what runs then, whatever has happened meanwhile (M3, M5)",
		func(ctx SpecContext, reason string) {
			namespace := newNamespace(ctx)
			source, other := secret(namespace, "db", "1"), configMap(namespace, "other", "1")
			on := func(name string, replicas int32, uses ...use) *appsv1.Deployment {
				d := deployment(namespace, name, append(uses, envFromSecret("db"))...)
				d.Spec.Replicas = &replicas
				return d
			}
			untouched, scaledUp, scaledDown := on("untouched", 1), on("scaled-up", 1), on("scaled-down", 3)
			losesOne, losesAll, stopped := on("loses-one", 2), on("loses-all", 2), on("stopped", 2)
			rolled, replaced := on("rolled", 1), on("replaced", 1)
			unused, lessUsed := on("unused", 1), on("less-used", 1, envFromConfigMap("other"))
			ordinal := statefulSet(namespace, "ordinal", envFromSecret("db"))
			ordinal.Spec.Replicas = ptr.To[int32](2)
			all := []client.Object{
				untouched, scaledUp, scaledDown, losesOne, losesAll, stopped, rolled, replaced, unused, lessUsed, ordinal,
			}
			adopted(ctx, namespace, append([]client.Object{source, other}, all...)...)
			change(ctx, everything(namespace), func(p *v1alpha1.KickPolicy) { closings[reason](&p.Spec) })
			nextSecond()
			rewrite(ctx, source, "2")
			for _, w := range all {
				Eventually(func(g Gomega) {
					found, err := requestOf(ctx, w)
					g.Expect(err).NotTo(HaveOccurred())
					g.Expect(found.Status.Gate).NotTo(BeNil())
					g.Expect(found.Status.Gate.Reason).To(Equal(reason))
				}).WithContext(ctx).Should(Succeed())
			}
			nextSecond()

			scale(ctx, scaledUp, 3)
			scale(ctx, scaledDown, 1)
			scale(ctx, stopped, 0)
			lost := podsOf(ctx, losesOne)[0]
			Expect(k8s.Delete(ctx, &lost)).To(Succeed())
			lost = podsOf(ctx, ordinal)[0]
			Expect(k8s.Delete(ctx, &lost)).To(Succeed())
			deletePods(ctx, losesAll)
			change(ctx, rolled, func(d *appsv1.Deployment) { app(&d.Spec.Template).Image = "app:2" })
			change(ctx, unused, func(d *appsv1.Deployment) { app(&d.Spec.Template).EnvFrom = nil })
			change(ctx, lessUsed, func(d *appsv1.Deployment) {
				d.Spec.Template = template("less-used", []use{envFromConfigMap("other")})
			})
			replacement := replace(ctx, replaced)
			present := []client.Object{
				untouched, scaledUp, scaledDown, losesOne, losesAll, stopped, rolled, replacement, unused, lessUsed, ordinal,
			}
			for _, w := range present {
				Eventually(func(g Gomega) {
					g.Expect(complete(ctx, w)).To(BeTrue())
					g.Expect(podsOf(ctx, w)).NotTo(ContainElement(HaveField("Status.Phase", Not(Equal(corev1.PodRunning)))))
				}).WithContext(ctx).Should(Succeed())
				Expect(templateOf(w).Annotations).NotTo(HaveKey(v1alpha1.RestartedAtAnnotation), w.GetName())
			}

			change(ctx, everything(namespace), func(p *v1alpha1.KickPolicy) {
				p.Spec.Suspend, p.Spec.Schedule = false, v1alpha1.Schedule{}
			})
			reached(ctx, v1alpha1.PhaseSucceeded, untouched, scaledUp, scaledDown, losesOne, ordinal)
			reached(ctx, v1alpha1.PhaseNoLongerRequired, losesAll, stopped, rolled, unused, lessUsed)
			barrier(ctx, namespace)
			restarted(ctx, 1, untouched, scaledUp, scaledDown, losesOne, ordinal)
			restarted(ctx, 0, losesAll, stopped, replacement)
			for _, w := range []client.Object{rolled, unused, lessUsed} {
				Expect(revisions(ctx, w)).To(Equal(2), "the native rollout of %s, and no restart", w.GetName())
			}
			if found, err := requestOf(ctx, replacement); !errors.IsNotFound(err) {
				Expect(err).NotTo(HaveOccurred())
				Expect(found.Spec.TargetRef.UID).To(Equal(replacement.UID))
				Expect(found.Status.Phase).To(Equal(v1alpha1.PhaseNoLongerRequired))
			}
			reasonOf(ctx, v1alpha1.ReasonNotManaged, unused)
			reasonOf(ctx, v1alpha1.ReasonAlreadyFresh, losesAll, stopped, rolled, lessUsed)

			scale(ctx, stopped, 2)
			rolledOut(ctx, stopped)
			barrier(ctx, namespace)
			restarted(ctx, 0, stopped)
		},
		Entry("after a suspension", v1alpha1.ReasonPolicySuspended, NodeTimeout(patience*3)),
		Entry("at the start of a window", v1alpha1.ReasonOutsideSchedule, NodeTimeout(patience*3)),
	)
})

// scale sets the replicas of a Deployment as an autoscaler does.
func scale(ctx SpecContext, w *appsv1.Deployment, replicas int32) {
	GinkgoHelper()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
	Expect(k8s.SubResource("scale").Patch(ctx, w.DeepCopy(), patch)).To(Succeed())
}

// replace deletes a Deployment with all that belongs to it and creates another of its name.
func replace(ctx SpecContext, w *appsv1.Deployment) *appsv1.Deployment {
	GinkgoHelper()
	again := deployment(w.Namespace, w.Name)
	again.Spec = *w.Spec.DeepCopy()
	foreground := metav1.DeletePropagationForeground
	Expect(k8s.Delete(ctx, w, &client.DeleteOptions{PropagationPolicy: &foreground})).To(Succeed())
	Eventually(func() bool { return errors.IsNotFound(k8s.Get(ctx, client.ObjectKeyFromObject(w), w)) }).
		WithContext(ctx).Should(BeTrue())
	create(ctx, again)
	rolledOut(ctx, again)
	return again
}

// reasonOf checks why requests are in their phase.
func reasonOf(ctx SpecContext, reason string, workloads ...client.Object) {
	GinkgoHelper()
	for _, w := range workloads {
		found, err := requestOf(ctx, w)
		Expect(err).NotTo(HaveOccurred())
		Expect(found.Status.Conditions).To(ContainElement(And(
			HaveField("Type", v1alpha1.ConditionReady), HaveField("Reason", reason))), found.Name)
	}
}
