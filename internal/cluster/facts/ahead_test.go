package facts

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/source"
	"github.com/kick-dev/kick/internal/cluster/workload"
	"github.com/kick-dev/kick/internal/core/freshness"
	"github.com/kick-dev/kick/internal/core/observation"
	"github.com/kick-dev/kick/internal/core/policy"
)

func deployment(t *testing.T, name, uid string, generation int64) *workload.Workload {
	t.Helper()
	w, ok := workload.Of(&appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(uid), Generation: generation},
	})
	if !ok {
		t.Fatal("a Deployment is no workload")
	}
	return w
}

func readingOf(w *workload.Workload) *reading {
	return &reading{uid: w.UID(), generation: w.Generation(), done: make(chan struct{}), live: w}
}

func TestAReadingServesOneDecisionAboutTheSameState(t *testing.T) {
	web := deployment(t, "web", "1", 4)
	now := time.Now()
	changes := func(at time.Time) freshness.Changes { return freshness.Changes{{Name: "db"}: at} }
	for name, tc := range map[string]struct {
		judged *workload.Workload
		later  freshness.Changes
		change func(*reading)
		want   bool
	}{
		"the same":              {judged: web, want: true},
		"another generation":    {judged: deployment(t, "web", "1", 5)},
		"a namesake made later": {judged: deployment(t, "web", "2", 4)},
		"another workload":      {judged: deployment(t, "api", "1", 4)},
		"the reading failed":    {judged: web, change: func(r *reading) { r.failed = errors.New("refused") }},
	} {
		t.Run(name, func(t *testing.T) {
			ahead, read := NewAhead(clocktesting.NewFakeClock(now)), readingOf(web)
			read.changes = changes(now)
			if tc.later == nil {
				tc.later = changes(now.UTC())
			}
			if tc.change != nil {
				tc.change(read)
			}
			close(read.done)
			if !ahead.offer(web.Key, read) {
				t.Fatal("there is no place for the first reading")
			}
			if got := ahead.take(t.Context(), tc.judged, tc.later); (got != nil) != tc.want {
				t.Errorf("taken: %v, want %v", got != nil, tc.want)
			}
			if ahead.take(t.Context(), tc.judged, tc.later) != nil {
				t.Error("the reading served two decisions")
			}
		})
	}
	var none *Ahead
	if none.take(t.Context(), web, nil) != nil {
		t.Error("something was read ahead by nobody")
	}
}

// A Pod that is replaced moves the status of its workload, mostly. What a restart was decided on that was put off is no longer
// good then.
func TestAReadingThatIsKeptIsGoodForOneVersion(t *testing.T) {
	at := func(version string) *workload.Workload {
		w := deployment(t, "web", "1", 4)
		w.Object().SetResourceVersion(version)
		return w
	}
	changes := freshness.Changes{{Name: "db"}: time.Now()}
	for name, tc := range map[string]struct {
		change func(*Gathering)
		judged *workload.Workload
		kept   bool
		taken  bool
	}{
		"the same version":              {func(*Gathering) {}, at("7"), true, true},
		"another version":               {func(*Gathering) {}, at("8"), true, false},
		"no Pods were read":             {func(g *Gathering) { g.Facts.Evidence.PodsRead = false }, at("7"), false, false},
		"a restart may be under way":    {func(g *Gathering) { g.Unsettled = true }, at("7"), false, false},
		"a GitOps tool is asked itself": {func(g *Gathering) { g.Facts.Scope = asking() }, at("7"), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			gatherer := &Gatherer{Ahead: NewAhead(clocktesting.NewFakeClock(time.Now()))}
			g := gatherer.Begin(at("7"))
			g.Facts.Changes = changes
			g.Facts.Evidence.PodsRead, g.Facts.Evidence.Pods = true, []freshness.Pod{{}}
			tc.change(g)
			if kept := g.Keep(); kept != tc.kept {
				t.Errorf("kept: %v, want %v", kept, tc.kept)
			}
			taken := gatherer.Ahead.take(t.Context(), tc.judged, changes)
			if (taken != nil) != tc.taken {
				t.Errorf("taken: %v, want %v", taken != nil, tc.taken)
			}
			if taken != nil && len(taken.pods) != 1 {
				t.Errorf("the Pods are %v", taken.pods)
			}
		})
	}
}

func asking() policy.Scope {
	return policy.Scope{Policies: []policy.Policy{{Provider: v1alpha1.ProviderFlux}}}
}

func TestADecisionWaitsForAReadingUnderWay(t *testing.T) {
	ahead, web := NewAhead(clocktesting.NewFakeClock(time.Now())), deployment(t, "web", "1", 4)
	read := readingOf(web)
	ahead.offer(web.Key, read)
	taken := make(chan *reading)
	go func() { taken <- ahead.take(t.Context(), web, nil) }()
	select {
	case <-taken:
		t.Fatal("a reading was taken that is not complete")
	case <-time.After(10 * time.Millisecond):
	}
	close(read.done)
	if <-taken != read {
		t.Error("the reading was not taken")
	}
	ahead.offer(web.Key, readingOf(web))
	ended, end := context.WithCancel(t.Context())
	end()
	if ahead.take(ended, web, nil) != nil {
		t.Error("a reading was taken that is not complete")
	}
}

func TestReadingsGrowOld(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	ahead := NewAhead(clock)
	for i := range maxAhead {
		w := deployment(t, fmt.Sprint("w", i), "1", 1)
		if !ahead.offer(w.Key, readingOf(w)) {
			t.Fatalf("there is no place for reading %d", i)
		}
	}
	web := deployment(t, "web", "1", 4)
	if ahead.offer(web.Key, readingOf(web)) {
		t.Error("there is a place for more readings than decisions are near")
	}
	clock.Step(aheadFor)
	first := readingOf(web)
	if !ahead.offer(web.Key, first) {
		t.Fatal("readings that nobody took keep their place")
	}
	if ahead.offer(web.Key, readingOf(web)) {
		t.Error("two readings are kept of one workload")
	}
	close(first.done)
	if ahead.take(t.Context(), web, nil) != first {
		t.Error("the reading was lost")
	}
	second := readingOf(web)
	close(second.done)
	clock.Step(aheadFor / 2)
	ahead.offer(web.Key, second)
	clock.Step(aheadFor / 2) // The time of the first is over.
	if ahead.take(t.Context(), web, nil) != second {
		t.Error("the age of one reading ended another")
	}
}

func TestARecordStandsInForAnother(t *testing.T) {
	changed, other := source.Key{Namespace: "shop"}, source.Key{Namespace: "bank"}
	records := recordsWith{
		Records: fixedRecords{changed: {ResourceVersion: "1"}, other: {ResourceVersion: "2"}},
		key:     changed, record: observation.Record{ResourceVersion: "3"},
	}
	for key, want := range map[source.Key]string{changed: "3", other: "2"} {
		if got := records.Get(key).ResourceVersion; got != want {
			t.Errorf("the record of namespace %s is at %s, want %s", key.Namespace, got, want)
		}
	}
}

type fixedRecords map[source.Key]observation.Record

func (f fixedRecords) Get(key source.Key) *observation.Record {
	record := f[key]
	return &record
}
