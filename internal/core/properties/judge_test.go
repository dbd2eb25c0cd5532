package properties_test

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/deps"
	"github.com/kick-dev/kick/internal/core/observation"
)

// reporter is a test.
type reporter interface {
	Helper()
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
}

// judge holds the core to its promises. What the documentation declares as a limit of the evidence is counted and let
// pass, each kind by its name.
type judge struct {
	t       reporter
	c       *cluster
	writes  int
	stamped int
	counts  map[string]int
	// tale is what has happened of late.
	tale []string
}

func newJudge(t reporter) *judge { return &judge{t: t, counts: map[string]int{}} }

func (j *judge) fail(format string, args ...any) {
	j.t.Helper()
	j.t.Fatalf("%s\n%s: %s", strings.Join(j.tale, "\n"), j.c.now.Format(clockFormat), fmt.Sprintf(format, args...))
}

const (
	clockFormat = "15:04:05.000"
	maxTale     = 150
)

// tell keeps what happens, to be printed with a failure.
func (j *judge) tell(format string, args ...any) {
	if len(j.tale) == maxTale {
		j.tale = j.tale[1:]
	}
	j.tale = append(j.tale, j.c.now.Format(clockFormat)+" "+fmt.Sprintf(format, args...))
}

// tolerance is by how much the clock of the manager may differ from the API server's: two whole seconds, which are told
// from whole seconds.
const tolerance = 3 * time.Second

// The limits of the evidence that docs/model.md names.
const (
	wholeSeconds  = "loss: a first sight has whole seconds"
	removedUnseen = "loss: a first sight cannot date a removed key"
	removedAfter  = "loss: a key removed after another write, unseen"
	clockLate     = "loss: the clock is late by less than the tolerance"
	changedBack   = "loss: changed and changed back unseen"
	cameBack      = "loss: an optional source was missing and came back as it was"
	firstRun      = "loss: a volume was written before the first start of its container"
	stampAhead    = "loss: the stamp is dated ahead of its revision"
	givenUp       = "loss: the stamp was removed again and again"
	partitioned   = "loss: a partition keeps the Pod"

	sameSecond = "extra: within the second of a start"
	datedLate  = "extra: dated later than it happened"
	volumeLag  = "extra: a restarted container may have found old files"
	lateList   = "extra: a list of Pods was a moment behind"
	overtaking = "extra: over a rollout that does not complete"
	// A revision that is taken up again does not tell when.
	intoRollback = "extra: into a rollback, whose revision is old"
)

// delayed counts the restarts that are put off in a rush, to show that there are any.
const delayed = "restarts put off"

// sighting is an observation of the manager.
type sighting struct {
	m      *manager
	name   deps.Source
	old    remembered
	known  bool
	next   observation.Record
	result observation.Result
	now    time.Time
}

// observes checks the class and the date of an observation against what has happened, and returns what is remembered.
func (j *judge) observes(s sighting) remembered {
	history := j.c.history[s.name]
	r := s.old
	r.Record, r.version = s.next, len(history)-1
	if s.known && r.version > s.old.version+1 {
		r.backFrom, r.backTo = s.old.version, r.version
	}
	last, date := history[r.version], s.next.ChangedAt
	if s.result != observation.NoChange {
		j.tell("manager %d: %s is %s, change %d at %s, dated %s", s.m.number, s.name, s.result, r.version,
			last.at.Format(clockFormat), date.Format("15:04:05.000000"))
	}
	early := last.at.Sub(date)
	same := s.known && maps.Equal(history[s.old.version].data, last.data)
	written := j.c.sources[s.name].written
	switch s.result {
	case observation.Baseline:
		r.doubt = ""
		switch {
		case s.known || !date.Equal(written):
			j.fail("I1: the first sight of %s is dated %s, the API server says %s", s.name, date, written)
		case early > 0 && early < time.Second:
			r.doubt = wholeSeconds
		case early > 0 && last.undated:
			r.doubt = removedUnseen
		case early > 0:
			j.fail("I1: the first sight of %s is dated %s before its change", s.name, early)
		}
	case observation.NoChange, observation.MetaOnly:
		if !same || !date.Equal(s.old.ChangedAt) {
			j.fail("I2: a change of %s counts as %s", s.name, s.result)
		}
	case observation.Relevant:
		if same || !date.After(s.old.ChangedAt) {
			j.fail("I6: %s is the same and counts as %s, dated %s after %s", s.name, s.result, date, s.old.ChangedAt)
		}
		r.doubt = j.doubt(s, written, early)
	default:
		j.fail("%s is observed as %s", s.name, s.result)
	}
	if r.doubt != "" {
		j.counts[r.doubt+" (dates)"]++
	}
	return r
}

// doubt checks the date of a change.
func (j *judge) doubt(s sighting, written time.Time, early time.Duration) string {
	last := j.c.history[s.name][len(j.c.history[s.name])-1]
	dated := written.After(s.old.LastWrite)
	latest := s.now
	if earliest := s.old.ChangedAt.Add(observation.Precision); earliest.After(latest) {
		latest = earliest
	}
	if end := written.Add(time.Second); dated && s.next.ChangedAt.After(latest) && !s.next.ChangedAt.Before(end) {
		j.fail("I6: a change of %s in the second %s is dated %s", s.name, written, s.next.ChangedAt)
	}
	if !dated && s.next.ChangedAt.After(latest) && !s.next.ChangedAt.Equal(written) {
		j.fail("I6: a change of %s observed at %s is dated %s", s.name, s.now, s.next.ChangedAt)
	}
	switch {
	case early <= 0:
		return ""
	case dated && early < time.Second && s.next.ChangedAt.After(written):
		return "" // Later than every container that started in this second before it.
	case dated && last.undated && early > time.Second:
		return removedAfter
	case last.undated && early <= tolerance && s.now.Before(j.c.now):
		return clockLate
	default:
		j.fail("I2: the change of %s at %s is dated %s (clock %s)", s.name, last.at, s.next.ChangedAt, s.now)
		return ""
	}
}

// sourceChanged is told of all that may make an evaluation legitimate.
func (j *judge) sourceChanged(name deps.Source) {
	for _, w := range j.c.workloads {
		if len(shapes[w.spec.id.shape].usesOf(name)) > 0 {
			w.bornFresh = false
		}
	}
}

// scopeChanged is told when workloads or sources may have come into scope, or what was observed was lost.
func (j *judge) scopeChanged() {
	for _, w := range j.c.workloads {
		w.bornFresh = false
	}
}

// observed tells whether all sources of a workload that is being created are on record, delivered, and older than it.
func (j *judge) observed(w *workload) bool {
	sources := shapes[w.spec.id.shape].sources()
	if len(j.c.managers) != 1 {
		return false // Two leaders may deliver a change twice.
	}
	for _, name := range sources {
		record, known := j.c.ledger.records[name]
		if j.c.sources[name] == nil || !known || record.Pending || record.version != len(j.c.history[name])-1 ||
			record.ChangedAt.After(w.created) {
			return false
		}
	}
	return len(sources) > 0
}

// requestCreated checks I4 and I8.
func (j *judge) requestCreated(w *snapshot, delivered bool) {
	if w := j.c.workloads[w.key]; w.bornFresh {
		j.fail("I8: a request was made (for a change: %v) for %s, which came after all its sources were observed", delivered, w.key)
	}
	seen := map[workloadKey]bool{}
	for _, r := range j.c.requests {
		if seen[targetOf(r)] {
			j.fail("I4: two requests for %s", targetOf(r))
		}
		seen[targetOf(r)] = true
	}
}

func reasonOf(s *v1alpha1.KickRequestStatus) string {
	for _, condition := range s.Conditions {
		if condition.Type == v1alpha1.ConditionReady {
			return condition.Reason
		}
	}
	return ""
}
