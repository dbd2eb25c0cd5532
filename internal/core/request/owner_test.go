package request_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/gitops"
	"github.com/kick-dev/kick/internal/core/policy"
	"github.com/kick-dev/kick/internal/core/request"
)

// ownedBy are facts in which the Application argocd/shop of this cluster lists the workload.
func ownedBy(edits ...func(*gitops.Application)) gitops.Facts {
	w := gitops.Workload{Kind: v1alpha1.Deployment, Namespace: "shop", Name: "web"}
	here := gitops.Destination{Name: "in-cluster"}
	a := gitops.Application{
		Namespace: "argocd", Name: "shop", ControllerNamespace: "argocd", Destination: here,
		Sync:      gitops.Sync{Status: "Synced", ComparedDestination: here},
		Workloads: []gitops.ListedWorkload{{ID: w.ID(), Status: "Synced"}},
	}
	for _, edit := range edits {
		edit(&a)
	}
	return gitops.Facts{
		Workload: w,
		ArgoCD: gitops.ArgoCD{
			Availability: gitops.Availability{Presence: gitops.Readable},
			Applications: []gitops.Application{a},
			Planes:       map[string]gitops.Plane{"argocd": {Projects: map[string]gitops.Project{"default": {Name: "default"}}}},
		},
		Flux: gitops.Flux{Availability: gitops.Availability{Presence: gitops.Absent}},
	}
}

func asksArgoCD() v1alpha1.KickPolicySpec {
	return v1alpha1.KickPolicySpec{GitOps: v1alpha1.GitOps{Provider: v1alpha1.ProviderArgoCD}}
}

func TestARestartWaitsForItsOwnerAndShowsIt(t *testing.T) {
	w := newWorld(t)
	w.manageBy(asksArgoCD())
	w.facts.Owners = ownedBy(func(a *gitops.Application) { a.Destination = gitops.Destination{} })
	w.decide()
	if w.status.Owner != nil {
		t.Errorf("owner %+v", w.status.Owner)
	}
	w.facts.Owners = ownedBy(func(a *gitops.Application) { a.Sync.Status = "OutOfSync" })
	step := w.decide()
	want := &v1alpha1.Owner{Provider: v1alpha1.ProviderArgoCD, Kind: "Application", Namespace: "argocd", Name: "shop", Project: "default"}
	if diff := cmp.Diff(want, w.status.Owner); diff != "" {
		t.Errorf("owner (-want +got):\n%s", diff)
	}
	if w.status.Gate == nil || w.status.Gate.Reason != v1alpha1.ReasonOutOfSync {
		t.Errorf("gate %+v", w.status.Gate)
	}
	if wait := step.RecheckAt.Sub(w.now); wait < 5*time.Minute {
		t.Errorf("rechecked after %s: its owner wakes it", wait)
	}
	w.facts.Owners = ownedBy()
	w.kick()
	w.expect("WaitingForOwner/OwnerUnknown", "WaitingForApplicationSync/OutOfSync", "Executing/Stamping")
}

// A cached owner may be in sync when the owner itself is at work already.
func TestTheOwnerIsJudgedAgainByWhatTheAPIServerSays(t *testing.T) {
	w := newWorld(t)
	w.manageBy(asksArgoCD())
	w.facts.Owners = ownedBy()
	live := ownedBy(func(a *gitops.Application) { a.OperationRequested = true })
	step := decideLive(t, w, live)
	if step.Stamp != "" || step.Status.Phase != v1alpha1.PhaseWaitingForApplicationSync {
		t.Errorf("stamp %q in phase %s", step.Stamp, step.Status.Phase)
	}
}

// decideLive runs Next, with other facts about the owner once a live look was asked for.
func decideLive(t rapid.TB, w *world, live gitops.Facts) request.Step {
	facts := w.facts
	for range 6 {
		step := request.Next(w.status, facts, settings, w.now)
		switch step.Need {
		case request.NeedLive:
			facts.Live, facts.Owners = true, live
		case request.NeedRevision:
			facts.Evidence.Revision, facts.Evidence.RevisionRead = &w.revision, true
		case request.NeedPods:
			facts.Evidence.Pods, facts.Evidence.PodsRead = w.readPods(), true
		case request.NeedRoom:
			facts.Room = request.Room{Asked: true}
		case request.NeedNothing:
			return step
		}
	}
	t.Fatal("Next keeps asking for facts")
	return request.Step{}
}

// daily is a window that begins at an hour of each day, and its state in plain arithmetic.
type daily struct {
	allow       bool
	hour, hours int
}

func drawDaily(t *rapid.T) daily {
	return daily{rapid.Bool().Draw(t, "allow"), rapid.IntRange(0, 23).Draw(t, "hour"), rapid.IntRange(1, 23).Draw(t, "hours")}
}

// active tells whether the window is; instants on a boundary are not asked.
func (d daily) active(at time.Time) bool {
	since := at.UTC().Hour() - d.hour
	if since < 0 {
		since += 24
	}
	return since < d.hours
}

// open tells whether windows permit a restart.
func open(windows []daily, at time.Time) bool {
	allowing, allowed := false, false
	for _, d := range windows {
		if !d.allow && d.active(at) {
			return false
		}
		allowing, allowed = allowing || d.allow, allowed || d.allow && d.active(at)
	}
	return allowed || !allowing
}

// claim is an object that may own the workload: what is known of it in plain words.
type claim struct {
	owns, active, synced bool
}

func drawClaim(t *rapid.T) claim {
	return claim{
		owns: rapid.Bool().Draw(t, "owns"), active: rapid.IntRange(0, 4).Draw(t, "active") > 0, synced: rapid.IntRange(0, 2).Draw(t, "synced") > 0,
	}
}

// cluster is what a random cluster says of the workload.
type cluster struct {
	argo, flux           gitops.Presence
	applications, fluxes []claim
	project              bool
	windows              []daily
}

func drawCluster(t *rapid.T) cluster {
	presences := []gitops.Presence{gitops.Readable, gitops.Readable, gitops.Readable, gitops.Absent, gitops.Unreadable}
	return cluster{
		argo:         rapid.SampledFrom(presences).Draw(t, "Argo CD"),
		flux:         rapid.SampledFrom(presences).Draw(t, "Flux"),
		applications: rapid.SliceOfN(rapid.Custom(drawClaim), 0, 2).Draw(t, "applications"),
		fluxes:       rapid.SliceOfN(rapid.Custom(drawClaim), 0, 2).Draw(t, "objects of Flux"),
		project:      rapid.IntRange(0, 5).Draw(t, "project") > 0,
		windows:      rapid.SliceOfN(rapid.Custom(drawDaily), 0, 2).Draw(t, "sync windows"),
	}
}

// facts is the cluster as it is read. In which way an object fails to own, or to be in sync, is drawn.
func (c cluster) facts(t *rapid.T) gitops.Facts {
	facts := ownedBy()
	id := facts.Workload.ID()
	facts.ArgoCD.Presence, facts.Flux.Presence = c.argo, c.flux
	facts.ArgoCD.Applications = nil
	for i, claim := range c.applications {
		a := ownedBy().ArgoCD.Applications[0]
		a.Name = fmt.Sprint("a", i)
		spoil(t, claim.owns, func() { a.Workloads = nil }, func() { a.Destination = gitops.Destination{Name: "far"} })
		spoil(t, claim.active, func() { a.Deleting = true }, func() { a.SkipReconcile = true })
		spoil(t, claim.synced, func() { a.OperationRequested = true }, func() { a.Sync.Status = "OutOfSync" },
			func() { a.RefreshRequested = true }, func() { a.Operation = &gitops.Operation{Phase: "Running"} })
		facts.ArgoCD.Applications = append(facts.ArgoCD.Applications, a)
	}
	for i, claim := range c.fluxes {
		o := gitops.FluxObject{
			Kind: gitops.Kustomization, Namespace: "flux-system", Name: fmt.Sprint("k", i), Inventory: []gitops.ID{id}, HasInventory: true,
			Ready: gitops.Condition{Status: "True"},
		}
		spoil(t, claim.owns, func() { o.Inventory = nil }, func() { o.Remote = true })
		spoil(t, claim.active, func() { o.Deleting = true }, func() { o.Suspended = true })
		spoil(t, claim.synced, func() { o.Generation = 2 }, func() { o.Reconciling.Status = "True" }, func() { o.Ready.Status = "Unknown" })
		facts.Flux.Objects = append(facts.Flux.Objects, o)
	}
	project := gitops.Project{Name: "default"}
	for _, d := range c.windows {
		project.Windows = append(project.Windows, gitops.SyncWindow{
			Kind: map[bool]string{true: "allow", false: "deny"}[d.allow], Schedule: fmt.Sprintf("0 %d * * *", d.hour),
			Duration: fmt.Sprintf("%dh", d.hours), Applications: []string{"*"},
		})
	}
	if !c.project {
		project.Name = "other"
	}
	facts.ArgoCD.Planes = map[string]gitops.Plane{"argocd": {Projects: map[string]gitops.Project{project.Name: project}}}
	return facts
}

func spoil(t *rapid.T, good bool, ways ...func()) {
	if !good {
		rapid.SampledFrom(ways).Draw(t, "way")()
	}
}

// permits is the gate of §7 in plain words: for a policy that asks, exactly one owner, with open windows, in sync.
func (c cluster) permits(gitOps v1alpha1.GitOps, at time.Time) bool {
	asksArgo := gitOps.Provider == v1alpha1.ProviderArgoCD || gitOps.Provider == v1alpha1.ProviderAuto
	asksFlux := gitOps.Provider == v1alpha1.ProviderFlux || gitOps.Provider == v1alpha1.ProviderAuto
	if asksArgo && c.argo == gitops.Unreadable || asksFlux && c.flux == gitops.Unreadable {
		return false
	}
	var owners []claim
	windows := true
	if asksArgo && c.argo == gitops.Readable {
		for _, claim := range c.applications {
			if claim.owns {
				owners, windows = append(owners, claim), c.project && open(c.windows, at)
			}
		}
	}
	if asksFlux && c.flux == gitops.Readable {
		for _, claim := range c.fluxes {
			if claim.owns {
				owners = append(owners, claim)
			}
		}
	}
	switch {
	case !asksArgo && !asksFlux:
		return true
	case len(owners) != 1 || !windows:
		return false
	default:
		return !*gitOps.RequireReconciled || owners[0].active && owners[0].synced
	}
}

// I5: a stamp is issued only at instants when every link of the gate allows, by what the API server says just before, and
// then it is issued.
func TestAStampIsIssuedExactlyWhenEveryLinkAllows(t *testing.T) {
	stamped := 0
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		// On no boundary of any window.
		w.now = noon.Add(time.Duration(rapid.IntRange(1, 3*24*60).Draw(rt, "minutes"))*time.Minute + 30*time.Second)
		allowed, count := true, rapid.IntRange(1, 2).Draw(rt, "policies")
		cached, live := drawCluster(rt), drawCluster(rt)
		if rapid.Bool().Draw(rt, "the cache is up to date") {
			live = cached
		}
		var policies []policy.Policy
		for i := range count {
			required := rapid.Bool().Draw(rt, "require reconciled")
			spec := v1alpha1.KickPolicySpec{GitOps: v1alpha1.GitOps{RequireReconciled: &required, Provider: rapid.SampledFrom([]v1alpha1.GitOpsProvider{
				v1alpha1.ProviderNone, v1alpha1.ProviderAuto, v1alpha1.ProviderArgoCD, v1alpha1.ProviderFlux,
			}).Draw(rt, "provider")}}
			windows := rapid.SliceOfN(rapid.Custom(drawDaily), 0, 2).Draw(rt, "windows")
			for _, d := range windows {
				spec.Schedule.Windows = append(spec.Schedule.Windows, v1alpha1.Window{
					Kind: map[bool]v1alpha1.WindowKind{true: v1alpha1.WindowAllow, false: v1alpha1.WindowDeny}[d.allow],
					Cron: fmt.Sprintf("0 %d * * *", d.hour), Duration: fmt.Sprintf("%dh", d.hours),
				})
			}
			parsed, _ := policy.Parse(&v1alpha1.KickPolicy{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i)}, Spec: spec})
			policies = append(policies, parsed)
			allowed = allowed && open(windows, w.now) && cached.permits(spec.GitOps, w.now) && live.permits(spec.GitOps, w.now)
		}
		w.facts.Scope = policy.ScopeOf(policies, labels.Set{})
		w.facts.Owners = cached.facts(rt)
		step := decideLive(rt, w, live.facts(rt))
		if (step.Stamp != "") != allowed {
			rt.Fatalf("stamp %q in phase %s, allowed: %t; gate %+v", step.Stamp, step.Status.Phase, allowed, step.Status.Gate)
		}
		if allowed {
			stamped++
		}
	})
	if stamped == 0 {
		t.Error("no case in which a stamp was issued")
	}
}
