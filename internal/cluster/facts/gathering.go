package facts

import (
	"context"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kick-dev/kick/internal/cluster/owner"
	"github.com/kick-dev/kick/internal/cluster/workload"
	"github.com/kick-dev/kick/internal/core/freshness"
	"github.com/kick-dev/kick/internal/core/gitops"
	"github.com/kick-dev/kick/internal/core/policy"
	"github.com/kick-dev/kick/internal/core/request"
	"github.com/kick-dev/kick/internal/core/rollout"
)

// Gatherer holds what decisions about all workloads gather their facts with.
type Gatherer struct {
	Scopes    *Scopes
	Revisions *Revisions
	Owners    *owner.Reader
	// Room gives a workload a slot for its restart, or says which limit is reached.
	Room func(workload.Key, policy.Scope) string
	// Ahead holds what was read before it was needed; nil for nothing.
	Ahead *Ahead
	// Moves tells which workloads are at rest; nil for none.
	Moves *Moves
}

// Gathering collects the facts of one decision, the cheap ones first and the others when the decision asks for them.
type Gathering struct {
	// Workload as it was last read.
	Workload *workload.Workload
	// Facts gathered so far.
	Facts request.Facts
	// Restarts is true if what is decided is a restart. It is decided about the workload as the API server has it: that is
	// read, or else the stamp is bound to the version in the cache.
	Restarts bool
	// Unsettled is true where a restart is on record that is under way, or whose stamp is not on the template. What became of
	// it, and who wrote the template since, is asked of the API server.
	Unsettled bool

	*Gatherer
	inspection *workload.Inspection
	// live is the workload as the API server has it, if it was read ahead of the need.
	live *workload.Workload
}

// Begin a gathering about a workload. Refresh has to follow.
func (g *Gatherer) Begin(target *workload.Workload) *Gathering {
	return &Gathering{Gatherer: g, Workload: target}
}

// Refresh takes the facts that cost no request.
func (g *Gathering) Refresh(ctx context.Context) error {
	scope, err := g.Scopes.Of(ctx, g.Workload)
	if err != nil {
		return err
	}
	observed, err := g.Scopes.Observed(ctx, g.Workload, scope)
	if err != nil {
		return err
	}
	g.Facts.Scope = scope
	g.Facts.Observed = observed
	g.Facts.Stamp = g.Workload.Stamp()
	g.Facts.Evidence = freshness.Evidence{
		CreatedAt: g.Workload.Object().GetCreationTimestamp().Time,
		Rollout:   g.Workload.Rollout(),
	}
	if revision, known := g.Revisions.get(g.Workload); known {
		g.Facts.Evidence.Revision, g.Facts.Evidence.RevisionRead = &revision, true
	}
	g.inspection = g.Scopes.Workloads.Inspect(g.Workload)
	return nil
}

// Supply reads what a decision lacks. It reports false when the workload is gone.
func (g *Gathering) Supply(ctx context.Context, need request.Need) (bool, error) {
	switch need {
	case request.NeedLive:
		return g.supplyLive(ctx)
	case request.NeedRevision:
		revision, err := g.inspection.Revision(ctx)
		if err != nil {
			return false, err
		}
		g.Revisions.put(g.Workload, revision)
		g.Facts.Evidence.Revision, g.Facts.Evidence.RevisionRead = revision, true
	case request.NeedPods:
		return g.supplyPods(ctx)
	case request.NeedRoom:
		g.Facts.Room = request.Room{Asked: true, Full: g.Room(g.Workload.Key, g.Facts.Scope)}
	case request.NeedNothing:
	}
	return true, nil
}

// supplyPods lists the Pods. The next thing asked for is the workload itself, unless no Pod is stale, so both are read at
// the same time if both have to be.
func (g *Gathering) supplyPods(ctx context.Context) (bool, error) {
	if g.Restarts && !g.Facts.Evidence.PodsRead && (!g.Facts.Live || g.trustsCache()) {
		if read := g.Ahead.take(ctx, g.Workload, g.Facts.Changes); read != nil {
			g.live = read.live
			g.Facts.Evidence.Pods, g.Facts.Evidence.PodsRead, g.Facts.Evidence.PodsLate = read.pods, true, read.late
			return true, nil
		}
		if g.trustsCache() && g.Moves.rested(g.Workload) {
			pods, err := g.inspection.LatePods(ctx)
			g.Facts.Evidence.Pods, g.Facts.Evidence.PodsRead, g.Facts.Evidence.PodsLate = pods, err == nil, true
			return true, err
		}
	}
	var ahead sync.WaitGroup
	var failed error
	if g.Restarts && !g.Facts.Live && !g.trustsCache() {
		ahead.Go(func() { g.live, failed = g.Scopes.Workloads.Read(ctx, g.Workload.Key) })
	}
	pods, err := g.inspection.Pods(ctx)
	ahead.Wait()
	if err := errors.Join(err, failed); err != nil {
		return false, err
	}
	g.Facts.Evidence.Pods, g.Facts.Evidence.PodsRead, g.Facts.Evidence.PodsLate = pods, true, false
	return true, nil
}

// trustsCache tells whether the workload in the cache will do. The stamp is then written only if the API server has no newer
// one. GitOps tools are asked themselves all the same, where policies ask them; then the workload is, too.
func (g *Gathering) trustsCache() bool { return !g.Unsettled && len(g.Facts.Scope.Providers()) == 0 }

// supplyLive reads the workload from the API server, unless the one in the cache will do. Evidence gathered about the cached
// one stays valid if the spec is the same.
func (g *Gathering) supplyLive(ctx context.Context) (bool, error) {
	if g.trustsCache() {
		g.Facts.Live = true
		return true, nil
	}
	live := g.live
	if live == nil {
		var err error
		if live, err = g.Scopes.Workloads.Read(ctx, g.Workload.Key); err != nil {
			return false, err
		}
	}
	if live == nil || live.UID() != g.Workload.UID() {
		return false, nil
	}
	before, evidence := g.Workload.Generation(), g.Facts.Evidence
	g.Workload = live
	if err := g.Refresh(ctx); err != nil {
		return false, err
	}
	if err := g.askOwnersLive(ctx); err != nil {
		return false, err
	}
	if before == live.Generation() {
		state := g.Facts.Evidence.Rollout
		g.Facts.Evidence = evidence
		g.Facts.Evidence.Rollout = state
	}
	g.Facts.Live, g.Facts.TemplateWriter = true, live.TemplateWriter()
	return true, nil
}

// AskOwners takes what the caches of GitOps objects know, if a policy asks.
func (g *Gathering) AskOwners(ctx context.Context) {
	g.Facts.Owners = gitops.Facts{}
	if providers := g.Facts.Scope.Providers(); len(providers) > 0 {
		g.Facts.Owners = g.Owners.Facts(ctx, g.Workload, providers)
	}
}

// askOwnersLive does the same, and reads the owner itself from the API server.
func (g *Gathering) askOwnersLive(ctx context.Context) (err error) {
	g.AskOwners(ctx)
	if len(g.Facts.Scope.Providers()) > 0 {
		g.Facts.Owners, err = g.Owners.Live(ctx, g.Facts.Owners)
	}
	return err
}

// Revisions remembers the current revision of workloads, which belongs to one generation for good.
type Revisions struct {
	mu    sync.Mutex
	known map[workload.Key]knownRevision
}

type knownRevision struct {
	uid        types.UID
	generation int64
	revision   rollout.Revision
}

// NewRevisions returns an empty memory.
func NewRevisions() *Revisions { return &Revisions{known: map[workload.Key]knownRevision{}} }

func (r *Revisions) get(w *workload.Workload) (rollout.Revision, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.known[w.Key]
	return known.revision, known.uid == w.UID() && known.generation == w.Generation()
}

func (r *Revisions) put(w *workload.Workload, revision *rollout.Revision) {
	if revision == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known[w.Key] = knownRevision{uid: w.UID(), generation: w.Generation(), revision: *revision}
}

// Forget drops what is remembered of a workload that is gone.
func (r *Revisions) Forget(key workload.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.known, key)
}
