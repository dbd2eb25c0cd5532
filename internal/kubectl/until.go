package kubectl

import (
	"context"
	"time"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/facts"
	"github.com/kick-dev/kick/internal/cluster/workload"
	"github.com/kick-dev/kick/internal/core/deps"
	"github.com/kick-dev/kick/internal/core/freshness"
	"github.com/kick-dev/kick/internal/core/policy"
	"github.com/kick-dev/kick/internal/core/request"
)

// opening is when the gate that holds a request opens, empty where that is not known: the request tells when a schedule does, and
// when a quiet period or an interval is over follows from the policies. Who may not read those is not told.
func (s *session) opening(ctx context.Context, r *v1alpha1.KickRequest) string {
	held := r.Status.Gate
	switch {
	case held == nil:
		return ""
	case held.RequeueAt != "":
		return held.RequeueAt
	case held.Reason != v1alpha1.ReasonQuietPeriod && held.Reason != v1alpha1.ReasonMinInterval:
		return ""
	}
	key := workload.Key{Namespace: r.Namespace, Kind: r.Spec.TargetRef.Kind, Name: r.Spec.TargetRef.Name}
	target, err := (&workload.Client{Live: s.client}).Read(ctx, key)
	if err != nil || target == nil {
		return ""
	}
	scope, err := (&facts.Scopes{Cache: s.client, Reserved: s.kickNamespace}).Of(ctx, target)
	if err != nil {
		return ""
	}
	return timed(r, scope, target.Stamp(), s.now())
}

// timed asks the gate when the link opens that holds a request.
func timed(r *v1alpha1.KickRequest, scope policy.Scope, stamp string, now time.Time) string {
	changes := freshness.Changes{}
	for _, cause := range r.Status.Causes {
		if cause.Kind != v1alpha1.Manual {
			changes[deps.Source{Kind: cause.Kind, Name: cause.Name}] = cause.ChangedAt.Time
		}
	}
	gathered := request.Facts{
		Observed: request.Observed{Changes: changes}, Scope: scope, Stamp: stamp, Live: true, Manual: r.Spec.Manual,
	}
	for _, link := range request.Explain(r.Status, gathered, settings(), now).Gate {
		if link.Block != nil && link.Block.Reason == r.Status.Gate.Reason && !link.Block.RecheckAt.IsZero() {
			return link.Block.RecheckAt.UTC().Format(time.RFC3339)
		}
	}
	return ""
}
