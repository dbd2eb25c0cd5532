package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/test/testbed"
)

// manifest writes an object to a file for kubectl.
func manifest(object client.Object) string {
	GinkgoHelper()
	gvk, err := k8s.GroupVersionKindFor(object)
	Expect(err).NotTo(HaveOccurred())
	object.GetObjectKind().SetGroupVersionKind(gvk)
	text, err := yaml.Marshal(object)
	Expect(err).NotTo(HaveOccurred())
	path := filepath.Join(GinkgoT().TempDir(), "manifest.yaml")
	Expect(os.WriteFile(path, text, 0o600)).To(Succeed())
	return path
}

func ownedBy(w *appsv1.Deployment) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: w.Name, UID: w.UID}}
}

// nextSecond returns in the second after the present one: the API server dates in whole seconds, and what follows is to
// be dated later than what went before.
func nextSecond() {
	next := time.Now().Truncate(time.Second).Add(time.Second)
	Eventually(time.Now).WithPolling(10 * time.Millisecond).Should(BeTemporally(">=", next))
}

var _ = Describe("Adopting a running cluster", func() {
	It("restarts nothing that is fresh and each stale workload once", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		freshSource, staleSource := secret(namespace, "fresh", "1"), secret(namespace, "stale", "1")
		fresh := []client.Object{
			deployment(namespace, "fresh-d", envFromSecret("fresh")),
			statefulSet(namespace, "fresh-s", envFromSecret("fresh")),
			daemonSet(namespace, "fresh-l", envFromSecret("fresh")),
		}
		stale := []client.Object{
			deployment(namespace, "stale-d", envFromSecret("stale")),
			statefulSet(namespace, "stale-s", envFromSecret("stale")),
			daemonSet(namespace, "stale-l", envFromSecret("stale")),
		}
		create(ctx, freshSource, staleSource)
		create(ctx, append(fresh, stale...)...)
		rolledOut(ctx, fresh...)
		rolledOut(ctx, stale...)
		nextSecond()
		rewrite(ctx, staleSource, "2")
		_, err := bed.Kubectl(ctx, "annotate", "secret", "fresh", "--namespace", namespace, "touched=yes")
		Expect(err).NotTo(HaveOccurred())

		create(ctx, everything(namespace))
		reached(ctx, v1alpha1.PhaseNoLongerRequired, fresh...)
		reached(ctx, v1alpha1.PhaseSucceeded, stale...)
		barrier(ctx, namespace)
		restarted(ctx, 0, fresh...)
		restarted(ctx, 1, stale...)
	}, NodeTimeout(patience*2))

	It("finds the stale workload of a source that was observed before for another", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		source := secret(namespace, "shared", "1")
		known, unknown := deployment(namespace, "known", envFromSecret("shared")), deployment(namespace, "unknown", envFromSecret("shared"))
		policy := everything(namespace)
		policy.Spec.Discovery.WorkloadSelector = metav1.LabelSelector{MatchLabels: map[string]string{"app": "known"}}
		create(ctx, source, known, unknown)
		rolledOut(ctx, known, unknown)
		create(ctx, policy)
		reached(ctx, v1alpha1.PhaseNoLongerRequired, known)
		nextSecond()
		rewrite(ctx, source, "2")
		reached(ctx, v1alpha1.PhaseSucceeded, known)
		restarted(ctx, 0, unknown)

		change(ctx, policy, func(p *v1alpha1.KickPolicy) { p.Spec.Discovery.WorkloadSelector = metav1.LabelSelector{} })
		reached(ctx, v1alpha1.PhaseSucceeded, unknown)
		barrier(ctx, namespace)
		restarted(ctx, 1, known, unknown)
	}, NodeTimeout(patience*2))

	It("makes no request for a workload that came after its sources were observed (I8)", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		source, first := secret(namespace, "db", "1"), deployment(namespace, "first", envFromSecret("db"))
		adopted(ctx, namespace, source, first)
		nextSecond()
		second := deployment(namespace, "second", envFromSecret("db"))
		create(ctx, second)
		rolledOut(ctx, second)
		barrier(ctx, namespace)
		_, err := requestOf(ctx, second)
		Expect(err).To(HaveOccurred())
		Expect(client.IgnoreNotFound(err)).To(Succeed())
	}, NodeTimeout(patience*2))
})

var _ = Describe("A restart", func() {
	It("is followed by one more for a change that came during its rollout", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		source := secret(namespace, "db", "1")
		w := statefulSet(namespace, "web", envFromSecret("db"), podLabel(testbed.LabelStartDelay, "2s"))
		w.Spec.Replicas = ptr.To[int32](2)
		adopted(ctx, namespace, source, w)
		rewrite(ctx, source, "2")
		// web-1 goes first. Once it runs it has read the second value, and the third is news to it.
		Eventually(func(g Gomega) {
			refresh(ctx, w)
			first := &corev1.Pod{}
			g.Expect(k8s.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "web-1"}, first)).To(Succeed())
			g.Expect(w.Status.UpdateRevision).NotTo(Equal(w.Status.CurrentRevision))
			g.Expect(first.Labels).To(HaveKeyWithValue(appsv1.ControllerRevisionHashLabelKey, w.Status.UpdateRevision))
			g.Expect(first.Status.Phase).To(Equal(corev1.PodRunning))
		}).WithContext(ctx).Should(Succeed())
		nextSecond()
		rewrite(ctx, source, "3")
		Eventually(func() int { return revisions(ctx, w) }).WithContext(ctx).Should(Equal(3))
		reached(ctx, v1alpha1.PhaseSucceeded, w)
		barrier(ctx, namespace)
		restarted(ctx, 2, w)
	}, NodeTimeout(patience*2))

	It("is not followed by another for a change that its Pods have started after", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		source := secret(namespace, "db", "1")
		w := deployment(namespace, "web", envFromSecret("db"), podLabel(testbed.LabelStartDelay, "8s"))
		adopted(ctx, namespace, source, w)
		rewrite(ctx, source, "2")
		Eventually(func() int { return revisions(ctx, w) }).WithContext(ctx).Should(Equal(2))
		rewrite(ctx, source, "3")
		reached(ctx, v1alpha1.PhaseSucceeded, w)
		barrier(ctx, namespace)
		restarted(ctx, 1, w)
	}, NodeTimeout(patience*2))

	It("whose new Pod never gets ready fails, and a later change is still delivered", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		source := secret(namespace, "db", "1")
		w := deployment(namespace, "web", envFromSecret("db"), podLabel(testbed.LabelNeverReady, "true"))
		w.Spec.ProgressDeadlineSeconds = ptr.To[int32](5)
		w.Spec.MinReadySeconds = 0
		create(ctx, source, w)
		rolledOutByHand(ctx, w)
		create(ctx, everything(namespace))
		reached(ctx, v1alpha1.PhaseNoLongerRequired, w)

		rewrite(ctx, source, "2")
		reached(ctx, v1alpha1.PhaseFailed, w)
		found, err := requestOf(ctx, w)
		Expect(err).NotTo(HaveOccurred())
		ready := meta.FindStatusCondition(found.Status.Conditions, v1alpha1.ConditionReady)
		Expect(ready.Reason).To(Equal(v1alpha1.ReasonRolloutFailed))
		Expect(meta.IsStatusConditionTrue(found.Status.Conditions, v1alpha1.ConditionStalled)).To(BeTrue())

		rewrite(ctx, source, "3")
		Eventually(func() int { return revisions(ctx, w) }).WithContext(ctx).Should(Equal(3))
		rolledOutByHand(ctx, w)
		reached(ctx, v1alpha1.PhaseSucceeded, w)
	}, NodeTimeout(patience*2))

	It("waits while its policy is suspended, and goes on when it is not", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		source, w := secret(namespace, "db", "1"), deployment(namespace, "web", envFromSecret("db"))
		adopted(ctx, namespace, source, w)
		policy := everything(namespace)
		change(ctx, policy, func(p *v1alpha1.KickPolicy) { p.Spec.Suspend = true })
		rewrite(ctx, source, "2")
		reached(ctx, v1alpha1.PhaseWaitingForGate, w)
		restarted(ctx, 0, w)
		change(ctx, policy, func(p *v1alpha1.KickPolicy) { p.Spec.Suspend = false })
		reached(ctx, v1alpha1.PhaseSucceeded, w)
		restarted(ctx, 1, w)
	}, NodeTimeout(patience*2))

	It("is told by an event on the workload", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		source, w := secret(namespace, "db", "1"), deployment(namespace, "web", envFromSecret("db"))
		adopted(ctx, namespace, source, w)
		rewrite(ctx, source, "2")
		reached(ctx, v1alpha1.PhaseSucceeded, w)
		Eventually(func() (string, error) {
			return bed.Kubectl(ctx, "describe", "deployment", "web", "--namespace", namespace)
		}).WithContext(ctx).Should(And(ContainSubstring("Kicked"), ContainSubstring("because of Secret db"), ContainSubstring("KickSucceeded")))
	}, NodeTimeout(patience*2))
})

var _ = Describe("The manager", Serial, func() {
	It("does nothing at all when it is restarted or killed and nothing has changed (C118)", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		var objects, workloads []client.Object
		for i := range lasting(20, 100) {
			name := fmt.Sprintf("web-%d", i)
			w := deployment(namespace, name, envFromSecret(name))
			objects = append(objects, secret(namespace, name, "1"), w)
			workloads = append(workloads, w)
		}
		create(ctx, objects...)
		rolledOut(ctx, workloads...)
		create(ctx, everything(namespace))
		reached(ctx, v1alpha1.PhaseNoLongerRequired, workloads...)
		settled(ctx, everything(namespace), int32(len(workloads)), int32(len(workloads))) //nolint:gosec // small numbers

		mark, other := bed.Audit().Mark(), newNamespace(ctx)
		create(ctx, everything(other))
		for range lasting(1, 5) {
			running, err := bed.Pods(kickNamespace, kickSelector)
			Expect(err).NotTo(HaveOccurred())
			for _, process := range running {
				process.Kill()
			}
			scaleKick(ctx, 2)
			barrier(ctx, other)
			scaleKick(ctx, 0)
			scaleKick(ctx, 2)
			barrier(ctx, other)
		}
		Expect(kickWrote(namespace, mark)).To(BeEmpty())
		restarted(ctx, 0, workloads...)
	}, NodeTimeout(15*time.Minute))

	It("finds what changed while it was down, and acts on it once (C119)", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		changed, replaced, rolled := secret(namespace, "changed", "1"), secret(namespace, "replaced", "1"), secret(namespace, "rolled", "1")
		ofChanged := deployment(namespace, "of-changed", envFromSecret("changed"))
		ofReplaced := deployment(namespace, "of-replaced", envFromSecret("replaced"))
		ofMissing := deployment(namespace, "of-missing", optionalSecret("missing"))
		ofRolled := deployment(namespace, "of-rolled", envFromSecret("rolled"))
		adopted(ctx, namespace, changed, replaced, rolled, ofChanged, ofReplaced, ofMissing, ofRolled)

		scaleKick(ctx, 0)
		nextSecond()
		rewrite(ctx, changed, "2")
		Expect(k8s.Delete(ctx, replaced)).To(Succeed())
		create(ctx, secret(namespace, "replaced", "2"), secret(namespace, "missing", "1"))
		rewrite(ctx, rolled, "2")
		nextSecond()
		change(ctx, ofRolled, func(d *appsv1.Deployment) { d.Spec.Template.Labels["rolled"] = "natively" })
		rolledOut(ctx, ofRolled)
		scaleKick(ctx, 2)

		reached(ctx, v1alpha1.PhaseSucceeded, ofChanged, ofReplaced, ofMissing)
		reached(ctx, v1alpha1.PhaseNoLongerRequired, ofRolled)
		barrier(ctx, namespace)
		restarted(ctx, 1, ofChanged, ofReplaced, ofMissing)
		Expect(revisions(ctx, ofRolled)).To(Equal(2), "the native rollout, and no restart")
	}, NodeTimeout(patience*4))
})

// rawManifest writes YAML to a file for kubectl.
func rawManifest(text string) string {
	GinkgoHelper()
	path := filepath.Join(GinkgoT().TempDir(), "manifest.yaml")
	Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
	return path
}
