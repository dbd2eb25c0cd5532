package integration

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/test/testbed"
)

// These stories are about minutes, so they pass together.
var _ = Describe("Minutes later", Ordered, func() {
	const waiters = 20
	var (
		namespace, busy string
		waiting         []client.Object
		manual          []client.Object
		paused          *appsv1.Deployment
		mark            testbed.AuditMark

		fought   *appsv1.Deployment
		resetter *owningOperator

		bereft *appsv1.Deployment
		gone   *corev1.Node
	)

	BeforeAll(func(ctx SpecContext) {
		busy = newNamespace(ctx)
		fought, resetter = foughtOver(ctx, busy)
		bereft, gone = losingNode(ctx, busy)
		namespace = newNamespace(ctx)
		waiting, manual, paused = waitingRequests(ctx, namespace, waiters)
		mark = bed.Audit().Mark()
	}, NodeTimeout(patience*3))

	It("a request that waits has not been written, whatever it waits for", func(ctx SpecContext) {
		end := time.Now().Add(lasting(2*time.Minute, 10*time.Minute))
		Eventually(time.Now).WithContext(ctx).WithTimeout(time.Until(end) + patience).WithPolling(time.Second).
			Should(BeTemporally(">=", end))
		Expect(kickWrote(namespace, mark)).To(BeEmpty())
	}, NodeTimeout(15*time.Minute))

	It("a paused Deployment is still paused, and restarts once when it is resumed (C036)", func(ctx SpecContext) {
		refresh(ctx, paused)
		Expect(paused.Spec.Paused).To(BeTrue())
		Expect(stampOf(ctx, paused)).To(BeEmpty())
		reasonOf(ctx, v1alpha1.ReasonPaused, paused)
		change(ctx, paused, func(d *appsv1.Deployment) { d.Spec.Paused = false })
		reached(ctx, v1alpha1.PhaseSucceeded, paused)
		restarted(ctx, 1, paused)
	}, NodeTimeout(patience))

	It("the Pods of workloads with update strategy OnDelete still run; the request ends when somebody replaces them (C031)", func(ctx SpecContext) {
		reasonOf(ctx, v1alpha1.ReasonAwaitingManualReplacement, manual...)
		for _, w := range manual {
			for _, pod := range podsOf(ctx, w) {
				Expect(pod.Annotations).NotTo(HaveKey(v1alpha1.RestartedAtAnnotation), "KICK deleted a Pod")
			}
			deletePods(ctx, w)
		}
		reached(ctx, v1alpha1.PhaseSucceeded, manual...)
		restarted(ctx, 1, manual...)
	}, NodeTimeout(patience))

	It("the first opening restarts each of those that waited once", func(ctx SpecContext) {
		change(ctx, everything(namespace), func(p *v1alpha1.KickPolicy) { p.Spec.Schedule = v1alpha1.Schedule{} })
		reached(ctx, v1alpha1.PhaseSucceeded, waiting...)
		restarted(ctx, 1, waiting...)
	}, NodeTimeout(patience))

	It("an operator that resets the template is not fought for ever (C039)", func(ctx SpecContext) {
		Eventually(func(g Gomega) {
			found, err := requestOf(ctx, fought)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found.Status.Phase).To(Equal(v1alpha1.PhaseFailed))
			stalled := meta.FindStatusCondition(found.Status.Conditions, v1alpha1.ConditionStalled)
			g.Expect(stalled.Reason).To(Equal(v1alpha1.ReasonStampRemoved))
			g.Expect(stalled.Message).To(ContainSubstring(resettingManager))
		}).WithContext(ctx).WithTimeout(2 * patience).Should(Succeed())
		barrier(ctx, busy)
		Expect(resetter.resets.Load()).To(BeEquivalentTo(4), "the first stamp and three more")
	}, NodeTimeout(patience*3))

	It("the Pods of a lost Node have come back elsewhere, with the content of then", func(ctx SpecContext) {
		Eventually(func(g Gomega) {
			g.Expect(complete(ctx, bereft)).To(BeTrue())
			g.Expect(podsOf(ctx, bereft)).To(HaveEach(HaveField("Spec.NodeName", Not(Equal(gone.Name)))))
		}).WithContext(ctx).Should(Succeed())
		barrier(ctx, busy)
		restarted(ctx, 1, bereft)
	}, NodeTimeout(patience*2))
})

// waitingRequests makes requests that wait for a window, for the resume of a Deployment and for people who delete Pods.
func waitingRequests(ctx SpecContext, namespace string, count int) (waiting, manual []client.Object, paused *appsv1.Deployment) {
	GinkgoHelper()
	source := secret(namespace, "db", "1")
	stateful, daemons := statefulSet(namespace, "stateful", envFromSecret("db")), daemonSet(namespace, "daemons", envFromSecret("db"))
	stateful.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
	daemons.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
	stateful.Labels["gate"], daemons.Labels["gate"] = "open", "open"
	manual = []client.Object{stateful, daemons}
	paused = deployment(namespace, "paused", envFromSecret("db"))
	paused.Labels["gate"] = "open"
	objects := []client.Object{source, stateful, daemons, paused}
	for i := range count {
		w := deployment(namespace, fmt.Sprintf("waiting-%d", i), envFromSecret("db"))
		w.Labels["gate"] = "closed"
		objects, waiting = append(objects, w), append(waiting, w)
	}
	create(ctx, objects...)
	workloads := append([]client.Object{paused}, append(manual, waiting...)...)
	rolledOut(ctx, workloads...)
	closed, open := everything(namespace), everything(namespace)
	closed.Spec.Discovery.WorkloadSelector.MatchLabels = map[string]string{"gate": "closed"}
	closings[v1alpha1.ReasonOutsideSchedule](&closed.Spec)
	open.Name = "open"
	open.Spec.Discovery.WorkloadSelector.MatchLabels = map[string]string{"gate": "open"}
	create(ctx, closed, open)
	Eventually(func() string { return ledgerVersionOrEmpty(ctx, namespace) }).WithContext(ctx).ShouldNot(BeEmpty())
	change(ctx, paused, func(d *appsv1.Deployment) { d.Spec.Paused = true })

	for _, value := range []string{"2", "3", "4"} {
		nextSecond()
		rewrite(ctx, source, value)
		reached(ctx, v1alpha1.PhaseExecuting, manual...)
	}
	reached(ctx, v1alpha1.PhaseWaitingForGate, waiting...)
	reached(ctx, v1alpha1.PhaseWaitingForRollout, paused)
	reasonOf(ctx, v1alpha1.ReasonAwaitingManualReplacement, manual...)
	settled(ctx, closed, int32(count), 1) //nolint:gosec // a small number
	settled(ctx, open, 3, 1)
	return waiting, manual, paused
}

// resettingManager is the field manager of the owning operator.
const resettingManager = "owning-operator"

// owningOperator puts the template of a Deployment back a moment after each write, as an operator does that owns it.
type owningOperator struct{ resets atomic.Int32 }

func (o *owningOperator) run(ctx context.Context, name client.ObjectKey) {
	for ctx.Err() == nil {
		d := &appsv1.Deployment{}
		if err := k8s.Get(ctx, name, d); err == nil && d.Spec.Template.Annotations[v1alpha1.RestartedAtAnnotation] != "" {
			time.Sleep(time.Second) // This is how slow the operator is; nothing waits for it.
			if k8s.Get(ctx, name, d) == nil {
				d.Spec.Template.Annotations = nil
				if k8s.Update(ctx, d, client.FieldOwner(resettingManager)) == nil {
					o.resets.Add(1)
				}
			}
		}
		time.Sleep(glance)
	}
}

// foughtOver makes a Deployment that is stale and whose stamps are removed before its Pods are replaced.
func foughtOver(ctx SpecContext, namespace string) (*appsv1.Deployment, *owningOperator) {
	GinkgoHelper()
	source := secret(namespace, "fought", "1")
	w := deployment(namespace, "fought", envFromSecret("fought"), podLabel(testbed.LabelStartDelay, "5s"))
	create(ctx, source) // Before the workload, whose Pods carry it then: the stamps that are counted are about the next change.
	Expect(k8s.Create(ctx, w, client.FieldOwner(resettingManager))).To(Succeed())
	rolledOut(ctx, w)
	adopted(ctx, namespace)
	operator := &owningOperator{}
	background, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		operator.run(background, client.ObjectKeyFromObject(w))
	}()
	DeferCleanup(func() {
		stop()
		<-done
	})
	rewrite(ctx, source, "2")
	Eventually(operator.resets.Load).WithContext(ctx).Should(BeNumerically(">=", 1))
	return w, operator
}

// losingNode makes a Deployment whose Pods were restarted and then lost a Node.
func losingNode(ctx SpecContext, namespace string) (*appsv1.Deployment, *corev1.Node) {
	GinkgoHelper()
	added := nodes(ctx, namespace, 2)
	source, w := secret(namespace, "bereft", "1"), deployment(namespace, "bereft", envFromSecret("bereft"))
	w.Spec.Replicas = ptr.To[int32](4)
	w.Spec.Template.Spec.NodeSelector = map[string]string{nodeLabel: namespace}
	create(ctx, source, w)
	rolledOut(ctx, w)
	reached(ctx, v1alpha1.PhaseNoLongerRequired, w)
	rewrite(ctx, source, "2")
	reached(ctx, v1alpha1.PhaseSucceeded, w)
	Expect(podsOf(ctx, w)).To(ContainElement(HaveField("Spec.NodeName", added[0].Name)))
	Expect(k8s.Delete(ctx, added[0])).To(Succeed())
	return w, added[0]
}
