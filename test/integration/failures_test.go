package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
)

// noStamps is an admission policy that refuses every stamp in a namespace.
func noStamps(namespace string) (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) {
	fail := admissionv1.Fail
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "no-stamps-" + namespace},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Update},
					Rule:       admissionv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
				}}},
			},
			Validations: []admissionv1.Validation{{
				Expression: `!has(object.spec.template.metadata.annotations) ||
					!("kubectl.kubernetes.io/restartedAt" in object.spec.template.metadata.annotations)`,
				Message: "no restarts today",
			}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policy.Name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
	return policy, binding
}

var _ = Describe("A stamp that is refused", func() {
	It("is said with the refusal, claims nothing, and is written once it is admitted", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		source, w := secret(namespace, "db", "1"), deployment(namespace, "web", envFromSecret("db"))
		adopted(ctx, namespace, source, w)
		policy, binding := noStamps(namespace)
		create(ctx, policy, binding)
		DeferCleanup(func(ctx SpecContext) {
			Expect(client.IgnoreNotFound(k8s.Delete(ctx, policy))).To(Succeed())
			Expect(client.IgnoreNotFound(k8s.Delete(ctx, binding))).To(Succeed())
		})
		Eventually(func(g Gomega) { // the API server takes a moment to enforce it
			refresh(ctx, w)
			try := w.DeepCopy()
			try.Spec.Template.Annotations = map[string]string{v1alpha1.RestartedAtAnnotation: "x"}
			g.Expect(k8s.Update(ctx, try, client.DryRunAll)).To(MatchError(ContainSubstring("no restarts today")))
		}).WithContext(ctx).Should(Succeed())

		rewrite(ctx, source, "2")
		Eventually(func(g Gomega) {
			found, err := requestOf(ctx, w)
			g.Expect(err).NotTo(HaveOccurred())
			stalled := meta.FindStatusCondition(found.Status.Conditions, v1alpha1.ConditionStalled)
			g.Expect(stalled).NotTo(BeNil())
			g.Expect(stalled.Status).To(Equal(metav1.ConditionTrue))
			g.Expect(stalled.Reason).To(Equal(v1alpha1.ReasonRestartDenied))
			g.Expect(stalled.Message).To(ContainSubstring("no restarts today"))
			g.Expect(found.Status.Phase).To(Equal(v1alpha1.PhaseExecuting))
		}).WithContext(ctx).Should(Succeed())
		restarted(ctx, 0, w)

		Expect(k8s.Delete(ctx, binding)).To(Succeed())
		reached(ctx, v1alpha1.PhaseSucceeded, w)
		restarted(ctx, 1, w)
	}, NodeTimeout(patience*2))
})

var _ = Describe("A request", func() {
	It("of a workload that was replaced by another of its name is replaced too", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		source, w := secret(namespace, "db", "1"), deployment(namespace, "web", envFromSecret("db"))
		adopted(ctx, namespace, source, w)
		policy := metav1.DeletePropagationOrphan
		Expect(k8s.Delete(ctx, w, &client.DeleteOptions{PropagationPolicy: &policy})).To(Succeed())
		Eventually(func() bool { return errors.IsNotFound(k8s.Get(ctx, client.ObjectKeyFromObject(w), w)) }).Should(BeTrue())
		again := deployment(namespace, "web", envFromSecret("db"))
		create(ctx, again)
		rolledOut(ctx, again)
		rewrite(ctx, source, "2")
		reached(ctx, v1alpha1.PhaseSucceeded, again)
		found, err := requestOf(ctx, again)
		Expect(err).NotTo(HaveOccurred())
		Expect(found.Spec.TargetRef.UID).To(Equal(again.UID))
	}, NodeTimeout(patience*2))

	It("that a user deletes comes back if its workload is stale", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		source, w := secret(namespace, "db", "1"), deployment(namespace, "web", envFromSecret("db"))
		adopted(ctx, namespace, source, w)
		policy := everything(namespace)
		change(ctx, policy, func(p *v1alpha1.KickPolicy) { p.Spec.Suspend = true })
		rewrite(ctx, source, "2")
		reached(ctx, v1alpha1.PhaseWaitingForGate, w)
		found, err := requestOf(ctx, w)
		Expect(err).NotTo(HaveOccurred())
		Expect(k8s.Delete(ctx, found)).To(Succeed())
		Eventually(func(g Gomega) {
			next, err := requestOf(ctx, w)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(next.UID).NotTo(Equal(found.UID))
			g.Expect(next.Status.Phase).To(Equal(v1alpha1.PhaseWaitingForGate))
		}).WithContext(ctx).Should(Succeed())
		change(ctx, policy, func(p *v1alpha1.KickPolicy) { p.Spec.Suspend = false })
		reached(ctx, v1alpha1.PhaseSucceeded, w)
		restarted(ctx, 1, w)
	}, NodeTimeout(patience*2))

	It("ends when no policy manages its workload any more", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		source, w := secret(namespace, "db", "1"), deployment(namespace, "web", envFromSecret("db"))
		adopted(ctx, namespace, source, w)
		policy := everything(namespace)
		change(ctx, policy, func(p *v1alpha1.KickPolicy) { p.Spec.Suspend = true })
		rewrite(ctx, source, "2")
		reached(ctx, v1alpha1.PhaseWaitingForGate, w)
		Expect(k8s.Delete(ctx, policy)).To(Succeed())
		reached(ctx, v1alpha1.PhaseNoLongerRequired, w)
		restarted(ctx, 0, w)
		create(ctx, everything(namespace))
		reached(ctx, v1alpha1.PhaseSucceeded, w)
		restarted(ctx, 1, w)
	}, NodeTimeout(patience*2))

	It("is deleted some time after its end", Serial, func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		source, w := secret(namespace, "db", "1"), deployment(namespace, "web", envFromSecret("db"))
		adopted(ctx, namespace, source, w)
		upgrade := func(ttl string) {
			GinkgoHelper()
			output, err := bed.Helm(ctx, "upgrade", "kick", "../../charts/kick", "--namespace", kickNamespace,
				// Other specs have edited the registration of the webhooks, which Helm then leaves to them otherwise.
				"--force-conflicts", "--reuse-values", "--set", "requestTTL="+ttl, "--wait", "--timeout", "3m")
			Expect(err).NotTo(HaveOccurred(), output)
		}
		upgrade("1s")
		Eventually(func() bool {
			_, err := requestOf(ctx, w)
			return errors.IsNotFound(err)
		}).WithContext(ctx).Should(BeTrue())
		rewrite(ctx, source, "2")
		Eventually(func() int { return revisions(ctx, w) }).WithContext(ctx).Should(Equal(2))
		Eventually(func() bool {
			_, err := requestOf(ctx, w)
			return errors.IsNotFound(err)
		}).WithContext(ctx).Should(BeTrue())
		upgrade("24h")
		barrier(ctx, namespace)
		restarted(ctx, 1, w)
	}, NodeTimeout(patience*3))
})

var _ = Describe("A scaler that writes the workload all the time", func() {
	It("neither keeps the stamp away nor is overwritten by it", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		source, w := secret(namespace, "db", "1"), deployment(namespace, "web", envFromSecret("db"))
		adopted(ctx, namespace, source, w)
		rewrite(ctx, source, "2")
		replicas := int32(1)
		Eventually(func(g Gomega) { // each poll scales, so the generation never rests while the stamp is written
			replicas = replicas%4 + 1
			change(ctx, w, func(d *appsv1.Deployment) { d.Spec.Replicas = &replicas })
			found, err := requestOf(ctx, w)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found.Status.CurrentRollout).NotTo(BeNil())
			g.Expect(found.Status.CurrentRollout.Issued).To(BeTrue())
		}).WithContext(ctx).WithPolling(glance / 10).Should(Succeed())
		reached(ctx, v1alpha1.PhaseSucceeded, w)
		restarted(ctx, 1, w)
		Expect(*w.Spec.Replicas).To(Equal(replicas))
	}, NodeTimeout(patience*2))
})
