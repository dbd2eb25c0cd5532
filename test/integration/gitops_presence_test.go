package integration

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/test/testbed"
)

// policyStalls waits until the policy of a namespace is, or is no longer, stalled for want of its tool.
func policyStalls(ctx context.Context, namespace string, stalls bool) {
	GinkgoHelper()
	policy := everything(namespace)
	Eventually(func(g Gomega) {
		g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(policy), policy)).To(Succeed())
		stalled := meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionStalled)
		g.Expect(stalled).NotTo(BeNil())
		g.Expect(string(stalled.Status)).To(Equal(map[bool]string{true: "True", false: "False"}[stalls]), stalled.Message)
		if stalls {
			g.Expect(stalled.Reason).To(Equal(v1alpha1.ReasonProviderUnavailable))
			g.Expect(stalled.Message).To(ContainSubstring("is not installed"))
		}
	}).WithContext(ctx).Should(Succeed())
}

var _ = Describe("KICK without the kinds of a GitOps tool", func() {
	It("is healthy, says what is missing, and goes on when they appear and when they go (C083)", func(ctx SpecContext) {
		removeGitOps(ctx, append(argoKinds, fluxKinds...)...)
		scaleKick(ctx, 0)
		scaleKick(ctx, 1)
		DeferCleanup(func(ctx SpecContext) { scaleKick(ctx, 2) }, NodeTimeout(patience))
		before, err := bed.Pods(kickNamespace, kickSelector)
		Expect(err).NotTo(HaveOccurred())

		free := newNamespace(ctx)
		ungated, db := deployment(free, "web", envFromSecret("db")), secret(free, "db", "1")
		adopted(ctx, free, db, ungated)
		namespace, plane := newNamespace(ctx), newNamespace(ctx)
		s := shop{namespace: namespace, plane: plane, source: secret(namespace, "db", "1")}
		s.web = tracked(deployment(namespace, "web", envFromSecret("db")), "shop")
		create(ctx, s.source, s.web, gated(namespace, v1alpha1.ProviderArgoCD))
		rolledOut(ctx, s.web)
		policyStalls(ctx, namespace, true)
		rewrite(ctx, db, "2")
		rewrite(ctx, s.source, "2")
		reached(ctx, v1alpha1.PhaseSucceeded, ungated)
		waits(ctx, s.web, forOwner, v1alpha1.ReasonProviderUnavailable)

		auto := newNamespace(ctx)
		lonely := deployment(auto, "web", envFromSecret("db"))
		create(ctx, secret(auto, "db", "1"), lonely, gated(auto, v1alpha1.ProviderAuto))
		Expect(waits(ctx, lonely, forOwner, v1alpha1.ReasonOwnerUnknown).Status.Gate.Message).To(
			And(ContainSubstring("ArgoCD is not installed"), ContainSubstring("Flux is not installed")))
		policyStalls(ctx, auto, false)

		installGitOps(ctx, argoKinds...)
		create(ctx, project(plane, "default"), application(plane, "shop", s.web))
		s.restartedOnce(ctx)
		policyStalls(ctx, namespace, false)

		removeGitOps(ctx, argoKinds...)
		policyStalls(ctx, namespace, true)
		nextSecond()
		rewrite(ctx, s.source, "3")
		waits(ctx, s.web, forOwner, v1alpha1.ReasonProviderUnavailable)
		after, err := bed.Pods(kickNamespace, kickSelector)
		Expect(err).NotTo(HaveOccurred())
		Expect(after).To(Equal(before), "the manager was not restarted")
	}, NodeTimeout(patience*5))
})

// waiting is how many requests wait in the spec about their cost, listening how long it looks.
const waiting = 500

var _ = Describe("Requests that wait for their owner", func() {
	It("ask nothing of the API server, and go on together when it is in sync", func(ctx SpecContext) {
		installGitOps(ctx, append(argoKinds, fluxKinds...)...)
		namespace, plane := newNamespace(ctx), newNamespace(ctx)
		app := application(plane, "many")
		var workloads []*appsv1.Deployment
		resources := []any{}
		create(ctx, secret(namespace, "db", "1"), project(plane, "default"))
		for i := range waiting {
			w := deployment(namespace, fmt.Sprintf("w%d", i), envFromSecret("db"))
			w.Spec.Replicas = ptr.To[int32](0)
			workloads = append(workloads, w)
			resources = append(resources, object{
				"group": "apps", "version": "v1", "kind": "Deployment", "namespace": namespace, "name": w.Name, "status": "Synced",
			})
			create(ctx, w)
		}
		put(app, resources, "status", "resources")
		put(app, "OutOfSync", "status", "sync", "status")
		create(ctx, app, gated(namespace, v1alpha1.ProviderArgoCD))
		inPhase := func(phase v1alpha1.Phase) func(Gomega) {
			return func(g Gomega) {
				count := 0
				for _, r := range requestsIn(ctx, namespace) {
					if r.Status.Phase == phase {
						count++
					}
				}
				g.Expect(count).To(Equal(waiting))
			}
		}
		Eventually(inPhase(forSync)).WithContext(ctx).WithTimeout(2 * patience).Should(Succeed())

		user := "system:serviceaccount:" + kickNamespace + ":kick"
		costs := func(event testbed.AuditEvent) bool { return event.Verb != "watch" && event.Resource != "leases" }
		var mark testbed.AuditMark
		Eventually(func(g Gomega) { // until the counts of the policy and the last events are written
			mark = bed.Audit().Mark()
			g.Consistently(func() (int, error) {
				return bed.Audit().Count(testbed.AuditFilter{User: user, From: mark, Match: costs})
			}).WithTimeout(70 * glance).Should(BeZero())
		}).WithContext(ctx).WithTimeout(2 * patience).Should(Succeed())
		Consistently(func() ([]testbed.AuditCount, error) {
			return bed.Audit().Table(testbed.AuditFilter{User: user, From: mark, Match: costs})
		}).WithContext(ctx).WithTimeout(patience).WithPolling(10 * glance).Should(BeEmpty())

		change(ctx, app, having("Synced", "status", "sync", "status"))
		Eventually(inPhase(v1alpha1.PhaseNoLongerRequired)).WithContext(ctx).WithTimeout(2 * patience).Should(Succeed())
		restarted(ctx, 0, workloads[0])
	}, NodeTimeout(patience*8))
})

func requestsIn(ctx context.Context, namespace string) []v1alpha1.KickRequest {
	GinkgoHelper()
	var list v1alpha1.KickRequestList
	Expect(k8s.List(ctx, &list, client.InNamespace(namespace))).To(Succeed())
	return list.Items
}
