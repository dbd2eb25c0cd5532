package integration

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/workload"
	"github.com/kick-dev/kick/internal/core/request"
)

// newNamespace makes a namespace for one spec.
func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "it-"}}
	Expect(k8s.Create(ctx, namespace)).To(Succeed())
	DeferCleanup(func(ctx context.Context) { Expect(client.IgnoreNotFound(k8s.Delete(ctx, namespace))).To(Succeed()) })
	return namespace.Name
}

func create(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		Expect(k8s.Create(ctx, object)).To(Succeed())
	}
}

// refresh reads an object again.
func refresh(ctx context.Context, object client.Object) {
	GinkgoHelper()
	Expect(k8s.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
}

// change updates an object, on its present state.
func change[T client.Object](ctx context.Context, object T, edit func(T)) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
		edit(object)
		g.Expect(k8s.Update(ctx, object)).To(Succeed())
	}).WithContext(ctx).Should(Succeed())
}

// rewrite gives a source a new value.
func rewrite(ctx context.Context, source client.Object, value string) {
	GinkgoHelper()
	switch s := source.(type) {
	case *corev1.Secret:
		change(ctx, s, func(s *corev1.Secret) { s.Data["key"] = []byte(value) })
	case *corev1.ConfigMap:
		change(ctx, s, func(s *corev1.ConfigMap) { s.Data["key"] = value })
	default:
		Fail(fmt.Sprintf("%T is no source", source))
	}
}

// rolledOut waits until the rollouts of workloads are complete.
func rolledOut(ctx context.Context, workloads ...client.Object) {
	GinkgoHelper()
	for _, w := range workloads {
		Eventually(func(g Gomega) {
			g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(w), w)).To(Succeed())
			wrapped, _ := workload.Of(w)
			g.Expect(wrapped.Rollout().Complete).To(BeTrue(), "%s: %s", wrapped.Key, wrapped.Rollout().Message)
		}).WithContext(ctx).Should(Succeed())
	}
}

// complete tells whether the rollout of a workload is complete now.
func complete(ctx context.Context, w client.Object) bool {
	GinkgoHelper()
	refresh(ctx, w)
	wrapped, _ := workload.Of(w)
	return wrapped.Rollout().Complete
}

// requestOf reads the request of a workload.
func requestOf(ctx context.Context, w client.Object) (*v1alpha1.KickRequest, error) {
	found := &v1alpha1.KickRequest{}
	name := client.ObjectKey{Namespace: w.GetNamespace(), Name: request.Name(kindOf(w), w.GetName())}
	return found, k8s.Get(ctx, name, found)
}

// reached waits until the request of each workload is in the phase.
func reached(ctx context.Context, phase v1alpha1.Phase, workloads ...client.Object) {
	GinkgoHelper()
	for _, w := range workloads {
		Eventually(func(g Gomega) {
			found, err := requestOf(ctx, w)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found.Status.Phase).To(Equal(phase), "%s: %+v", found.Name, found.Status)
		}).WithContext(ctx).Should(Succeed())
	}
}

// revisions counts the revisions that a workload has had.
func revisions(ctx context.Context, w client.Object) int {
	GinkgoHelper()
	owned := 0
	if kindOf(w) == v1alpha1.Deployment {
		var sets appsv1.ReplicaSetList
		Expect(k8s.List(ctx, &sets, client.InNamespace(w.GetNamespace()))).To(Succeed())
		for i := range sets.Items {
			if metav1.IsControlledBy(&sets.Items[i], w) {
				owned++
			}
		}
		return owned
	}
	var list appsv1.ControllerRevisionList
	Expect(k8s.List(ctx, &list, client.InNamespace(w.GetNamespace()))).To(Succeed())
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], w) {
			owned++
		}
	}
	return owned
}

// restarted checks that each workload has been restarted that many times since it was created, and that it is rolled
// out.
func restarted(ctx context.Context, times int, workloads ...client.Object) {
	GinkgoHelper()
	for _, w := range workloads {
		rolledOut(ctx, w)
		Expect(revisions(ctx, w)).To(Equal(1+times), "revisions of %s %s", kindOf(w), w.GetName())
		if times == 0 {
			Expect(templateOf(w).Annotations).NotTo(HaveKey(v1alpha1.RestartedAtAnnotation))
		}
	}
}

// adopted creates sources, workloads and the policy of a namespace and waits until KICK has settled on them.
func adopted(ctx context.Context, namespace string, objects ...client.Object) {
	GinkgoHelper()
	create(ctx, objects...)
	var workloads []client.Object
	for _, object := range objects {
		if _, ok := workload.Of(object); ok {
			workloads = append(workloads, object)
		}
	}
	rolledOut(ctx, workloads...)
	create(ctx, everything(namespace))
	barrier(ctx, namespace)
}

// barriers numbers the canaries.
var barriers int

// barrier returns when KICK has dealt with whatever happened in the namespaces before: a canary that changed after it
// has been restarted. It stands in for "wait, and nothing happens".
func barrier(ctx context.Context, namespaces ...string) {
	GinkgoHelper()
	barriers++
	name := fmt.Sprintf("canary-%d", barriers)
	var sources, canaries []client.Object
	for _, namespace := range namespaces {
		sources = append(sources, secret(namespace, name, "before"))
		canaries = append(canaries, deployment(namespace, name, envFromSecret(name)))
	}
	create(ctx, sources...)
	create(ctx, canaries...)
	rolledOut(ctx, canaries...)
	for _, canary := range canaries {
		if !selected(ctx, canary) {
			create(ctx, labelled(canary.GetNamespace(), name))
		}
	}
	reached(ctx, v1alpha1.PhaseNoLongerRequired, canaries...)
	for _, source := range sources {
		rewrite(ctx, source, "after")
	}
	reached(ctx, v1alpha1.PhaseSucceeded, canaries...)
}

// selected tells whether some policy selects a workload.
func selected(ctx context.Context, w client.Object) bool {
	GinkgoHelper()
	var policies v1alpha1.KickPolicyList
	Expect(k8s.List(ctx, &policies, client.InNamespace(w.GetNamespace()))).To(Succeed())
	for i := range policies.Items {
		selector, err := metav1.LabelSelectorAsSelector(&policies.Items[i].Spec.Discovery.WorkloadSelector)
		Expect(err).NotTo(HaveOccurred())
		if selector.Matches(labels.Set(w.GetLabels())) {
			return true
		}
	}
	return false
}

// scaleKick sets the number of replicas of KICK and waits until that many are ready.
func scaleKick(ctx context.Context, replicas int32) {
	GinkgoHelper()
	kick := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: kickNamespace, Name: "kick"}}
	change(ctx, kick, func(d *appsv1.Deployment) { d.Spec.Replicas = &replicas })
	Eventually(func(g Gomega) {
		g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(kick), kick)).To(Succeed())
		g.Expect(kick.Status.ReadyReplicas).To(Equal(replicas))
		running, err := bed.Pods(kickNamespace, kickSelector)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(running).To(HaveLen(int(replicas)))
	}).WithContext(ctx).Should(Succeed())
}

// ledgerVersion is the resourceVersion of the ledger of a namespace.
func ledgerVersion(ctx context.Context, namespace string) string {
	GinkgoHelper()
	ledger := &v1alpha1.KickLedger{}
	Expect(k8s.Get(ctx, client.ObjectKey{Namespace: kickNamespace, Name: namespace}, ledger)).To(Succeed())
	for _, record := range ledger.Records {
		Expect(record.Pending).To(BeFalse(), "%s %s is pending", record.Kind, record.Name)
	}
	return ledger.ResourceVersion
}

// causesOf lists the sources a request names, as Kind/name.
func causesOf(found *v1alpha1.KickRequest) string {
	var names []string
	for _, cause := range found.Status.Causes {
		names = append(names, string(cause.Kind)+"/"+cause.Name)
	}
	return strings.Join(names, " ")
}
