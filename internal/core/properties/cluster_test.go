package properties_test

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/deps"
	"github.com/kick-dev/kick/internal/core/observation"
)

// noon is when all histories begin.
var noon = time.Date(2026, 8, 6, 12, 0, 0, 0, time.UTC)

// cluster plays the API server. Its clock is the truth.
type cluster struct {
	now     time.Time
	agenda  agenda
	counter int

	sources   map[deps.Source]*source
	history   map[deps.Source][]change
	workloads map[workloadKey]*workload
	policies  map[string]*v1alpha1.KickPolicy
	requests  map[string]*v1alpha1.KickRequest
	ledger    ledger

	// denies makes the API server refuse stamps, drops makes it lose them.
	denies   bool
	managers []*manager
	judge    *judge
}

// ledger is the durable Ω.
type ledger struct {
	version int
	records map[deps.Source]remembered
}

// remembered is a record, with what only the truth knows about it.
type remembered struct {
	observation.Record
	// version of the content it describes.
	version int
	// backFrom and backTo enclose versions that were never seen.
	backFrom, backTo int
	// doubt says why the content may be newer than its date, empty for no reason.
	doubt string
}

// source is a Secret or ConfigMap that exists.
type source struct {
	uid     types.UID
	version int
	labels  map[string]string
	created time.Time
	// written is the date the API server keeps for the managers that own content.
	written time.Time
	data    map[string]string
}

// change is a change of the content of a source.
type change struct {
	at   time.Time
	data map[string]string
	// undated changes leave no trace in managedFields.
	undated bool
}

// content is what can be read of a source at some time.
type content struct {
	// version counts the changes of the source; -1 is that of a source that does not exist.
	version int
	data    map[string]string
	readAt  time.Time
}

func newCluster(judge *judge) *cluster {
	c := &cluster{
		now:       noon,
		sources:   map[deps.Source]*source{},
		history:   map[deps.Source][]change{},
		workloads: map[workloadKey]*workload{},
		policies:  map[string]*v1alpha1.KickPolicy{},
		requests:  map[string]*v1alpha1.KickRequest{},
		judge:     judge,
	}
	c.ledger.records = map[deps.Source]remembered{}
	judge.c = c
	return c
}

func (c *cluster) next() int {
	c.counter++
	return c.counter
}

func (c *cluster) nextVersion() int { return c.next() }

func (c *cluster) id() string { return strconv.Itoa(c.next()) }

// second is the present time as the API server writes it.
func (c *cluster) second() time.Time { return c.now.Truncate(time.Second) }

// pass lets time pass, with all that happens in it.
func (c *cluster) pass(d time.Duration) {
	end := c.now.Add(d)
	for {
		next, due := c.agenda.due(end)
		if !due {
			break
		}
		c.reach(next.at)
		next.do()
	}
	c.reach(end)
}

// reach moves the clock on, and keeps for late lists what was before.
func (c *cluster) reach(later time.Time) {
	if !later.After(c.now) {
		return
	}
	for _, w := range c.workloads {
		w.keepPods()
	}
	c.now = later
}

// content reads a source.
func (c *cluster) content(name deps.Source) content {
	present := c.sources[name]
	if present == nil {
		return content{version: -1, readAt: c.now}
	}
	return content{version: len(c.history[name]) - 1, data: present.data, readAt: c.now}
}

// provides tells whether a container with this use can start.
func (c *cluster) provides(u use) bool {
	present := c.sources[u.source]
	if present == nil {
		return u.optional
	}
	if key := u.requiredKey(); key != "" {
		_, found := present.data[key]
		return found
	}
	return true
}

// write gives a source new content. Whoever writes it owns its content.
func (c *cluster) write(name deps.Source, data map[string]string) {
	present := c.sources[name]
	if present == nil {
		present = &source{uid: types.UID(c.id()), created: c.second(), written: c.second(), labels: map[string]string{"tier": "db"}}
		c.sources[name] = present
		if history := c.history[name]; len(history) == 0 || !maps.Equal(history[len(history)-1].data, data) {
			c.history[name] = append(history, change{at: c.now, data: data})
		}
		present.data = data
		c.sourceMoved(name, present)
		return
	}
	if maps.Equal(present.data, data) {
		return
	}
	// The API server does not date a write that only removes keys, nor a second write in one second.
	undated := onlyRemoves(present.data, data) || !c.second().After(present.written)
	if !onlyRemoves(present.data, data) {
		present.written = c.second()
	}
	c.history[name] = append(c.history[name], change{at: c.now, data: data, undated: undated})
	present.data = data
	c.judge.tell("%s changes to %v, undated %v", name, data, undated)
	c.sourceMoved(name, present)
	c.judge.sourceChanged(name)
}

func onlyRemoves(before, after map[string]string) bool {
	for key, value := range after {
		if old, found := before[key]; !found || old != value {
			return false
		}
	}
	return true
}

// annotate writes metadata only, by a manager that owns content or by another one.
func (c *cluster) annotate(name deps.Source, byOwner bool) {
	present := c.sources[name]
	if byOwner {
		present.written = c.second()
	}
	c.sourceMoved(name, present)
}

func (c *cluster) relabel(name deps.Source, labels map[string]string) {
	c.sources[name].labels = labels
	c.sourceMoved(name, c.sources[name])
	c.judge.sourceChanged(name)
}

func (c *cluster) remove(name deps.Source) {
	delete(c.sources, name)
	c.judge.tell("%s is deleted", name)
	c.announceSource(name)
	c.judge.sourceChanged(name)
	c.scheduleRefresh(name)
}

func (c *cluster) sourceMoved(name deps.Source, present *source) {
	present.version = c.nextVersion()
	c.announceSource(name)
	c.scheduleRefresh(name)
}

// scheduleRefresh lets the kubelets bring the files of running Pods up to date, each in its time.
func (c *cluster) scheduleRefresh(name deps.Source) {
	for _, w := range c.sortedWorkloads() {
		for _, p := range w.pods {
			c.agenda.add(c.now.Add(w.pace.refresh), func() { p.refresh(name) })
		}
	}
}

// create makes a workload.
func (c *cluster) create(key workloadKey, spec workloadSpec, pace pace) *workload {
	w := &workload{
		c: c, key: key, uid: types.UID(c.id()), generation: 1, created: c.second(), labels: map[string]string{"app": "web"},
		spec: spec, pace: pace, changedAt: c.now,
	}
	c.workloads[key] = w
	w.bornFresh = c.judge.observed(w)
	w.moved()
	w.resync()
	return w
}

// destroy deletes a workload; its Pods, revisions and request go with it.
func (c *cluster) destroy(w *workload) {
	delete(c.workloads, w.key)
	for _, p := range w.pods {
		p.deleted = true
	}
	c.announceWorkload(w.key)
	for _, name := range slices.Sorted(maps.Keys(c.requests)) {
		if c.requests[name].Spec.TargetRef.UID == w.uid {
			c.deleteRequest(name)
		}
	}
}

func (c *cluster) sortedWorkloads() []*workload {
	var all []*workload
	for _, w := range c.workloads {
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b *workload) int {
		if a.key.String() < b.key.String() {
			return -1
		}
		return 1
	})
	return all
}

// putPolicy stores a policy.
func (c *cluster) putPolicy(p *v1alpha1.KickPolicy) {
	p.ResourceVersion = strconv.Itoa(c.nextVersion())
	c.policies[p.Name] = p
	c.judge.scopeChanged()
	c.announcePolicy(p.Name)
}

func (c *cluster) deletePolicy(name string) {
	delete(c.policies, name)
	c.judge.scopeChanged()
	c.announcePolicy(name)
}

// storeRequest writes a request and tells the watchers.
func (c *cluster) storeRequest(r *v1alpha1.KickRequest) {
	r.ResourceVersion = strconv.Itoa(c.nextVersion())
	c.requests[r.Name] = r
	c.announceRequest(r.Name)
}

func (c *cluster) deleteRequest(name string) {
	delete(c.requests, name)
	c.announceRequest(name)
}

func (c *cluster) announceSource(name deps.Source) {
	for _, m := range c.managers {
		m.hear("sources", func() { m.sourceEvent(name, metadataOf(c.sources[name])) })
	}
}

func (c *cluster) announceWorkload(key workloadKey) {
	if len(c.managers) == 0 {
		return
	}
	seen := c.workloads[key].snapshot()
	for _, m := range c.managers {
		m.hear("workloads", func() { m.workloadEvent(key, seen) })
	}
}

func (c *cluster) announcePolicy(name string) {
	seen := c.policies[name]
	for _, m := range c.managers {
		m.hear("policies", func() { m.policyEvent(name, seen) })
	}
}

func (c *cluster) announceRequest(name string) {
	seen := c.requests[name]
	for _, m := range c.managers {
		m.hear("requests", func() { m.requestEvent(name, seen) })
	}
}
