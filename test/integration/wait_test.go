package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/test/testbed"
)

// kubectlWait waits for a condition of the request of a Deployment, as a pipeline does.
func kubectlWait(ctx context.Context, w client.Object, condition string) {
	GinkgoHelper()
	output, err := bed.Kubectl(ctx, "wait", "--for=condition="+condition, "kickrequest/deployment-"+w.GetName(),
		"--namespace", w.GetNamespace(), "--timeout", patience.String())
	Expect(err).NotTo(HaveOccurred(), output)
}

// live checks that every Pod of a workload runs the template with the stamp of its request.
func live(ctx context.Context, w client.Object) {
	GinkgoHelper()
	found, err := requestOf(ctx, w)
	Expect(err).NotTo(HaveOccurred())
	pods := podsOf(ctx, w)
	Expect(pods).NotTo(BeEmpty())
	for _, pod := range pods {
		Expect(pod.Annotations).To(HaveKeyWithValue(v1alpha1.RestartedAtAnnotation, found.Status.CurrentRollout.Stamp), pod.Name)
		Expect(pod.Status.Conditions).To(ContainElement(And(
			HaveField("Type", corev1.PodReady), HaveField("Status", corev1.ConditionTrue))), pod.Name)
	}
}

var _ = Describe("kubectl wait --for=condition=Ready", func() {
	It("returns when the new content is live, and not before", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		source := secret(namespace, "db", "1")
		w := deployment(namespace, "web", envFromSecret("db"), podLabel(testbed.LabelStartDelay, "3s"))
		w.Spec.Replicas = ptr.To[int32](2)
		adopted(ctx, namespace, source, w)
		for _, value := range []string{"2", "3"} {
			before := stampOf(ctx, w)
			rewrite(ctx, source, value)
			kubectlWait(ctx, w, v1alpha1.ConditionReady+"=false") // the change has been seen
			kubectlWait(ctx, w, v1alpha1.ConditionReady)
			live(ctx, w)
			Expect(stampOf(ctx, w)).NotTo(Equal(before))
		}
		restarted(ctx, 2, w)
	}, NodeTimeout(patience*2))
})
