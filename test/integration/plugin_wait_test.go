package integration

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/test/testbed"
)

// waited runs kubectl kick wait, which has to succeed.
func waited(ctx context.Context, w client.Object) {
	GinkgoHelper()
	Expect(shows(ctx, "wait", kubectlName(w), "-n", w.GetNamespace(), "--timeout", patience.String())).To(
		ContainSubstring("carry every change made before"))
}

// complains runs kubectl kick wait, which has to fail.
func complains(ctx context.Context, w client.Object, arguments ...string) string {
	GinkgoHelper()
	out, complaints, err := kick(ctx, append([]string{"wait", kubectlName(w), "-n", w.GetNamespace()}, arguments...)...)
	Expect(err).To(HaveOccurred(), out)
	return complaints
}

var _ = Describe("kubectl kick wait", func() {
	It("returns when the changes made before it are live, right after they were made", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		source, w := secret(namespace, "db", "1"), deployment(namespace, "web", envFromSecret("db"), podLabel(testbed.LabelStartDelay, "3s"))
		w.Spec.Replicas = ptr.To[int32](2)
		adopted(ctx, namespace, source, w)
		waited(ctx, w) // Nothing has changed.
		restarted(ctx, 0, w)
		for i, value := range []string{"2", "3", "4"} {
			nextSecond()
			rewrite(ctx, source, value)
			waited(ctx, w) // At once: KICK may not have seen the change yet.
			live(ctx, w)
			Expect(revisions(ctx, w)).To(Equal(2 + i))
		}

		By("waiting for what needs no restart")
		label(ctx, source, "touched", "yes")
		waited(ctx, w)
		restarted(ctx, 3, w)

		By("waiting for a restart by hand")
		nextSecond()
		askByHand(ctx, w, false)
		waited(ctx, w)
		live(ctx, w)
		restarted(ctx, 4, w)
	}, NodeTimeout(patience*4))

	It("fails where the change does not become live, and says why", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		source, w := secret(namespace, "db", "1"), deployment(namespace, "web", envFromSecret("db"))
		create(ctx, source, w)
		rolledOut(ctx, w)
		Expect(complains(ctx, w)).To(ContainSubstring("deployment/web is not managed"))
		adopted(ctx, namespace)
		Expect(complains(ctx, deployment(namespace, "gone"))).To(ContainSubstring("deployment/gone is not in namespace"))
		Expect(complains(ctx, w, member(ctx, namespace, "victor", "view")...)).To(ContainSubstring("is forbidden"))

		night, opens := nextNight()
		change(ctx, everything(namespace), func(p *v1alpha1.KickPolicy) { p.Spec.Schedule = night })
		nextSecond()
		rewrite(ctx, source, "2")
		Expect(complains(ctx, w, "--timeout", "15s")).To(And(ContainSubstring("gave up waiting"), ContainSubstring(opens)))
		restarted(ctx, 0, w)

		By("failing with the restart")
		change(ctx, everything(namespace), func(p *v1alpha1.KickPolicy) {
			p.Spec.Schedule = v1alpha1.Schedule{}
			p.Spec.Restart.RolloutDeadline = &metav1.Duration{Duration: 10 * time.Second}
		})
		broken, ill := secret(namespace, "ill", "1"), deployment(namespace, "ill", envFromSecret("ill"), unready)
		create(ctx, broken, ill)
		rolledOutByHand(ctx, ill)
		reached(ctx, v1alpha1.PhaseNoLongerRequired, ill)
		nextSecond()
		rewrite(ctx, broken, "2")
		Expect(complains(ctx, ill, "--timeout", patience.String())).To(And(
			ContainSubstring("the restart of deployment/ill failed"), ContainSubstring("RolloutDeadlineExceeded")))
		Expect(complains(ctx, ill, "--timeout", patience.String())).To(ContainSubstring("failed"), "it has not become live since")

		By("waiting for the change that mends it")
		failed := stampOf(ctx, ill)
		nextSecond()
		rewrite(ctx, broken, "3")
		Eventually(func() string { return stampOf(ctx, ill) }).WithContext(ctx).ShouldNot(Equal(failed))
		Eventually(func() []string { return stampsOfPods(ctx, ill) }).WithContext(ctx).Should(ContainElement(stampOf(ctx, ill)))
		rolledOutByHand(ctx, ill)
		waited(ctx, ill)
	}, NodeTimeout(patience*4))
})

// stampsOfPods are the stamps that the Pods of a workload carry.
func stampsOfPods(ctx context.Context, w client.Object) []string {
	GinkgoHelper()
	var stamps []string
	for _, pod := range podsOf(ctx, w) {
		stamps = append(stamps, pod.Annotations[v1alpha1.RestartedAtAnnotation])
	}
	return stamps
}
