package gate_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/gate"
	"github.com/kick-dev/kick/internal/core/gitops"
	"github.com/kick-dev/kick/internal/core/policy"
)

// ownedFacts are those of a workload that the Application argocd/shop owns, edited.
func ownedFacts(edits ...func(*gitops.Application, *gitops.Project)) gitops.Facts {
	w := gitops.Workload{Kind: v1alpha1.Deployment, Namespace: "shop", Name: "web"}
	a := gitops.Application{
		Namespace: "argocd", Name: "shop", ControllerNamespace: "argocd",
		Destination: gitops.Destination{Name: "in-cluster"},
		Sync:        gitops.Sync{Status: "Synced", ComparedDestination: gitops.Destination{Name: "in-cluster"}},
		Workloads:   []gitops.ListedWorkload{{ID: w.ID(), Status: "Synced"}},
	}
	p := gitops.Project{Name: "default"}
	for _, edit := range edits {
		edit(&a, &p)
	}
	return gitops.Facts{
		Workload: w,
		ArgoCD: gitops.ArgoCD{
			Availability: gitops.Availability{Presence: gitops.Readable},
			Applications: []gitops.Application{a},
			Planes:       map[string]gitops.Plane{"argocd": {Projects: map[string]gitops.Project{p.Name: p}}},
		},
		Flux: gitops.Flux{Availability: gitops.Availability{Presence: gitops.Absent}},
	}
}

// asking is a policy that waits for a provider.
func asking(name string, provider v1alpha1.GitOpsProvider, requireReconciled bool) policy.Policy {
	p := policyOf(name, false)
	p.Provider, p.RequireReconciled = provider, requireReconciled
	return p
}

func TestOwnersHoldRestartsBack(t *testing.T) {
	const argoCD, flux, none = v1alpha1.ProviderArgoCD, v1alpha1.ProviderFlux, v1alpha1.ProviderNone
	type edit = func(*gitops.Application, *gitops.Project)
	deleting := func(a *gitops.Application, _ *gitops.Project) { a.Deleting = true }
	remote := func(a *gitops.Application, _ *gitops.Project) { a.Destination.Name = "far" }
	running := func(a *gitops.Application, _ *gitops.Project) { a.OperationRequested = true }
	outOfSync := func(a *gitops.Application, _ *gitops.Project) { a.Sync.Status = "OutOfSync" }
	frozen := func(_ *gitops.Application, p *gitops.Project) {
		p.Windows = []gitops.SyncWindow{{Kind: "deny", Schedule: "0 11 * * *", Duration: "2h", Applications: []string{"*"}}}
	}
	forMachines := func(_ *gitops.Application, p *gitops.Project) { p.Windows[0].ManualSync = true }
	broken := func(_ *gitops.Application, p *gitops.Project) { p.Windows[0].Duration = "1d" }
	noProject := func(_ *gitops.Application, p *gitops.Project) { p.Name = "other" }
	strict := asking("a", argoCD, true)
	windowsOnly := asking("b", argoCD, false)

	gateWait, ownerWait, syncWait := v1alpha1.PhaseWaitingForGate, v1alpha1.PhaseWaitingForOwner, v1alpha1.PhaseWaitingForApplicationSync
	for name, tc := range map[string]struct {
		edits            []edit
		policies         []policy.Policy
		manual, override bool
		phase            v1alpha1.Phase // empty where the restart may run
		reason           string
	}{
		"in sync":                                   {policies: []policy.Policy{strict}},
		"out of sync":                               {edits: []edit{outOfSync}, policies: []policy.Policy{strict}, phase: syncWait, reason: v1alpha1.ReasonOutOfSync},
		"out of sync, and nobody asks":              {edits: []edit{outOfSync}, policies: []policy.Policy{asking("a", none, true)}},
		"out of sync, and only windows count":       {edits: []edit{outOfSync}, policies: []policy.Policy{windowsOnly}},
		"out of sync, and one of two policies asks": {edits: []edit{outOfSync}, policies: []policy.Policy{asking("0", none, true), strict}, phase: syncWait, reason: v1alpha1.ReasonOutOfSync},
		"out of sync, and one of two asks for sync": {edits: []edit{outOfSync}, policies: []policy.Policy{windowsOnly, strict}, phase: syncWait, reason: v1alpha1.ReasonOutOfSync},
		"out of sync, and overridden":               {edits: []edit{outOfSync}, policies: []policy.Policy{strict}, override: true},
		"out of sync, and asked for by a person":    {edits: []edit{outOfSync}, policies: []policy.Policy{strict}, manual: true, phase: syncWait, reason: v1alpha1.ReasonOutOfSync},
		"an operation runs":                         {edits: []edit{running, outOfSync}, policies: []policy.Policy{strict}, phase: syncWait, reason: v1alpha1.ReasonSyncInProgress},
		"an operation runs, and only windows count": {edits: []edit{running}, policies: []policy.Policy{windowsOnly}},
		"frozen goes before an operation":           {edits: []edit{frozen, running}, policies: []policy.Policy{strict}, phase: gateWait, reason: v1alpha1.ReasonOutsideSchedule},
		"frozen, and only windows count":            {edits: []edit{frozen}, policies: []policy.Policy{windowsOnly}, phase: gateWait, reason: v1alpha1.ReasonOutsideSchedule},
		"frozen, and overridden":                    {edits: []edit{frozen}, policies: []policy.Policy{strict}, override: true},
		"frozen, and asked for by a person":         {edits: []edit{frozen}, policies: []policy.Policy{strict}, manual: true, phase: gateWait, reason: v1alpha1.ReasonOutsideSchedule},
		"frozen for machines":                       {edits: []edit{frozen, forMachines}, policies: []policy.Policy{strict}, phase: gateWait, reason: v1alpha1.ReasonOutsideSchedule},
		"frozen for machines, asked by a person":    {edits: []edit{frozen, forMachines}, policies: []policy.Policy{strict}, manual: true},
		"a window that cannot be read":              {edits: []edit{frozen, broken}, policies: []policy.Policy{strict}, phase: gateWait, reason: v1alpha1.ReasonConfigurationError},
		"no project":                                {edits: []edit{noProject, running}, policies: []policy.Policy{strict}, phase: ownerWait, reason: v1alpha1.ReasonProjectUnknown},
		"deleted goes before frozen":                {edits: []edit{deleting, frozen}, policies: []policy.Policy{strict}, phase: syncWait, reason: v1alpha1.ReasonOwnerDeleting},
		"deleted, and only windows count":           {edits: []edit{deleting}, policies: []policy.Policy{windowsOnly}},
		"no owner":                                  {edits: []edit{remote}, policies: []policy.Policy{strict}, phase: ownerWait, reason: v1alpha1.ReasonOwnerUnknown},
		"no owner, and only windows count":          {edits: []edit{remote}, policies: []policy.Policy{windowsOnly}, phase: ownerWait, reason: v1alpha1.ReasonOwnerUnknown},
		"two policies name different tools":         {policies: []policy.Policy{strict, asking("b", flux, true)}, phase: ownerWait, reason: v1alpha1.ReasonProviderUnavailable},
		"the schedule of the policy goes first": {
			edits: []edit{remote}, policies: []policy.Policy{func() policy.Policy {
				p := policyOf("a", false, allow("0 2 * * *", ""))
				p.Provider = argoCD
				return p
			}()}, phase: gateWait, reason: v1alpha1.ReasonOutsideSchedule,
		},
	} {
		t.Run(name, func(t *testing.T) {
			block := gate.Evaluate(gate.Input{
				Scope: policy.Scope{Policies: tc.policies}, Now: noon, Owners: ownedFacts(tc.edits...),
				Manual: tc.manual, Override: tc.override,
			})
			if block == nil {
				block = &gate.Block{}
			} else if block.Message == "" || block.RecheckAt.IsZero() {
				t.Errorf("message %q, rechecked at %s", block.Message, block.RecheckAt)
			}
			if diff := cmp.Diff([]string{string(tc.phase), tc.reason}, []string{string(block.Phase), block.Reason}); diff != "" {
				t.Errorf("(-want +got):\n%s\n%s", diff, block.Message)
			}
		})
	}
}

func TestAFreezeSaysWhenItEnds(t *testing.T) {
	facts := ownedFacts(func(_ *gitops.Application, p *gitops.Project) {
		p.Windows = []gitops.SyncWindow{{Kind: "deny", Schedule: "0 11 * * *", Duration: "2h", Applications: []string{"*"}}}
	})
	block := gate.Evaluate(gate.Input{
		Scope: policy.Scope{Policies: []policy.Policy{asking("a", v1alpha1.ProviderArgoCD, true)}}, Now: noon, Owners: facts,
	})
	if block == nil || block.OpensAt != "2026-08-06T13:00:00Z" || !block.RecheckAt.Equal(noon.Add(time.Hour)) {
		t.Errorf("%+v", block)
	}
}

func TestOwnerOf(t *testing.T) {
	remote := func(a *gitops.Application, _ *gitops.Project) { a.Destination.Name = "far" }
	shown := &v1alpha1.Owner{Provider: v1alpha1.ProviderArgoCD, Kind: "Application", Namespace: "argocd", Name: "shop", Project: "default"}
	for name, tc := range map[string]struct {
		facts    gitops.Facts
		policies []policy.Policy
		want     *v1alpha1.Owner
	}{
		"an owner that is asked":   {ownedFacts(), []policy.Policy{asking("a", v1alpha1.ProviderAuto, true)}, shown},
		"an owner nobody asks":     {ownedFacts(), []policy.Policy{asking("a", v1alpha1.ProviderNone, true)}, nil},
		"no owner":                 {ownedFacts(remote), []policy.Policy{asking("a", v1alpha1.ProviderArgoCD, true)}, nil},
		"an owner one policy asks": {ownedFacts(), []policy.Policy{asking("a", v1alpha1.ProviderNone, true), asking("b", v1alpha1.ProviderArgoCD, false)}, shown},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, gate.OwnerOf(policy.Scope{Policies: tc.policies}, &tc.facts)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Events tell when an owner has changed, but none tells that one may be read again.
func TestAnOwnerThatCannotBeReadIsAskedAgainSoon(t *testing.T) {
	unreadable := ownedFacts()
	unreadable.ArgoCD.Availability = gitops.Availability{Message: "forbidden"}
	outOfSync := ownedFacts(func(a *gitops.Application, _ *gitops.Project) { a.Sync.Status = "OutOfSync" })
	for name, tc := range map[string]struct {
		owners gitops.Facts
		again  time.Duration
	}{
		"out of sync":       {outOfSync, 10 * time.Minute},
		"it cannot be read": {unreadable, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			block := gate.Evaluate(gate.Input{
				Now: noon, Scope: policy.Scope{Policies: []policy.Policy{asking("a", v1alpha1.ProviderArgoCD, true)}}, Owners: tc.owners,
			})
			if block == nil || !block.RecheckAt.Equal(noon.Add(tc.again)) {
				t.Errorf("blocked by %+v, want to be asked again in %s", block, tc.again)
			}
		})
	}
}
