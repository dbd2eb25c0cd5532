package integration

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/test/testbed"
)

// impatient is the policy everything, for rollouts that are known to get stuck.
func impatient(namespace string) *v1alpha1.KickPolicy {
	p := everything(namespace)
	p.Spec.Restart.RolloutDeadline = &metav1.Duration{Duration: 15 * time.Second}
	return p
}

// unready is a use of nothing: the Pods run and are not ready until somebody says so, like a process that is given a bad
// value.
var unready = podLabel(testbed.LabelNeverReady, "true")

// stampedAgain waits until a workload carries another stamp than the given one, and returns it.
func stampedAgain(ctx SpecContext, w client.Object, old string) string {
	GinkgoHelper()
	var stamp string
	Eventually(func() string {
		stamp = stampOf(ctx, w)
		return stamp
	}).WithContext(ctx).Should(And(Not(BeEmpty()), Not(Equal(old))))
	return stamp
}

var _ = Describe("A rollout that is slow or stuck", func() {
	It("gathers the changes that come during it for one restart after it (C035)", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		sources := []client.Object{
			secret(namespace, "a", "1"), secret(namespace, "b", "1"), secret(namespace, "c", "1"),
			configMap(namespace, "d", "1"), configMap(namespace, "e", "1"),
		}
		w := deployment(namespace, "web", unready, envFromSecret("a"), envFromSecret("b"), envFromSecret("c"),
			envFromConfigMap("d"), envFromConfigMap("e"))
		w.Spec.Replicas = ptr.To[int32](2)
		create(ctx, sources...)
		create(ctx, w)
		rolledOutByHand(ctx, w)
		create(ctx, everything(namespace))
		reached(ctx, v1alpha1.PhaseNoLongerRequired, w)
		nextSecond()

		rewrite(ctx, sources[0], "2")
		first := stampedAgain(ctx, w, "")
		Eventually(func() []corev1.Pod { return podsOf(ctx, w) }).WithContext(ctx).Should(ContainElement(And(
			HaveField("ObjectMeta.Annotations", HaveKeyWithValue(v1alpha1.RestartedAtAnnotation, first)),
			HaveField("Status.Phase", corev1.PodRunning))))
		var last time.Time
		for _, source := range sources {
			nextSecond()
			last = time.Now()
			rewrite(ctx, source, "3")
		}
		barrier(ctx, namespace)
		Expect(complete(ctx, w)).To(BeFalse())
		Expect(stampOf(ctx, w)).To(Equal(first), "stamped during a rollout that progresses")

		rolledOutByHand(ctx, w)
		second := stampedAgain(ctx, w, first)
		at, err := time.Parse(time.RFC3339Nano, second)
		Expect(err).NotTo(HaveOccurred())
		Expect(at).To(BeTemporally(">", last))
		rolledOutByHand(ctx, w)
		reached(ctx, v1alpha1.PhaseSucceeded, w)
		barrier(ctx, namespace)
		restarted(ctx, 2, w)
	}, NodeTimeout(patience*3))

	It("lets the mended content through to a StatefulSet, and says what else that needs (C033)", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		source := secret(namespace, "db", "good")
		w := statefulSet(namespace, "web", envFromSecret("db"), unready)
		w.Spec.Replicas = ptr.To[int32](2)
		create(ctx, source, w)
		rolledOutByHand(ctx, w)
		create(ctx, impatient(namespace))
		reached(ctx, v1alpha1.PhaseNoLongerRequired, w)
		nextSecond()

		rewrite(ctx, source, "bad")
		first := stampedAgain(ctx, w, "")
		stuckOn(ctx, w, "web-1", first)
		nextSecond()
		rewrite(ctx, source, "mended")
		second := stampedAgain(ctx, w, first)
		Eventually(func(g Gomega) {
			found, err := requestOf(ctx, w)
			g.Expect(err).NotTo(HaveOccurred())
			ready := meta.FindStatusCondition(found.Status.Conditions, v1alpha1.ConditionReady)
			g.Expect(ready.Message).To(ContainSubstring("until somebody deletes it"))
		}).WithContext(ctx).Should(Succeed())

		// The StatefulSet controller goes on only when the Pod of the bad revision is gone.
		stuck := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web-1"}}
		Expect(k8s.Delete(ctx, stuck)).To(Succeed())
		stuckOn(ctx, w, "web-1", second)
		rolledOutByHand(ctx, w)
		reached(ctx, v1alpha1.PhaseSucceeded, w)
		barrier(ctx, namespace)
		restarted(ctx, 2, w)
	}, NodeTimeout(patience*3))

	It("of a DaemonSet with a dead Node ends as failed and holds the next change back only so long (C043)", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		nodes(ctx, namespace, 5)
		source := secret(namespace, "db", "1")
		w := daemonSet(namespace, "log", envFromSecret("db"))
		w.Spec.Template.Spec.NodeSelector = map[string]string{nodeLabel: namespace}
		// With one, the DaemonSet controller would wait for the dead Node before it goes on to the others.
		w.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateDaemonSet{MaxUnavailable: ptr.To(intstr.FromInt32(2))}
		nowhere := daemonSet(namespace, "nowhere", envFromSecret("db"))
		nowhere.Spec.Template.Spec.NodeSelector = map[string]string{nodeLabel: "none"}
		create(ctx, source, w, nowhere)
		rolledOut(ctx, w, nowhere)
		Expect(podsOf(ctx, w)).To(HaveLen(5))
		create(ctx, impatient(namespace))
		reached(ctx, v1alpha1.PhaseNoLongerRequired, w, nowhere)
		// A dead Node shows in its Pod: it is not ready, and it does not go when it is deleted.
		lost := podsOf(ctx, w)[0]
		change(ctx, &lost, func(p *corev1.Pod) { p.Labels[testbed.LabelStopDelay] = "1h" })
		status := `{"status":{"conditions":[{"type":"Ready","status":"False","reason":"NodeNotReady"}]}}`
		Expect(k8s.Status().Patch(ctx, &lost, client.RawPatch(types.StrategicMergePatchType, []byte(status)))).To(Succeed())
		Eventually(func() bool { return complete(ctx, w) }).WithContext(ctx).Should(BeFalse())
		nextSecond()

		rewrite(ctx, source, "2")
		first := stampedAgain(ctx, w, "")
		reached(ctx, v1alpha1.PhaseFailed, w)
		found, err := requestOf(ctx, w)
		Expect(err).NotTo(HaveOccurred())
		ready := meta.FindStatusCondition(found.Status.Conditions, v1alpha1.ConditionReady)
		Expect(ready.Reason).To(Equal(v1alpha1.ReasonRolloutDeadlineExceeded))
		Expect(ready.Message).To(MatchRegexp(`4 of 5 Pods are (updated|available)`))
		rewrite(ctx, source, "3")
		stampedAgain(ctx, w, first)

		reached(ctx, v1alpha1.PhaseNoLongerRequired, nowhere)
		restarted(ctx, 0, nowhere)
		Expect(k8s.Delete(ctx, &lost, client.GracePeriodSeconds(0))).To(Succeed()) // the Node is given up
		rolledOut(ctx, w)
		restarted(ctx, 2, w)
	}, NodeTimeout(patience*3))
})

// stuckOn waits until a Pod runs the template with the given stamp and is not ready.
func stuckOn(ctx SpecContext, w client.Object, name, stamp string) {
	GinkgoHelper()
	Eventually(func() []corev1.Pod { return podsOf(ctx, w) }).WithContext(ctx).Should(ContainElement(And(
		HaveField("ObjectMeta.Name", name),
		HaveField("ObjectMeta.Annotations", HaveKeyWithValue(v1alpha1.RestartedAtAnnotation, stamp)),
		HaveField("Status.Phase", corev1.PodRunning))))
}
