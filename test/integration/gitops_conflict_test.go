package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
)

var _ = Describe("A sync of Argo CD", func() {
	BeforeEach(func(ctx SpecContext) { installGitOps(ctx, append(argoKinds, fluxKinds...)...) }, NodeTimeout(patience))

	It("that rolls the workload itself leaves nothing to restart (C086)", func(ctx SpecContext) {
		s := newShop(ctx)
		app := application(s.plane, "shop", s.web)
		create(ctx, app)
		s.adopt(ctx, v1alpha1.ProviderArgoCD)
		// As Argo CD stores it: the operation first, with the result of the last comparison still in place.
		change(ctx, app, func(o *unstructured.Unstructured) {
			put(o, object{"sync": object{}}, "operation")
			put(o, nil, "status", "operationState")
		})
		rewrite(ctx, s.source, "2")
		waits(ctx, s.web, forSync, v1alpha1.ReasonSyncInProgress)
		change(ctx, app, having("OutOfSync", "status", "sync", "status"))
		change(ctx, app, having(object{"phase": "Running"}, "status", "operationState"))
		nextSecond()
		web := s.web.(*appsv1.Deployment)
		change(ctx, web, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "app:2" })
		rolledOut(ctx, web)
		waits(ctx, web, forSync, v1alpha1.ReasonSyncInProgress)
		change(ctx, app, func(o *unstructured.Unstructured) {
			put(o, nil, "operation")
			put(o, "Succeeded", "status", "operationState", "phase")
		})
		waits(ctx, web, forSync, v1alpha1.ReasonOutOfSync)
		change(ctx, app, having("Synced", "status", "sync", "status"))
		reached(ctx, v1alpha1.PhaseNoLongerRequired, web)
		Expect(revisions(ctx, web)).To(Equal(2), "the rollout of the sync, and no restart")
		Expect(web.Spec.Template.Annotations).NotTo(HaveKey(v1alpha1.RestartedAtAnnotation))
	}, NodeTimeout(patience*2))

	It("that takes the stamp away each time ends in a failure that names the cure, and in no loop (C077)", func(ctx SpecContext) {
		s := newShop(ctx)
		web := s.web.(*appsv1.Deployment)
		// Nothing is rolled out while there is no room for another Pod, so that each removal comes in time.
		create(ctx, &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "full"},
			Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")}},
		})
		app, stamps := application(s.plane, "shop", web), map[string]bool{}
		create(ctx, app)
		s.adopt(ctx, v1alpha1.ProviderArgoCD)
		nextSecond()
		rewrite(ctx, s.source, "2")
		Eventually(func(g Gomega) {
			g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(web), web)).To(Succeed())
			if stamp := web.Spec.Template.Annotations[v1alpha1.RestartedAtAnnotation]; stamp != "" {
				stamps[stamp] = true
				change(ctx, web, func(d *appsv1.Deployment) { delete(d.Spec.Template.Annotations, v1alpha1.RestartedAtAnnotation) })
				change(ctx, app, having("OutOfSync", "status", "sync", "status"))
				change(ctx, app, having("Synced", "status", "sync", "status"))
			}
			found, err := requestOf(ctx, web)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found.Status.Phase).To(Equal(v1alpha1.PhaseFailed))
			ready := conditionOf(found, v1alpha1.ConditionReady)
			g.Expect(ready.Reason).To(Equal(v1alpha1.ReasonStampRemoved))
			g.Expect(ready.Message).To(ContainSubstring("exclude it from what"))
		}).WithContext(ctx).WithTimeout(3 * patience).Should(Succeed())
		Expect(stamps).To(HaveLen(4), "the restart, and three more tries")
	}, NodeTimeout(patience*5))

	It("that does not come keeps a restart waiting, quietly, until it does (C078)", func(ctx SpecContext) {
		s := newShop(ctx)
		app := application(s.plane, "shop", s.web)
		create(ctx, app)
		s.adopt(ctx, v1alpha1.ProviderArgoCD)
		change(ctx, app, having("OutOfSync", "status", "sync", "status"))
		rewrite(ctx, s.source, "2")
		found := waits(ctx, s.web, forSync, v1alpha1.ReasonOutOfSync)
		for i := range 5 { // Argo CD notes that it has looked.
			change(ctx, app, having(int64(i), "status", "observedAt"))
		}
		barrier(ctx, newNamespace(ctx))
		later := waits(ctx, s.web, forSync, v1alpha1.ReasonOutOfSync)
		Expect(later.ResourceVersion).To(Equal(found.ResourceVersion), "nothing is written while nothing changes")
		change(ctx, app, having("Synced", "status", "sync", "status"))
		s.restartedOnce(ctx)
	}, NodeTimeout(patience*2))
})
