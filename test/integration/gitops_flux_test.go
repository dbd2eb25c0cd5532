package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
)

var _ = Describe("A workload of Flux", func() {
	BeforeEach(func(ctx SpecContext) { installGitOps(ctx, append(argoKinds, fluxKinds...)...) }, NodeTimeout(patience))

	type edit = func(*unstructured.Unstructured)
	// failing is a Kustomization that failed and waits for its next try.
	failing := func(reason string) edit {
		return func(o *unstructured.Unstructured) {
			conditions(condition("Ready", "False", reason, o.GetGeneration()),
				condition("Reconciling", "True", "ProgressingWithRetry", o.GetGeneration()))(o)
			put(o, o.GetGeneration()-1, "status", "observedGeneration")
		}
	}
	working := func(status string) edit {
		return func(o *unstructured.Unstructured) {
			conditions(condition("Ready", status, "Progressing", o.GetGeneration()),
				condition("Reconciling", "True", "Progressing", o.GetGeneration()))(o)
		}
	}

	DescribeTable("waits while its owner",
		func(ctx SpecContext, kind schema.GroupVersionKind, specify, status edit, reason string) {
			s := newShop(ctx)
			flux := fluxOwner(ctx, kind, s.plane, s.web)
			s.adopt(ctx, v1alpha1.ProviderFlux)
			if specify != nil {
				change(ctx, flux, specify)
			}
			if status != nil {
				report(ctx, flux, status)
			}
			rewrite(ctx, s.source, "2")
			found := waits(ctx, s.web, forSync, reason)
			Expect(found.Status.Owner).To(Equal(&v1alpha1.Owner{
				Provider: v1alpha1.ProviderFlux, Kind: kind.Kind, Namespace: s.plane, Name: "shop",
			}))
			restarted(ctx, 0, s.web)
			change(ctx, flux, func(o *unstructured.Unstructured) {
				put(o, false, "spec", "suspend")
				o.SetAnnotations(nil)
			})
			report(ctx, flux, ready(s.web))
			s.restartedOnce(ctx)
		},
		Entry("has a spec that is not observed", kustomizations, having("5m", "spec", "interval"), nil, v1alpha1.ReasonSyncInProgress),
		Entry("is suspended", kustomizations, having(true, "spec", "suspend"), nil, v1alpha1.ReasonOwnerSuspended),
		Entry("is a suspended HelmRelease", helmReleases, having(true, "spec", "suspend"), nil, v1alpha1.ReasonOwnerSuspended),
		Entry("is asked to reconcile", kustomizations, func(o *unstructured.Unstructured) {
			o.SetAnnotations(map[string]string{"reconcile.fluxcd.io/requestedAt": "2026-08-06T12:00:00Z"})
		}, nil, v1alpha1.ReasonSyncInProgress),
		Entry("is stalled", kustomizations, nil, conditions(condition("Stalled", "True", "InvalidPath", 1)), v1alpha1.ReasonOutOfSync),
		Entry("failed to build", kustomizations, nil, failing("BuildFailed"), v1alpha1.ReasonOutOfSync),
		Entry("applies", kustomizations, nil, working("Unknown"), v1alpha1.ReasonSyncInProgress),
		Entry("is a HelmRelease that looks for drift", helmReleases, nil, working("True"), v1alpha1.ReasonSyncInProgress),
		Entry("is a HelmRelease that failed", helmReleases, nil, failing("UpgradeFailed"), v1alpha1.ReasonOutOfSync),
	)

	It("does not wait where all was applied and only its health checks fail", func(ctx SpecContext) {
		s := newShop(ctx)
		flux := fluxOwner(ctx, kustomizations, s.plane, s.web)
		s.adopt(ctx, v1alpha1.ProviderFlux)
		report(ctx, flux, failing("HealthCheckFailed"))
		rewrite(ctx, s.source, "2")
		s.restartedOnce(ctx)
	}, NodeTimeout(patience*2))

	It("waits while its HelmRelease is Unknown, and is restarted once when it is ready again (C081)", func(ctx SpecContext) {
		s := newShop(ctx)
		flux := fluxOwner(ctx, helmReleases, s.plane, s.web)
		s.adopt(ctx, v1alpha1.ProviderFlux)
		report(ctx, flux, working("Unknown"))
		rewrite(ctx, s.source, "2")
		found := waits(ctx, s.web, forSync, v1alpha1.ReasonSyncInProgress)
		Expect(found.Status.Gate.Message).To(ContainSubstring("HelmRelease " + s.plane + "/shop"))
		Expect(found.Status.LatestObservedDependencyChange).NotTo(BeNil(), "tells since when it waits")
		barrier(ctx, newNamespace(ctx))
		waits(ctx, s.web, forSync, v1alpha1.ReasonSyncInProgress)
		restarted(ctx, 0, s.web)
		report(ctx, flux, ready(s.web))
		s.restartedOnce(ctx)
		for range 2 {
			report(ctx, flux, working("Unknown"))
			report(ctx, flux, ready(s.web))
		}
		s.restartedOnce(ctx)
	}, NodeTimeout(patience*2))

	It("belongs to its HelmRelease, and not to the Kustomization that applies that", func(ctx SpecContext) {
		s := newShop(ctx)
		release := fluxOwner(ctx, helmReleases, s.plane, s.web)
		parent := newObject(kustomizations, s.plane, "parent", object{"spec": object{"interval": "1m"}})
		create(ctx, parent)
		report(ctx, parent, ready(), having([]any{object{"id": s.plane + "_shop_helm.toolkit.fluxcd.io_HelmRelease", "v": "v2"}}, "status", "inventory", "entries"))
		change(ctx, release, func(o *unstructured.Unstructured) {
			o.SetLabels(map[string]string{"kustomize.toolkit.fluxcd.io/name": "parent", "kustomize.toolkit.fluxcd.io/namespace": s.plane})
		})
		report(ctx, parent, working("Unknown"))
		s.adopt(ctx, v1alpha1.ProviderFlux)
		rewrite(ctx, s.source, "2")
		Expect(s.restartedOnce(ctx).Status.Owner.Kind).To(Equal("HelmRelease"))
	}, NodeTimeout(patience*2))

	It("has several owners while a Kustomization and an Application list it, whichever tool is asked first", func(ctx SpecContext) {
		s := newShop(ctx)
		flux := fluxOwner(ctx, kustomizations, s.plane, s.web)
		app := application(s.plane, "shop", s.web)
		create(ctx, app, gated(s.namespace, v1alpha1.ProviderAuto))
		found := waits(ctx, s.web, forOwner, v1alpha1.ReasonMultipleOwners)
		Expect(found.Status.Gate.Message).To(And(ContainSubstring("Application "+s.plane), ContainSubstring("Kustomization "+s.plane)))
		rewrite(ctx, s.source, "2")
		report(ctx, flux, ready())
		Expect(s.restartedOnce(ctx).Status.Owner.Provider).To(Equal(v1alpha1.ProviderArgoCD))
		report(ctx, flux, ready(s.web))
		remove(ctx, app)
		nextSecond()
		rewrite(ctx, s.source, "3")
		reached(ctx, v1alpha1.PhaseSucceeded, s.web)
		Eventually(func(g Gomega) {
			found, err := requestOf(ctx, s.web)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found.Status.Owner.Provider).To(Equal(v1alpha1.ProviderFlux))
			g.Expect(found.Status.Phase).To(Equal(v1alpha1.PhaseSucceeded))
		}).WithContext(ctx).Should(Succeed())
		restarted(ctx, 2, s.web)
	}, NodeTimeout(patience*3))

	It("of a helm-controller that keeps no inventory is known by its release", func(ctx SpecContext) {
		s := newShop(ctx)
		change(ctx, s.web, func(w client.Object) {
			w.SetAnnotations(map[string]string{"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": s.namespace})
			w.SetLabels(map[string]string{"helm.toolkit.fluxcd.io/name": "shop", "helm.toolkit.fluxcd.io/namespace": s.plane})
		})
		flux := fluxOwner(ctx, helmReleases, s.plane)
		released := having([]any{object{"name": "web", "namespace": s.namespace}}, "status", "history")
		report(ctx, flux, having(nil, "status", "inventory"), released)
		s.adopt(ctx, v1alpha1.ProviderFlux)
		report(ctx, flux, working("Unknown"))
		rewrite(ctx, s.source, "2")
		waits(ctx, s.web, forSync, v1alpha1.ReasonSyncInProgress)
		report(ctx, flux, ready(), having(nil, "status", "inventory"), released)
		s.restartedOnce(ctx)
	}, NodeTimeout(patience*2))
})
