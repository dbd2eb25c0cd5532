package properties_test

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/servertime"
	"github.com/kick-dev/kick/internal/core/deps"
	"github.com/kick-dev/kick/internal/core/observation"
	"github.com/kick-dev/kick/internal/core/policy"
	"github.com/kick-dev/kick/internal/core/request"
)

// Delays of the manager, as in the controllers.
const (
	raceDelay   = 100 * time.Millisecond
	flushDelay  = 3 * time.Second
	denialPause = time.Minute
	mostDelay   = 5 * time.Second
	keptFor     = 10 * time.Second
	restedAfter = 5 * time.Second
)

var settings = request.Settings{TTL: 3 * time.Hour, RolloutDeadline: 15 * time.Minute}

// manager plays KICK around the core: it watches, gathers, stores and acts. It keeps what a process keeps.
type manager struct {
	c      *cluster
	number int
	// dead managers do nothing any more.
	dead     bool
	settings request.Settings
	// latency of its watches.
	latency time.Duration
	heard   map[string]time.Time
	// skew of the local clock; clock corrects it by the answers of the API server.
	skew   time.Duration
	local  *testingclock.FakePassiveClock
	clock  *servertime.Clock
	answer http.RoundTripper

	sources   map[deps.Source]*metadata
	workloads map[workloadKey]*snapshot
	movedAt   map[workloadKey]time.Time
	policies  map[string]*v1alpha1.KickPolicy
	requests  map[string]*v1alpha1.KickRequest
	written   map[string]*v1alpha1.KickRequest

	ledger   ledger
	flushing bool
	issued   map[types.UID]string
	decided  map[types.UID]string
	denied   map[types.UID]request.Denial
	rush     rush

	dueSources   []deps.Source
	dueWorkloads []workloadKey
	working      bool
	timers       map[workloadKey]time.Time

	// beforeWrite is called before each durable write; it may let others act, or die.
	beforeWrite func(what string)
}

// killed is what a manager panics with that is killed at a write.
type killed struct{}

// startManager starts a manager: it lists everything and looks at everything once.
func (c *cluster) startManager(latency, skew time.Duration) *manager {
	m := &manager{
		c: c, number: c.next(), latency: latency, skew: skew, heard: map[string]time.Time{},
		sources: map[deps.Source]*metadata{}, workloads: map[workloadKey]*snapshot{}, movedAt: map[workloadKey]time.Time{},
		policies: map[string]*v1alpha1.KickPolicy{}, requests: map[string]*v1alpha1.KickRequest{},
		written: map[string]*v1alpha1.KickRequest{},
		issued:  map[types.UID]string{}, decided: map[types.UID]string{}, denied: map[types.UID]request.Denial{},
		rush:   newRush(),
		timers: map[workloadKey]time.Time{},
		ledger: c.ledger.copy(), settings: settings,
	}
	m.local = testingclock.NewFakePassiveClock(c.now.Add(skew))
	m.clock = servertime.New(m.local)
	m.answer = m.clock.Wrap(dated{c})
	m.answered()
	for name, s := range c.sources {
		m.sources[name] = metadataOf(s)
	}
	maps.Copy(m.policies, c.policies)
	maps.Copy(m.requests, c.requests)
	for _, w := range c.sortedWorkloads() {
		m.workloads[w.key] = w.snapshot()
		m.movedAt[w.key] = c.now
	}
	if len(c.managers) > 0 {
		c.judge.scopeChanged()
	}
	c.managers = append(c.managers, m)
	c.judge.tell("manager %d starts, latency %s, skew %s", m.number, latency, skew)
	m.wakeEverything()
	m.later(0, m.work)
	return m
}

// stop ends a manager, at once.
func (m *manager) stop() {
	m.dead = true
	m.c.judge.tell("manager %d stops", m.number)
	m.c.managers = slices.DeleteFunc(m.c.managers, func(other *manager) bool { return other == m })
}

func (l ledger) copy() ledger { return ledger{version: l.version, records: maps.Clone(l.records)} }

// dated answers every request with the date of the API server.
type dated struct{ c *cluster }

func (d dated) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{Header: http.Header{"Date": {d.c.now.UTC().Format(http.TimeFormat)}}}, nil
}

// answered is a request to the API server, as far as the clock is concerned.
func (m *manager) answered() {
	m.local.SetTime(m.c.now.Add(m.skew))
	_, _ = m.answer.RoundTrip(nil) //nolint:bodyclose // it answers without a body
}

// now is the present time, as far as the manager can tell.
func (m *manager) now() time.Time {
	m.local.SetTime(m.c.now.Add(m.skew))
	return m.clock.Now()
}

// later does something after a time, unless the manager is dead by then.
func (m *manager) later(d time.Duration, do func()) {
	m.c.agenda.add(m.c.now.Add(d), func() {
		if !m.dead {
			do()
		}
	})
}

// hear delivers an event of a watch after its latency, and in order.
func (m *manager) hear(watch string, event func()) {
	at := m.c.now.Add(m.latency)
	if last := m.heard[watch]; at.Before(last) {
		at = last
	}
	m.heard[watch] = at
	m.later(at.Sub(m.c.now), func() {
		event()
		m.later(0, m.work)
	})
}

func (m *manager) wakeEverything() {
	for _, name := range allSources {
		m.wakeSource(name)
	}
	for _, key := range m.workloadKeys() {
		m.wakeWorkload(key)
	}
}

func (m *manager) workloadKeys() []workloadKey {
	return slices.SortedFunc(maps.Keys(m.workloads), func(a, b workloadKey) int {
		if a.String() < b.String() {
			return -1
		}
		return 1
	})
}

func (m *manager) wakeSource(name deps.Source) {
	if !slices.Contains(m.dueSources, name) {
		m.dueSources = append(m.dueSources, name)
	}
}

func (m *manager) wakeWorkload(key workloadKey) {
	if !slices.Contains(m.dueWorkloads, key) {
		m.dueWorkloads = append(m.dueWorkloads, key)
	}
}

func (m *manager) wakeConsumers(name deps.Source) {
	for _, key := range m.workloadKeys() {
		if len(shapes[m.workloads[key].id.shape].usesOf(name)) > 0 {
			m.wakeWorkload(key)
		}
	}
}

func (m *manager) sourceEvent(name deps.Source, seen *metadata) {
	before := m.sources[name]
	if seen == nil {
		delete(m.sources, name)
	} else {
		m.sources[name] = seen
	}
	m.wakeSource(name)
	if before == nil || seen == nil || !maps.Equal(before.labels, seen.labels) {
		m.wakeConsumers(name)
	}
}

func (m *manager) workloadEvent(key workloadKey, seen *snapshot) {
	before := m.workloads[key]
	if seen == nil {
		delete(m.workloads, key)
	} else {
		m.workloads[key] = seen
		m.movedAt[key] = m.c.now
	}
	m.wakeWorkload(key)
	if before != nil && seen != nil && before.generation == seen.generation && maps.Equal(before.labels, seen.labels) {
		return
	}
	for _, s := range []*snapshot{before, seen} {
		if s != nil {
			for _, name := range shapes[s.id.shape].sources() {
				m.wakeSource(name)
			}
		}
	}
}

func (m *manager) policyEvent(name string, seen *v1alpha1.KickPolicy) {
	if seen == nil {
		delete(m.policies, name)
	} else {
		m.policies[name] = seen
	}
	m.wakeEverything()
}

func (m *manager) requestEvent(name string, seen *v1alpha1.KickRequest) {
	before := m.requests[name]
	if seen == nil {
		delete(m.requests, name)
		if before != nil {
			m.goneRequest(before)
			m.wakeWorkload(targetOf(before))
		}
		return
	}
	m.requests[name] = seen
	if before == nil || before.Generation != seen.Generation {
		m.wakeWorkload(targetOf(seen))
	}
}

func (m *manager) goneRequest(r *v1alpha1.KickRequest) {
	if written := m.written[r.Name]; written != nil && written.UID == r.UID {
		delete(m.written, r.Name)
	}
	delete(m.issued, r.UID)
	delete(m.decided, r.UID)
	delete(m.denied, r.UID)
	m.endPutOff(r.UID)
}

func targetOf(r *v1alpha1.KickRequest) workloadKey {
	return workloadKey{r.Spec.TargetRef.Kind, r.Spec.TargetRef.Name}
}

// maxReconciles is how many reconciles one instant may take; more are a loop without a pause.
const maxReconciles = 100

// work handles all that is due. A manager that dies at a write leaves the rest to its successor.
func (m *manager) work() {
	if m.working || m.dead {
		return
	}
	m.working = true
	defer func() {
		m.working = false
		if cause := recover(); cause != nil {
			if _, isKill := cause.(killed); !isKill {
				panic(cause)
			}
			m.stop()
		}
	}()
	for range maxReconciles {
		switch {
		case m.dead:
			return
		case len(m.dueSources) > 0:
			name := m.dueSources[0]
			m.dueSources = m.dueSources[1:]
			m.reconcileSource(name)
		case len(m.dueWorkloads) > 0:
			key := m.dueWorkloads[0]
			m.dueWorkloads = m.dueWorkloads[1:]
			m.reconcileWorkload(key)
		default:
			return
		}
	}
	m.c.judge.fail("the manager reconciles without a pause")
}

// raceDelay is the pause after a lost race. Before its watches have caught up the manager would only lose it again.
func (m *manager) raceDelay() time.Duration { return max(raceDelay, m.latency) }

// again lets the manager look at a workload after a time.
func (m *manager) again(key workloadKey, d time.Duration) {
	m.later(d, func() {
		m.wakeWorkload(key)
		m.work()
	})
}

// setTimer is the one timer of a workload: only what the last decision asked for counts.
func (m *manager) setTimer(key workloadKey, d time.Duration) {
	at := m.c.now.Add(max(d, time.Millisecond))
	m.timers[key] = at
	m.later(at.Sub(m.c.now), func() {
		if m.timers[key].Equal(at) {
			delete(m.timers, key)
			m.wakeWorkload(key)
			m.work()
		}
	})
}

// durable announces a durable write.
func (m *manager) durable(what string) {
	m.answered()
	m.c.judge.writes++
	if m.beforeWrite != nil {
		m.beforeWrite(what)
	}
	if m.dead {
		panic(killed{})
	}
}

// scopeOf asks the core what the policies the manager knows say about a workload.
func (m *manager) scopeOf(w *snapshot) policy.Scope {
	var parsed []policy.Policy
	for _, name := range slices.Sorted(maps.Keys(m.policies)) {
		p, _ := policy.Parse(m.policies[name])
		parsed = append(parsed, p)
	}
	return policy.ScopeOf(parsed, labelSet(w.labels))
}

// getRequest returns what the cache shows or what the manager has written since.
func (m *manager) getRequest(name string) *v1alpha1.KickRequest {
	cached, written := m.requests[name], m.written[name]
	switch {
	case cached == nil:
		return written
	case written == nil || version(written) <= version(cached):
		delete(m.written, name)
		return cached
	default:
		return written
	}
}

func version(r *v1alpha1.KickRequest) int {
	v, _ := strconv.Atoi(r.ResourceVersion)
	return v
}

// current tells whether a record was made as records are made now.
func current(r observation.Record, keyID string, encoding int32) bool {
	return r.KeyID == keyID && r.Encoding == encoding
}
