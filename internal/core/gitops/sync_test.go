package gitops_test

import (
	"strings"
	"testing"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/gitops"
)

func TestAnApplicationIsInSyncWhen(t *testing.T) {
	type edit = func(*gitops.Application)
	for name, tc := range map[string]struct {
		edit   edit
		active string // the reason of Active
		synced string // the reason of Synced
		says   string
	}{
		"it is Synced":                         {func(*gitops.Application) {}, "", "", ""},
		"it never had an operation":            {func(a *gitops.Application) { a.Operation = nil }, "", "", ""},
		"its last operation failed":            {func(a *gitops.Application) { a.Operation.Phase = "Failed" }, "", "", ""},
		"its last operation ended in an error": {func(a *gitops.Application) { a.Operation.Phase = "Error" }, "", "", ""},
		"it is being deleted":                  {func(a *gitops.Application) { a.Deleting = true }, v1alpha1.ReasonOwnerDeleting, "", "deleted"},
		"its reconciliation is switched off":   {func(a *gitops.Application) { a.SkipReconcile = true }, v1alpha1.ReasonOwnerSuspended, "", "skip-reconcile"},
		"an operation is requested, before it has a state": {
			func(a *gitops.Application) { a.OperationRequested, a.Operation = true, nil }, "", v1alpha1.ReasonSyncInProgress, "operation in progress",
		},
		"an operation is about to end": {func(a *gitops.Application) { a.OperationRequested = true }, "", v1alpha1.ReasonSyncInProgress, ""},
		"an operation runs":            {func(a *gitops.Application) { a.Operation.Phase = "Running" }, "", v1alpha1.ReasonSyncInProgress, ""},
		"an operation is being ended":  {func(a *gitops.Application) { a.Operation.Phase = "Terminating" }, "", v1alpha1.ReasonSyncInProgress, ""},
		"an operation waits for a window": {
			func(a *gitops.Application) {
				a.Operation = &gitops.Operation{Phase: "Running", Message: "Sync operation blocked by sync window"}
			}, "", v1alpha1.ReasonSyncInProgress, "blocked by sync window",
		},
		"a refresh is requested":       {func(a *gitops.Application) { a.RefreshRequested = true }, "", v1alpha1.ReasonSyncInProgress, "compared again"},
		"it was never compared":        {func(a *gitops.Application) { a.Sync = gitops.Sync{} }, "", v1alpha1.ReasonSyncInProgress, "not been compared yet"},
		"its source was changed since": {func(a *gitops.Application) { a.Sources[0].TargetRevision = "v2" }, "", v1alpha1.ReasonSyncInProgress, "has changed"},
		"it has another source since": {
			func(a *gitops.Application) { a.Sources = append(a.Sources, gitops.Source{Chart: "x"}) }, "", v1alpha1.ReasonSyncInProgress, "has changed",
		},
		"its destination was changed since": {func(a *gitops.Application) { a.Destination.Namespace = "x" }, "", v1alpha1.ReasonSyncInProgress, ""},
		"a hydrator stands between spec and sources": {
			func(a *gitops.Application) { a.Hydrated, a.Sources = true, nil }, "", "", "",
		},
		"it is OutOfSync": {func(a *gitops.Application) { a.Sync.Status = "OutOfSync" }, "", v1alpha1.ReasonOutOfSync, "is OutOfSync; the workload itself is Synced"},
		"it is OutOfSync by some objects": {
			func(a *gitops.Application) { a.Sync.Status, a.Differing = "OutOfSync", 3 }, "", v1alpha1.ReasonOutOfSync, "objects that differ: 3",
		},
		"it is OutOfSync and nobody syncs it": {
			func(a *gitops.Application) { a.Sync.Status, a.AutoSync = "OutOfSync", false }, "", v1alpha1.ReasonOutOfSync, "automated sync is off",
		},
		"its status is Unknown": {
			func(a *gitops.Application) { a.Sync.Status, a.ConditionTypes = "Unknown", []string{"ComparisonError"} },
			"", v1alpha1.ReasonOutOfSync, "is Unknown (ComparisonError)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			facts := argo(application(tc.edit))
			checkSync(t, &facts, v1alpha1.ProviderArgoCD, tc.active, tc.synced, tc.says)
		})
	}
}

func TestMessagesOfAnOperationThatMayQuoteManifestsAreNotRepeated(t *testing.T) {
	facts := argo(application(func(a *gitops.Application) {
		a.Operation = &gitops.Operation{Phase: "Running", Message: `Secret "db" is invalid: data: "hunter2"`}
	}))
	owner, _ := facts.Owner(v1alpha1.ProviderArgoCD)
	if message := owner.Synced().Message; strings.Contains(message, "hunter2") {
		t.Errorf("message %q", message)
	}
}

func checkSync(t *testing.T, facts *gitops.Facts, provider v1alpha1.GitOpsProvider, active, synced, says string) {
	t.Helper()
	owner, hold := facts.Owner(provider)
	if hold != nil {
		t.Fatalf("no owner: %s", hold.Message)
	}
	first := owner.Active()
	if got := reasonOf(first); got != active {
		t.Errorf("active: %q, want %q", got, active)
	}
	second := owner.Synced()
	if got := reasonOf(second); got != synced {
		t.Errorf("synced: %q, want %q", got, synced)
	}
	for _, hold := range []*gitops.Hold{first, second} {
		if hold != nil && (!strings.Contains(hold.Message, says) || !strings.Contains(hold.Message, owner.String())) {
			t.Errorf("message %q, want %q", hold.Message, says)
		}
	}
}

func TestAFluxObjectIsInSyncWhen(t *testing.T) {
	const kustomization, helmRelease = gitops.Kustomization, gitops.HelmRelease
	failed := func(reason string) func(*gitops.FluxObject) {
		return func(o *gitops.FluxObject) {
			o.ObservedGeneration, o.AttemptedGeneration = 1, 1
			o.Ready = gitops.Condition{Status: "False", Reason: reason, ObservedGeneration: 2}
			o.Reconciling = gitops.Condition{Status: "True", Reason: "ProgressingWithRetry"}
		}
	}
	and := func(edits ...func(*gitops.FluxObject)) func(*gitops.FluxObject) {
		return func(o *gitops.FluxObject) {
			for _, edit := range edits {
				edit(o)
			}
		}
	}
	reconciling := func(o *gitops.FluxObject) { o.Reconciling = gitops.Condition{Status: "True", Reason: "Progressing"} }
	for name, tc := range map[string]struct {
		kind   string
		edit   func(*gitops.FluxObject)
		active string
		synced string
	}{
		"it is Ready":                       {kustomization, func(*gitops.FluxObject) {}, "", ""},
		"a HelmRelease is Ready":            {helmRelease, func(*gitops.FluxObject) {}, "", ""},
		"it is being deleted":               {kustomization, func(o *gitops.FluxObject) { o.Deleting = true }, v1alpha1.ReasonOwnerDeleting, ""},
		"it is suspended":                   {kustomization, func(o *gitops.FluxObject) { o.Suspended = true }, v1alpha1.ReasonOwnerSuspended, ""},
		"a HelmRelease is suspended":        {helmRelease, func(o *gitops.FluxObject) { o.Suspended = true }, v1alpha1.ReasonOwnerSuspended, ""},
		"a request is open":                 {kustomization, func(o *gitops.FluxObject) { o.RequestedAt = "now" }, "", v1alpha1.ReasonSyncInProgress},
		"the request was met":               {kustomization, func(o *gitops.FluxObject) { o.RequestedAt, o.HandledAt = "now", "now" }, "", ""},
		"another request was met":           {kustomization, func(o *gitops.FluxObject) { o.RequestedAt, o.HandledAt = "now", "then" }, "", v1alpha1.ReasonSyncInProgress},
		"its spec is not observed":          {kustomization, func(o *gitops.FluxObject) { o.Generation = 3 }, "", v1alpha1.ReasonSyncInProgress},
		"a HelmRelease not attempted":       {helmRelease, func(o *gitops.FluxObject) { o.AttemptedGeneration = 1 }, "", v1alpha1.ReasonSyncInProgress},
		"a Kustomization knows no attempts": {kustomization, func(o *gitops.FluxObject) { o.AttemptedGeneration = 0 }, "", ""},
		"it is Ready and reconciling":       {helmRelease, reconciling, "", v1alpha1.ReasonSyncInProgress},
		"it retries while Ready": {kustomization, func(o *gitops.FluxObject) {
			o.Reconciling = gitops.Condition{Status: "True", Reason: "ProgressingWithRetry"}
		}, "", v1alpha1.ReasonSyncInProgress},
		"it is not reconciling":                 {kustomization, func(o *gitops.FluxObject) { o.Reconciling.Status = "False" }, "", ""},
		"it is stalled":                         {kustomization, func(o *gitops.FluxObject) { o.Stalled = gitops.Condition{Status: "True", Reason: "InvalidPath"} }, "", v1alpha1.ReasonOutOfSync},
		"Ready is absent":                       {kustomization, func(o *gitops.FluxObject) { o.Ready = gitops.Condition{} }, "", v1alpha1.ReasonSyncInProgress},
		"Ready is Unknown":                      {helmRelease, func(o *gitops.FluxObject) { o.Ready.Status = "Unknown" }, "", v1alpha1.ReasonSyncInProgress},
		"it failed to build":                    {kustomization, failed("BuildFailed"), "", v1alpha1.ReasonOutOfSync},
		"it failed and does not retry":          {kustomization, and(failed("BuildFailed"), func(o *gitops.FluxObject) { o.Reconciling = gitops.Condition{} }), "", v1alpha1.ReasonOutOfSync},
		"it tries again after a failure":        {kustomization, and(failed("BuildFailed"), reconciling), "", v1alpha1.ReasonSyncInProgress},
		"its health checks failed":              {kustomization, failed("HealthCheckFailed"), "", ""},
		"its health checks failed before":       {kustomization, and(failed("HealthCheckFailed"), func(o *gitops.FluxObject) { o.Generation = 3 }), "", v1alpha1.ReasonSyncInProgress},
		"its health checks failed, it tries":    {kustomization, and(failed("HealthCheckFailed"), reconciling), "", v1alpha1.ReasonSyncInProgress},
		"its health checks failed, it stalled":  {kustomization, and(failed("HealthCheckFailed"), func(o *gitops.FluxObject) { o.Stalled.Status = "True" }), "", v1alpha1.ReasonOutOfSync},
		"its health checks were cancelled":      {kustomization, failed("HealthCheckCanceled"), "", v1alpha1.ReasonOutOfSync},
		"a HelmRelease with failed health":      {helmRelease, failed("HealthCheckFailed"), "", v1alpha1.ReasonOutOfSync},
		"it failed with the generation pending": {helmRelease, func(o *gitops.FluxObject) { o.Ready = gitops.Condition{Status: "False", ObservedGeneration: 1} }, "", v1alpha1.ReasonOutOfSync},
	} {
		t.Run(name, func(t *testing.T) {
			facts := flux(fluxObject(tc.kind, tc.edit))
			checkSync(t, &facts, v1alpha1.ProviderFlux, tc.active, tc.synced, "")
		})
	}
}
