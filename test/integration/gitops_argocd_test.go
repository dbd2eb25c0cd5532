package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
)

const (
	forOwner = v1alpha1.PhaseWaitingForOwner
	forSync  = v1alpha1.PhaseWaitingForApplicationSync
	forGate  = v1alpha1.PhaseWaitingForGate
)

var _ = Describe("A workload of Argo CD", func() {
	BeforeEach(func(ctx SpecContext) { installGitOps(ctx, append(argoKinds, fluxKinds...)...) }, NodeTimeout(patience))

	type edit = func(*unstructured.Unstructured)
	all := func(edits ...edit) edit {
		return func(o *unstructured.Unstructured) {
			for _, e := range edits {
				e(o)
			}
		}
	}
	annotation := func(key, value string) edit {
		return func(o *unstructured.Unstructured) { o.SetAnnotations(map[string]string{key: value}) }
	}
	plain := func(o *unstructured.Unstructured) { o.SetAnnotations(nil) }
	synced := all(having("Synced", "status", "sync", "status"), having("Succeeded", "status", "operationState", "phase"), having(nil, "operation"))

	DescribeTable("waits while its Application",
		func(ctx SpecContext, hold, release edit, phase v1alpha1.Phase, reason, says string) {
			s := newShop(ctx)
			app := application(s.plane, "shop", s.web)
			create(ctx, app)
			s.adopt(ctx, v1alpha1.ProviderArgoCD)
			change(ctx, app, hold)
			rewrite(ctx, s.source, "2")
			found := waits(ctx, s.web, phase, reason)
			Expect(found.Status.Gate.Message).To(ContainSubstring(says))
			if phase != forOwner {
				Expect(found.Status.Owner).To(Equal(&v1alpha1.Owner{
					Provider: v1alpha1.ProviderArgoCD, Kind: "Application", Namespace: s.plane, Name: "shop", Project: "default",
				}))
				Expect(found.Status.Gate.Message).To(ContainSubstring("Application " + s.plane + "/shop"))
			}
			restarted(ctx, 0, s.web)
			change(ctx, app, release)
			s.restartedOnce(ctx)
		},
		Entry("is OutOfSync", having("OutOfSync", "status", "sync", "status"), synced, forSync, v1alpha1.ReasonOutOfSync, "the workload itself is Synced"),
		Entry("is Unknown", all(having("Unknown", "status", "sync", "status"), having([]any{object{"type": "ComparisonError", "message": "x"}}, "status", "conditions")),
			synced, forSync, v1alpha1.ReasonOutOfSync, "Unknown (ComparisonError)"),
		Entry("was never compared", having(nil, "status", "sync", "status"), synced, forSync, v1alpha1.ReasonSyncInProgress, "not been compared"),
		Entry("has an operation that has not begun", all(having(object{"sync": object{}}, "operation"), having(nil, "status", "operationState")),
			synced, forSync, v1alpha1.ReasonSyncInProgress, "operation in progress"),
		Entry("has a running operation", having("Running", "status", "operationState", "phase"), synced, forSync, v1alpha1.ReasonSyncInProgress, "operation in progress"),
		Entry("has an operation that is being ended", having("Terminating", "status", "operationState", "phase"), synced, forSync, v1alpha1.ReasonSyncInProgress, ""),
		Entry("is to be refreshed", annotation("argocd.argoproj.io/refresh", "hard"), plain, forSync, v1alpha1.ReasonSyncInProgress, "compared again"),
		Entry("has another target since it was compared", having("v2", "spec", "source", "targetRevision"), having("main", "spec", "source", "targetRevision"),
			forSync, v1alpha1.ReasonSyncInProgress, "has changed"),
		Entry("is not reconciled", annotation("argocd.argoproj.io/skip-reconcile", "true"), plain, forSync, v1alpha1.ReasonOwnerSuspended, "skip-reconcile"),
		Entry("deploys to another cluster", having("https://10.0.0.1", "spec", "destination", "server"),
			having("https://kubernetes.default.svc", "spec", "destination", "server"), forOwner, v1alpha1.ReasonOwnerUnknown, "another cluster"),
		Entry("belongs to a project that does not exist", having("gone", "spec", "project"), having("default", "spec", "project"),
			forOwner, v1alpha1.ReasonProjectUnknown, "does not exist"),
	)

	It("does not wait for an operation that failed, nor for health", func(ctx SpecContext) {
		s := newShop(ctx)
		app := application(s.plane, "shop", s.web)
		put(app, "Failed", "status", "operationState", "phase")
		put(app, "Degraded", "status", "health", "status")
		create(ctx, app)
		s.adopt(ctx, v1alpha1.ProviderArgoCD)
		rewrite(ctx, s.source, "2")
		s.restartedOnce(ctx)
	}, NodeTimeout(patience*2))

	It("may belong to an Application in a namespace of its own", func(ctx SpecContext) {
		s := newShop(ctx)
		team := newNamespace(ctx)
		app := application(s.plane, "shop", s.web)
		app.SetNamespace(team)
		put(app, "OutOfSync", "status", "sync", "status")
		create(ctx, app, gated(s.namespace, v1alpha1.ProviderArgoCD))
		waits(ctx, s.web, forSync, v1alpha1.ReasonOutOfSync)
		rewrite(ctx, s.source, "2")
		change(ctx, app, synced)
		found := s.restartedOnce(ctx)
		Expect(found.Status.Owner.Namespace).To(Equal(team))
	}, NodeTimeout(patience*2))

	It("waits while nothing owns it, while two Applications do, and goes on with one", func(ctx SpecContext) {
		s := newShop(ctx)
		change(ctx, s.web, func(w client.Object) { tracked(w, "nowhere") })
		create(ctx, gated(s.namespace, v1alpha1.ProviderArgoCD))
		Expect(waits(ctx, s.web, forOwner, v1alpha1.ReasonOwnerUnknown).Status.Gate.Message).To(ContainSubstring("Application nowhere, which is not in this cluster"))
		rewrite(ctx, s.source, "2")
		one, two := application(s.plane, "shop", s.web), application(s.plane, "two", s.web)
		put(one, "OutOfSync", "status", "sync", "status")
		create(ctx, one)
		waits(ctx, s.web, forSync, v1alpha1.ReasonOutOfSync)
		create(ctx, two)
		found := waits(ctx, s.web, forOwner, v1alpha1.ReasonMultipleOwners)
		Expect(found.Status.Gate.Message).To(And(ContainSubstring(s.plane+"/shop"), ContainSubstring(s.plane+"/two")))
		Expect(found.Status.Owner).To(BeNil())
		restarted(ctx, 0, s.web)
		remove(ctx, one)
		Expect(s.restartedOnce(ctx).Status.Owner.Name).To(Equal("two"))
	}, NodeTimeout(patience*2))

	It("has no owner until its Application lists it", func(ctx SpecContext) {
		s := newShop(ctx)
		app := application(s.plane, "shop")
		create(ctx, app, gated(s.namespace, v1alpha1.ProviderArgoCD))
		Expect(waits(ctx, s.web, forOwner, v1alpha1.ReasonOwnerUnknown).Status.Gate.Message).To(ContainSubstring("does not list the workload"))
		rewrite(ctx, s.source, "2")
		listing := application(s.plane, "shop", s.web).Object["status"].(object)["resources"]
		change(ctx, app, having(listing, "status", "resources"))
		s.restartedOnce(ctx)
	}, NodeTimeout(patience*2))

	It("is not owned by an Application whose tracking id it copied", func(ctx SpecContext) {
		s := newShop(ctx)
		other := deployment(s.namespace, "api")
		copied := deployment(s.namespace, "copy", envFromSecret("db"))
		copied.Annotations = tracked(other.DeepCopy(), "shop").Annotations
		create(ctx, copied, application(s.plane, "shop", s.web, other), gated(s.namespace, v1alpha1.ProviderArgoCD))
		Expect(waits(ctx, copied, forOwner, v1alpha1.ReasonOwnerUnknown).Status.Gate.Message).To(ContainSubstring("is that of another object"))
		reached(ctx, v1alpha1.PhaseNoLongerRequired, s.web)
	}, NodeTimeout(patience*2))

	It("waits while its Application is being deleted, and has no owner afterwards", func(ctx SpecContext) {
		s := newShop(ctx)
		app := application(s.plane, "shop", s.web)
		app.SetFinalizers(finalizer)
		create(ctx, app)
		s.adopt(ctx, v1alpha1.ProviderArgoCD)
		remove(ctx, app)
		rewrite(ctx, s.source, "2")
		waits(ctx, s.web, forSync, v1alpha1.ReasonOwnerDeleting)
		change(ctx, app, func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
		waits(ctx, s.web, forOwner, v1alpha1.ReasonOwnerUnknown)
		restarted(ctx, 0, s.web)
	}, NodeTimeout(patience*2))

	It("waits for a freeze that only its AppProject shows, and goes on when that is lifted", func(ctx SpecContext) {
		s := newShop(ctx)
		app, frozen := application(s.plane, "shop", s.web), project(s.plane, "default")
		create(ctx, app)
		s.adopt(ctx, v1alpha1.ProviderArgoCD)
		freeze := object{"kind": "deny", "schedule": "* * * * *", "duration": "24h", "applications": []any{"*"}}
		change(ctx, frozen, having([]any{freeze}, "spec", "syncWindows"))
		rewrite(ctx, s.source, "2")
		waits(ctx, s.web, forGate, v1alpha1.ReasonOutsideSchedule)
		freeze["duration"] = "1d"
		change(ctx, frozen, having([]any{freeze}, "spec", "syncWindows"))
		Expect(waits(ctx, s.web, forGate, v1alpha1.ReasonConfigurationError).Status.Gate.Message).To(ContainSubstring(`"1d"`))
		restarted(ctx, 0, s.web)
		change(ctx, frozen, having(nil, "spec", "syncWindows"))
		s.restartedOnce(ctx)
	}, NodeTimeout(patience*2))

	It("waits for a freeze that its AppProject inherits by the settings of Argo CD", func(ctx SpecContext) {
		s := newShop(ctx)
		app, global := application(s.plane, "shop", s.web), project(s.plane, "freeze")
		freeze := object{"kind": "deny", "schedule": "* * * * *", "duration": "24h", "namespaces": []any{"def*"}}
		put(global, []any{freeze}, "spec", "syncWindows")
		create(ctx, app, global)
		s.adopt(ctx, v1alpha1.ProviderArgoCD)
		settings := configMap(s.plane, "argocd-cm", "")
		settings.Data = map[string]string{"globalProjects": "- labelSelector: {matchLabels: {freeze: \"yes\"}}\n  projectName: freeze\n"}
		create(ctx, settings)
		change(ctx, project(s.plane, "default"), func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"freeze": "yes"}) })
		rewrite(ctx, s.source, "2")
		waits(ctx, s.web, forGate, v1alpha1.ReasonOutsideSchedule)
		change(ctx, global, having([]any{}, "spec", "syncWindows"))
		s.restartedOnce(ctx)
	}, NodeTimeout(patience*2))

	It("waits for windows and not for its sync state where the policy says so", func(ctx SpecContext) {
		s := newShop(ctx)
		app, frozen := application(s.plane, "shop", s.web), project(s.plane, "default")
		put(app, "OutOfSync", "status", "sync", "status")
		policy, no := gated(s.namespace, v1alpha1.ProviderArgoCD), false
		policy.Spec.GitOps.RequireReconciled = &no
		create(ctx, app, policy)
		reached(ctx, v1alpha1.PhaseNoLongerRequired, s.web)
		freeze := object{"kind": "deny", "schedule": "* * * * *", "duration": "24h", "clusters": []any{"*"}}
		change(ctx, frozen, having([]any{freeze}, "spec", "syncWindows"))
		rewrite(ctx, s.source, "2")
		waits(ctx, s.web, forGate, v1alpha1.ReasonOutsideSchedule)
		change(ctx, frozen, having(nil, "spec", "syncWindows"))
		s.restartedOnce(ctx)
	}, NodeTimeout(patience*2))

	It("waits where one of two policies asks for its owner", func(ctx SpecContext) {
		s := newShop(ctx)
		app := application(s.plane, "shop", s.web)
		create(ctx, app)
		s.adopt(ctx, v1alpha1.ProviderArgoCD)
		second := everything(s.namespace)
		second.Name = "second"
		create(ctx, second)
		change(ctx, app, having("OutOfSync", "status", "sync", "status"))
		rewrite(ctx, s.source, "2")
		waits(ctx, s.web, forSync, v1alpha1.ReasonOutOfSync)
		change(ctx, app, synced)
		s.restartedOnce(ctx)
	}, NodeTimeout(patience*2))
})
