package controllers

import (
	"context"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kick-dev/kick/internal/cluster/owner"
	"github.com/kick-dev/kick/internal/cluster/workload"
	"github.com/kick-dev/kick/internal/core/freshness"
	"github.com/kick-dev/kick/internal/core/request"
	"github.com/kick-dev/kick/internal/core/rollout"
)

// gathering collects the facts of one decision, the cheap ones first and the others when the decision asks for them.
type gathering struct {
	scopes    *scopes
	workloads *workload.Client
	revisions *revisions
	slots     *slots
	owners    *owner.Reader

	workload   *workload.Workload
	inspection *workload.Inspection
	facts      request.Facts
	// restarts is true if what is decided is a restart, before which the workload itself is read.
	restarts bool
	// live is the workload as the API server has it, if it was read ahead of the need.
	live *workload.Workload
}

// refresh takes the facts that cost no request.
func (g *gathering) refresh(ctx context.Context) error {
	scope, err := g.scopes.of(ctx, g.workload)
	if err != nil {
		return err
	}
	observed, err := g.scopes.observed(ctx, g.workload, scope)
	if err != nil {
		return err
	}
	g.facts.Scope = scope
	g.facts.Observed = observed
	g.facts.Stamp = g.workload.Stamp()
	g.facts.Evidence = freshness.Evidence{
		CreatedAt: g.workload.Object().GetCreationTimestamp().Time,
		Rollout:   g.workload.Rollout(),
	}
	if revision, known := g.revisions.get(g.workload); known {
		g.facts.Evidence.Revision, g.facts.Evidence.RevisionRead = &revision, true
	}
	g.inspection = g.workloads.Inspect(g.workload)
	return nil
}

// supply reads what a decision lacks. It reports false when the workload is gone.
func (g *gathering) supply(ctx context.Context, need request.Need) (bool, error) {
	switch need {
	case request.NeedLive:
		return g.supplyLive(ctx)
	case request.NeedRevision:
		revision, err := g.inspection.Revision(ctx)
		if err != nil {
			return false, err
		}
		g.revisions.put(g.workload, revision)
		g.facts.Evidence.Revision, g.facts.Evidence.RevisionRead = revision, true
	case request.NeedPods:
		return g.supplyPods(ctx)
	case request.NeedRoom:
		g.facts.Room = request.Room{Asked: true, Full: g.slots.take(g.workload.Key, g.facts.Scope)}
	case request.NeedNothing:
	}
	return true, nil
}

// supplyPods lists the Pods. The next thing asked for is the workload itself, unless no Pod is stale, so both are read at
// the same time.
func (g *gathering) supplyPods(ctx context.Context) (bool, error) {
	var ahead sync.WaitGroup
	var failed error
	if g.restarts && !g.facts.Live {
		ahead.Go(func() { g.live, failed = g.workloads.Read(ctx, g.workload.Key) })
	}
	pods, err := g.inspection.Pods(ctx)
	ahead.Wait()
	if err := errors.Join(err, failed); err != nil {
		return false, err
	}
	g.facts.Evidence.Pods, g.facts.Evidence.PodsRead = pods, true
	return true, nil
}

// supplyLive reads the workload from the API server. Evidence gathered about the cached one stays valid if the spec is
// the same.
func (g *gathering) supplyLive(ctx context.Context) (bool, error) {
	live := g.live
	if live == nil {
		var err error
		if live, err = g.workloads.Read(ctx, g.workload.Key); err != nil {
			return false, err
		}
	}
	if live == nil || live.UID() != g.workload.UID() {
		return false, nil
	}
	before, evidence := g.workload.Generation(), g.facts.Evidence
	g.workload = live
	if err := g.refresh(ctx); err != nil {
		return false, err
	}
	if err := g.askOwnersLive(ctx); err != nil {
		return false, err
	}
	if before == live.Generation() {
		state := g.facts.Evidence.Rollout
		g.facts.Evidence = evidence
		g.facts.Evidence.Rollout = state
	}
	g.facts.Live, g.facts.TemplateWriter = true, live.TemplateWriter()
	return true, nil
}

// revisions remembers the current revision of workloads, which belongs to one generation for good.
type revisions struct {
	mu    sync.Mutex
	known map[workload.Key]knownRevision
}

type knownRevision struct {
	uid        types.UID
	generation int64
	revision   rollout.Revision
}

func newRevisions() *revisions { return &revisions{known: map[workload.Key]knownRevision{}} }

func (r *revisions) get(w *workload.Workload) (rollout.Revision, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.known[w.Key]
	return known.revision, known.uid == w.UID() && known.generation == w.Generation()
}

func (r *revisions) put(w *workload.Workload, revision *rollout.Revision) {
	if revision == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known[w.Key] = knownRevision{uid: w.UID(), generation: w.Generation(), revision: *revision}
}

func (r *revisions) forget(key workload.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.known, key)
}
