package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kick-dev/kick/test/testbed"
)

// scenario is a run of KICK in one namespace that ends in one restart of each of its workloads, and that can be repeated.
type scenario struct {
	arguments []string
	workloads []string
	// fresh: every repetition needs a namespace of its own.
	fresh bool
	// prepare brings a new namespace, or one after a run, to where trigger starts the run. Rounds are counted from 1.
	prepare, trigger func(ctx context.Context, namespace string, round int) error
	// settled tells why the run has not ended as it should, if so.
	settled func(ctx context.Context, namespace string) error
	// alike: many calls of a run are alike, and of each kind two are taken, the first and one in the middle.
	alike bool
}

// lanes is how many faults are tried at the same time, each in a namespace of its own, when they leave the manager alive.
const lanes = 6

// matrix runs a scenario once for each call of it and each fault.
type matrix struct {
	t       *testing.T
	of      scenario
	manager *Manager
	calls   []Nth

	mu      sync.Mutex
	results map[cell]string
	lost    int
}

type cell struct {
	call  string
	fault Fault
}

// lane is a namespace in which repetitions of a scenario follow each other.
type lane struct {
	namespace string
	round     int
	// versions of the workloads after the last repetition.
	versions map[string]int64
	// triggered is when the present repetition was triggered.
	triggered testbed.AuditMark
}

func runMatrix(t *testing.T, of scenario) {
	t.Helper()
	m := &matrix{t: t, of: of, manager: alone(t, of.arguments...), results: map[cell]string{}}
	m.enumerate()
	began := time.Now()
	m.try(lanes, func(f Fault) bool { return !f.kills() })
	m.try(1, Fault.kills)
	t.Logf("%d cells in %s\n%s", len(m.results), time.Since(began).Round(time.Second), m.table())
	for c, result := range m.results {
		if result != "1" && result != unreached {
			t.Errorf("%s, %s: %s stamps", c.call, c.fault, result)
		}
	}
	if m.lost > 1+len(m.results)/10 {
		t.Errorf("%d of %d faults found no request to strike: the matrix proves too little", m.lost, len(m.results))
	}
}

// enumerate reads the calls of the scenario from the audit log: those that each of two undisturbed runs makes.
func (m *matrix) enumerate() {
	m.t.Helper()
	var runs [2][]Nth
	l := &lane{}
	for i := range runs {
		l = m.next(l)
		must(m.t, m.once(l, nil))
		runs[i] = m.audited(l.namespace, l.triggered)
	}
	for _, call := range runs[1] {
		if slices.Contains(runs[0], call) {
			m.calls = append(m.calls, call)
		}
	}
	if len(m.calls) == 0 {
		m.t.Fatal("the audit log holds no call of the manager")
	}
	if m.of.alike {
		m.calls = firstAndMiddle(m.calls)
	}
}

// firstAndMiddle are two calls of each kind, or the only one.
func firstAndMiddle(calls []Nth) []Nth {
	kinds := map[Call][]Nth{}
	for _, call := range calls {
		kinds[call.Call] = append(kinds[call.Call], call)
	}
	return slices.DeleteFunc(calls, func(call Nth) bool {
		alike := kinds[call.Call]
		return call != alike[0] && call != alike[len(alike)/2]
	})
}

// try repeats the scenario for each call and each fault that suits, in as many lanes as are given.
func (m *matrix) try(lanes int, suits func(Fault) bool) {
	todo := make(chan func(*lane) *lane)
	var all sync.WaitGroup
	for range lanes {
		all.Go(func() {
			l := &lane{}
			for next := range todo {
				l = next(l)
			}
			if l.namespace != "" {
				m.conclude(l)
			}
		})
	}
	for i, call := range m.calls {
		for j, fault := range Faults {
			if suits(fault) && (i+j)%every() == 0 {
				todo <- func(l *lane) *lane { return m.strike(l, call, fault) }
			}
		}
	}
	close(todo)
	all.Wait()
}

// every tells of how many cells of the matrix one is tried.
func every() int {
	switch {
	case full():
		return 1
	case testing.Short():
		return 7
	default:
		return 3
	}
}

const (
	unreached = "–"
	tries     = 3
)

// strike repeats the scenario with one fault. When the request does not come in that run it is tried again.
func (m *matrix) strike(l *lane, call Nth, fault Fault) *lane {
	result := unreached
	for range tries {
		l = m.next(l)
		call.Concerns = l.namespace
		plan := &Plan{At: call, Fault: fault}
		err := m.once(l, plan)
		err = errors.Join(err, m.manager.Start()) // The request may have come when the run had ended.
		if err != nil {
			result = err.Error()
			l = &lane{} // What is broken is left as it is.
			break
		}
		if plan.Fired() {
			result = "1"
			break
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if result == unreached {
		m.lost++
	}
	m.results[cell{call.String(), fault}] = result
	return l
}

// next is the lane of the next repetition.
func (m *matrix) next(l *lane) *lane {
	if l.namespace != "" && !m.of.fresh {
		l.round++
		return l
	}
	return &lane{namespace: newNamespace(m.t), round: 1}
}

// once runs the scenario and returns what is wrong with its end. A manager that the plan has killed is started again.
func (m *matrix) once(l *lane, plan *Plan) error {
	ctx := m.t.Context()
	if err := m.of.prepare(ctx, l.namespace, l.round); err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	before, err := m.versions(l.namespace)
	if err != nil {
		return err
	}
	if err := l.unchanged(before); err != nil {
		return err
	}
	l.triggered = bed.Audit().Mark()
	if plan != nil {
		m.manager.Proxy.Arm(plan)
		defer m.manager.Proxy.Disarm(plan)
	}
	if err := m.of.trigger(ctx, l.namespace, l.round); err != nil {
		return fmt.Errorf("trigger: %w", err)
	}
	err = poll(ctx, patience, func() error {
		if plan != nil && plan.Fault.kills() && plan.Fired() {
			if err := m.manager.Start(); err != nil {
				return err
			}
		}
		if l.versions, err = m.versions(l.namespace); err != nil {
			return err
		}
		for _, name := range m.of.workloads {
			if l.versions[name] == before[name] {
				return fmt.Errorf("0 (%s in %s)", name, l.namespace)
			}
		}
		return m.of.settled(ctx, l.namespace)
	})
	if err != nil {
		return err
	}
	if l.versions, err = m.versions(l.namespace); err != nil {
		return err
	}
	for _, name := range m.of.workloads {
		if stamps := l.versions[name] - before[name]; stamps != 1 {
			return fmt.Errorf("%d (%s in %s)", stamps, name, l.namespace)
		}
	}
	return nil
}

// conclude runs the scenario once more, undisturbed, so that a stamp that came late to the last repetition is seen.
func (m *matrix) conclude(l *lane) {
	if m.of.fresh {
		return
	}
	l.round++
	if err := m.once(l, nil); err != nil {
		m.t.Errorf("after the last fault in %s: %v", l.namespace, err)
	}
}

// unchanged tells which workload was restarted after the last repetition had ended.
func (l *lane) unchanged(now map[string]int64) error {
	for name, version := range l.versions {
		if now[name] != version {
			return fmt.Errorf("%d after the end of the repetition before (%s in %s)", now[name]-version, name, l.namespace)
		}
	}
	return nil
}

func (m *matrix) versions(namespace string) (map[string]int64, error) {
	versions := map[string]int64{}
	for _, name := range m.of.workloads {
		version, err := generationOf(m.t.Context(), namespace, name)
		if err != nil {
			return nil, err
		}
		versions[name] = version
	}
	return versions, nil
}

// table shows how many stamps each workload got under each fault.
func (m *matrix) table() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s: call × fault → stamps (%s: the request did not come, ·: not in the sample)\n", m.t.Name(), unreached)
	fmt.Fprintf(&out, "%-36s", "")
	for _, fault := range Faults {
		fmt.Fprintf(&out, " %-12s", fault)
	}
	for _, call := range m.calls {
		fmt.Fprintf(&out, "\n%-36s", call)
		for _, fault := range Faults {
			result, ran := m.results[cell{call.String(), fault}]
			if !ran {
				result = "·"
			}
			if len(result) > 12 {
				result = "broken"
			}
			fmt.Fprintf(&out, " %-12s", result)
		}
	}
	return out.String()
}

// audited are the manager's requests about a namespace since a mark.
func (m *matrix) audited(namespace string, since testbed.AuditMark) []Nth {
	m.t.Helper()
	events, err := bed.Audit().Events(testbed.AuditFilter{User: kickUser, From: since})
	must(m.t, err)
	slices.SortStableFunc(events, func(a, b testbed.AuditEvent) int { return a.Time.Compare(b.Time) })
	var calls []Call
	for _, event := range events {
		if call := callIn(event); call.Concerns == namespace && call.Verb != "watch" {
			call.Concerns = ""
			calls = append(calls, call)
		}
	}
	return numbered(calls)
}
