package protocol

import (
	"fmt"
	"hash/maphash"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/kick-dev/kick/internal/core/observation"
)

// explorer visits every state that can be reached.
type explorer struct {
	broken  broken
	seed    maphash.Seed
	visited map[uint64]bool
	path    []string
	ends    int
}

func newExplorer(broken broken) *explorer {
	return &explorer{broken: broken, seed: maphash.MakeSeed(), visited: map[uint64]bool{}}
}

// step is something that may happen next.
type step struct {
	name string
	do   func(*state) error
}

func always(do func(*state)) func(*state) error {
	return func(s *state) error {
		do(s)
		return nil
	}
}

// steps lists what may happen in a state. What is optional, a change or a crash, comes last.
func (e *explorer) steps(s *state) (due, optional []step) {
	if !s.Workload.complete() {
		due = append(due, step{"the rollout", always((*state).roll)})
	}
	for i := range s.Replicas {
		named := func(what string) string { return fmt.Sprintf("replica %d: %s", i, what) }
		r := &s.Replicas[i]
		if !r.Alive {
			due = append(due, step{named("starts"), always(func(s *state) { s.start(i, e.broken) })})
			continue
		}
		if r.Job != nil {
			due = append(due, step{named(string(r.Job.Awaits)), func(s *state) error { return s.perform(i, e.broken) }})
		} else {
			due = append(due, e.idle(s, i, named)...)
		}
		if s.Crashes > 0 {
			optional = append(optional, step{named("crashes"), always(func(s *state) {
				s.Crashes--
				s.Replicas[i] = replica{}
			})})
		}
	}
	if s.Changes > 0 {
		optional = append(optional, step{"the source changes", always((*state).change)})
	}
	return due, optional
}

// idle lists what a replica may begin. To begin takes nothing but its own memory, so its first request is made at once.
func (e *explorer) idle(s *state, i int, named func(string) string) []step {
	r := &s.Replicas[i]
	begin := func(what string, begin func(*state)) step {
		return step{named(what), func(s *state) error {
			if begin(s); s.Replicas[i].Job == nil {
				return nil
			}
			return s.perform(i, e.broken)
		}}
	}
	var due []step
	if r.DueSource {
		due = append(due, begin("observes", func(s *state) { s.observe(i) }))
	}
	if r.DueWorkload {
		due = append(due, begin("decides", func(s *state) { s.decide(i) }))
	}
	if r.Dirty {
		due = append(due, begin("flushes", func(s *state) { s.flush(i) }))
	}
	if r.Seen != s.view() {
		due = append(due, begin("hears", func(s *state) { s.hear(i) }))
	}
	return due
}

// visit explores a state and all that may come of it.
func (e *explorer) visit(s state) error {
	key := maphash.Bytes(e.seed, s.canonical())
	if e.visited[key] {
		return nil
	}
	e.visited[key] = true
	due, optional := e.steps(&s)
	if len(due) == 0 && s.Changes == 0 {
		e.ends++
		if err := s.settled(); err != nil {
			return err
		}
	}
	for _, next := range append(due, optional...) {
		after := s
		after.Now = after.Now.Add(tick)
		e.path = append(e.path, next.name)
		if err := next.do(&after); err != nil {
			return err
		}
		if err := e.visit(after); err != nil {
			return err
		}
		e.path = e.path[:len(e.path)-1]
	}
	return nil
}

// adopted is a cluster in which nothing is stale, and both replicas believe to lead.
func adopted(_ testing.TB, changes, crashes int) state {
	began := time.Date(2026, 8, 6, 12, 0, 0, 300_000_000, time.UTC)
	s := state{Now: began, Changes: changes, Crashes: crashes}
	s.Source.Written = s.second()
	record, _ := observation.Observe(nil, observation.Sight{
		ResourceVersion: "0", LastWrite: s.Source.Written, Fingerprint: []byte("0"), KeyID: "key",
	}, s.Now)
	record.Pending = false
	s.Ledger = ledger{Version: 1, Record: &record}
	s.Now = s.Now.Add(tick)
	s.Workload = workload{Created: s.second(), Revised: s.second(), Pod: pod{Started: s.second()}}
	for i := range s.Replicas {
		s.Now = s.Now.Add(tick)
		s.start(i, broken{})
	}
	return s
}

// restartedOnce is a cluster in which one change was delivered, so that there is a request and a stamp.
func restartedOnce(t testing.TB, changes, crashes int) state {
	t.Helper()
	s := adopted(t, 1, 0)
	s.change()
	e := newExplorer(broken{})
	for {
		due, _ := e.steps(&s)
		if len(due) == 0 {
			break
		}
		s.Now = s.Now.Add(tick)
		if err := due[0].do(&s); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.settled(); err != nil || s.Request == nil {
		t.Fatalf("the first change ends in %v, with request %v", err, s.Request)
	}
	s.Changes, s.Crashes = changes, crashes
	return s
}

// fullEnv has the larger clusters explored too.
const fullEnv = "KICK_TEST_FULL"

// Two replicas that both believe to lead, in every order of their requests: nothing is lost (I2), the API server holds one
// request (I4), and each change is answered by at most one stamp, by none if the Pod carries it already (I6).
func TestEveryInterleavingOfTwoLeaders(t *testing.T) {
	for name, tc := range map[string]struct {
		from             func(testing.TB, int, int) state
		changes, crashes int
		full             bool
	}{
		"a change, no request yet":              {adopted, 1, 0, false},
		"a change and a crash, after a restart": {restartedOnce, 1, 1, false},
		"a change and a crash, no request yet":  {adopted, 1, 1, true},
		"two changes, after a restart":          {restartedOnce, 2, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.full && os.Getenv(fullEnv) == "" {
				t.Skipf("runs with %s=1", fullEnv)
			}
			e := newExplorer(broken{})
			if err := e.visit(tc.from(t, tc.changes, tc.crashes)); err != nil {
				t.Fatalf("%v, after\n%s", err, strings.Join(e.path, "\n"))
			}
			if e.ends == 0 {
				t.Error("nothing ever ends")
			}
			t.Logf("%d states, %d of them ends", len(e.visited), e.ends)
		})
	}
}

// The explorer finds what breaking one rule leads to.
func TestABrokenRuleIsNoticed(t *testing.T) {
	for promise, tc := range map[string]struct {
		broken  broken
		from    func(testing.TB, int, int) state
		crashes int
	}{
		"I6": {broken{stampUnfenced: true}, restartedOnce, 0},
		"I2": {broken{deliveredFirst: true}, adopted, 1},
	} {
		e := newExplorer(tc.broken)
		err := e.visit(tc.from(t, 1, tc.crashes))
		if err == nil || !strings.HasPrefix(err.Error(), promise) {
			t.Errorf("%+v: %v, want a violation of %s", tc.broken, err, promise)
		}
	}
}
