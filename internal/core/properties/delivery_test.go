package properties_test

import (
	"maps"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/deps"
	"github.com/kick-dev/kick/internal/core/fingerprint"
	"github.com/kick-dev/kick/internal/core/freshness"
	"github.com/kick-dev/kick/internal/core/observation"
	"github.com/kick-dev/kick/internal/core/policy"
	"github.com/kick-dev/kick/internal/core/request"
)

var digestKey = fingerprint.Key{ID: "key", Secret: make([]byte, fingerprint.KeySize)}

func labelSet(set map[string]string) labels.Set { return labels.Set(set) }

// consumer is a managed workload with its scope.
type consumer struct {
	w     *snapshot
	scope policy.Scope
}

// reconcileSource observes a source and delivers its change.
func (m *manager) reconcileSource(name deps.Source) {
	seen := m.sources[name]
	if seen == nil {
		return
	}
	var consumers []consumer
	for _, key := range m.workloadKeys() {
		w := m.workloads[key]
		if scope := m.scopeOf(w); scope.Managed() && scope.AdmitsSource(labelSet(seen.labels)) && refers(w, name) {
			consumers = append(consumers, consumer{w, scope})
		}
	}
	if len(consumers) == 0 {
		return
	}
	record, ok := m.observe(name, seen)
	if !ok || !record.Pending {
		return
	}
	m.deliver(name, record, consumers)
}

func refers(w *snapshot, name deps.Source) bool {
	_, found := referenceOf(w.id, name)
	return found
}

// observe brings the record of a source up to date.
func (m *manager) observe(name deps.Source, seen *metadata) (remembered, bool) {
	old, known := m.ledger.records[name]
	if known && old.ResourceVersion == strconv.Itoa(seen.version) && current(old.Record, digestKey.ID, fingerprint.Encoding) {
		return old, true
	}
	m.answered()
	live := m.c.sources[name]
	if live == nil {
		return remembered{}, false
	}
	var before *observation.Record
	if known {
		before = &old.Record
	}
	body := fingerprint.Content{Kind: name.Kind, Data: bytesOf(live.data)}
	sight := observation.Sight{
		ResourceVersion: strconv.Itoa(live.version), LastWrite: live.written, KeyID: digestKey.ID,
		Fingerprint: digestKey.Digest(body), Keys: digestKey.KeyDigests(body),
	}
	now := m.now()
	next, result := observation.Observe(before, sight, now)
	record := m.c.judge.observes(sighting{m, name, old, known, next, result, now})
	switch result {
	case observation.NoChange, observation.MetaOnly:
		m.ledger.records[name] = record
		return record, true
	default:
		return record, m.putRecord(name, record)
	}
}

func bytesOf(data map[string]string) map[string][]byte {
	result := map[string][]byte{}
	for key, value := range data {
		result[key] = []byte(value)
	}
	return result
}

// putRecord makes a record durable. It reports false where another manager has written meanwhile.
func (m *manager) putRecord(name deps.Source, record remembered) bool {
	m.durable("ledger")
	if m.ledger.version != m.c.ledger.version {
		m.ledger = m.c.ledger.copy()
		m.later(m.raceDelay(), func() {
			m.wakeSource(name)
			m.work()
		})
		return false
	}
	m.ledger.records[name] = record
	m.storeLedger()
	return true
}

func (m *manager) storeLedger() {
	m.ledger.version++
	m.c.ledger = m.ledger.copy()
}

// deliver gives the consumers their requests and then marks the change as delivered.
func (m *manager) deliver(name deps.Source, record remembered, consumers []consumer) {
	races := false
	for _, c := range consumers {
		reference, _ := referenceOf(c.w.id, name)
		changedAt := record.ChangedAt
		if c.scope.ByKey(labelSet(m.sources[name].labels)) {
			changedAt, _ = record.Consumed(reference)
		}
		if !changedAt.Equal(record.ChangedAt) {
			m.wakeWorkload(c.w.key)
			continue
		}
		races = !m.ensure(c.w, true) || races
	}
	if races {
		m.later(m.raceDelay(), func() {
			m.wakeSource(name)
			m.work()
		})
		return
	}
	record.Pending = false
	m.ledger.records[name] = record
	if m.flushing {
		return
	}
	m.flushing = true
	m.later(flushDelay, m.flush)
}

// flush makes it durable that changes were delivered.
func (m *manager) flush() {
	m.flushing = false
	defer func() {
		if cause := recover(); cause != nil {
			if _, isKill := cause.(killed); !isKill {
				panic(cause)
			}
			m.stop()
		}
	}()
	m.durable("ledger")
	if m.ledger.version != m.c.ledger.version {
		m.ledger = m.c.ledger.copy()
		return
	}
	m.storeLedger()
}

// ensure makes the request of a workload or has it decided about. It reports false if another writer was quicker.
func (m *manager) ensure(w *snapshot, delivered bool) bool {
	name := request.Name(w.key.kind, w.key.name)
	present := m.getRequest(name)
	if present != nil && present.Spec.TargetRef.UID != w.uid {
		if !m.removeRequest(present) {
			return false
		}
		present = nil
	}
	if present == nil {
		return m.createRequest(w, delivered)
	}
	m.wakeWorkload(w.key)
	return true
}

func (m *manager) createRequest(w *snapshot, delivered bool) bool {
	name := request.Name(w.key.kind, w.key.name)
	m.durable("create")
	if m.c.requests[name] != nil || m.c.workloads[w.key] == nil || m.c.workloads[w.key].uid != w.uid {
		return false // AlreadyExists; or garbage that is collected at once, since its owner is gone.
	}
	created := &v1alpha1.KickRequest{}
	created.Name, created.UID, created.Generation = name, types.UID(m.c.id()), 1
	created.Spec.TargetRef = v1alpha1.TargetRef{APIVersion: "apps/v1", Kind: w.key.kind, Name: w.key.name, UID: w.uid}
	m.c.storeRequest(created)
	m.written[name] = created
	m.c.judge.requestCreated(w, delivered)
	return true
}

// saveStatus stores a status on the very request it was decided on, nil if that has moved on.
func (m *manager) saveStatus(old *v1alpha1.KickRequest, status v1alpha1.KickRequestStatus) *v1alpha1.KickRequest {
	m.durable("status")
	present := m.c.requests[old.Name]
	if present == nil || present.ResourceVersion != old.ResourceVersion {
		delete(m.written, old.Name)
		return nil
	}
	changed := old.DeepCopy()
	changed.Status = status
	m.c.storeRequest(changed)
	m.written[old.Name] = changed
	return changed
}

func (m *manager) removeRequest(old *v1alpha1.KickRequest) bool {
	delete(m.written, old.Name)
	m.durable("delete")
	present := m.c.requests[old.Name]
	if present != nil && present.ResourceVersion != old.ResourceVersion {
		return false
	}
	if present != nil {
		m.c.deleteRequest(old.Name)
	}
	return true
}

// observed is what is on record of the sources in the scope of a workload.
func (m *manager) observed(w *snapshot, scope policy.Scope) request.Observed {
	observed := request.Observed{
		Changes: freshness.Changes{}, Keys: map[deps.Source]map[string]time.Time{}, Writers: map[deps.Source]string{},
	}
	if !scope.Managed() {
		return observed
	}
	for _, reference := range references(w.id) {
		seen := m.sources[reference.Source]
		switch {
		case seen == nil && reference.Required:
			observed.Missing = append(observed.Missing, reference.Name)
		case seen != nil && scope.AdmitsSource(labelSet(seen.labels)):
			m.addRecord(&observed, reference, scope.ByKey(labelSet(seen.labels)))
		}
	}
	return observed
}

func (m *manager) addRecord(observed *request.Observed, reference deps.Reference, byKey bool) {
	record, known := m.ledger.records[reference.Source]
	if !known {
		observed.Unobserved = true
		return
	}
	if record.ResourceVersion != strconv.Itoa(m.sources[reference.Source].version) {
		observed.Unread = append(observed.Unread, reference.Name)
	}
	if lacks := record.Lacks(reference); lacks != "" {
		observed.Missing = append(observed.Missing, reference.Name+" "+lacks)
	}
	changedAt := record.ChangedAt
	var keys map[string]time.Time
	if byKey {
		changedAt, keys = record.Consumed(reference)
	}
	if !changedAt.IsZero() {
		observed.Changes[reference.Source] = changedAt
		observed.Keys[reference.Source] = maps.Clone(keys)
	}
}

// extracted remembers what the core reads from each template.
var extracted = map[int][]deps.Reference{}

// references asks the core what a template consumes.
func references(id templateID) []deps.Reference {
	if extracted[id.shape] == nil {
		extracted[id.shape] = deps.Extract(&id.template().Spec)
	}
	return extracted[id.shape]
}

func referenceOf(id templateID, name deps.Source) (deps.Reference, bool) {
	for _, reference := range references(id) {
		if reference.Source == name {
			return reference, true
		}
	}
	return deps.Reference{}, false
}
