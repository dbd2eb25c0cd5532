package facts

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kick-dev/kick/internal/cluster/workload"
	"github.com/kick-dev/kick/internal/core/request"
)

func TestPodsAreListedFromTheCacheOfTheAPIServerFirst(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	for name, tc := range map[string]struct {
		change func(*Gathering)
		// versions that the lists ask for, one for each time that Pods are needed.
		versions []string
		late     []bool
	}{
		"a restart to come": {func(g *Gathering) { g.Restarts = true }, []string{"0", ""}, []bool{true, false}},
		"the workload is not known": {
			func(g *Gathering) { g.Restarts, g.Gatherer = true, &Gatherer{Scopes: g.Scopes, Ahead: g.Ahead} }, []string{""}, []bool{false},
		},
		"a restart may be under way":   {func(g *Gathering) { g.Restarts, g.Unsettled = true, true }, []string{""}, []bool{false}},
		"GitOps tools are asked":       {func(g *Gathering) { g.Restarts, g.Facts.Scope = true, asking() }, []string{""}, []bool{false}},
		"no request, nothing to stamp": {func(*Gathering) {}, []string{""}, []bool{false}},
	} {
		t.Run(name, func(t *testing.T) {
			var versions []string
			live := interceptor.NewClient(fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build(), interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					if _, ok := list.(*corev1.PodList); ok {
						versions = append(versions, (&client.ListOptions{}).ApplyOptions(options).AsListOptions().ResourceVersion)
					}
					return c.List(ctx, list, options...)
				},
			})
			moves, web := NewMoves(clock), deployment(t, "web", "1", 4)
			moves.Saw(web)
			clock.Step(restedAfter)
			gatherer := &Gatherer{Scopes: &Scopes{Workloads: &workload.Client{Live: live}}, Ahead: NewAhead(clock), Moves: moves}
			g := gatherer.Begin(web)
			g.inspection = g.Scopes.Workloads.Inspect(g.Workload)
			tc.change(g)
			var late []bool
			for range tc.versions {
				if exists, err := g.Supply(t.Context(), request.NeedPods); err != nil || !exists || !g.Facts.Evidence.PodsRead {
					t.Fatalf("exists %v, read %v, %v", exists, g.Facts.Evidence.PodsRead, err)
				}
				late = append(late, g.Facts.Evidence.PodsLate)
			}
			if !slices.Equal(versions, tc.versions) || !slices.Equal(late, tc.late) {
				t.Errorf("lists at %q, late %v, want %q and %v", versions, late, tc.versions, tc.late)
			}
		})
	}
}
