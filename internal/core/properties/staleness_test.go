package properties_test

import (
	"maps"
	"slices"
	"time"

	"github.com/kick-dev/kick/internal/core/deps"
)

// volumeLag is how long KICK takes files to trail their source.
const filesTrail = 2 * time.Minute

// view is what somebody knows: the workload, the policies, the labels of sources, and the versions of their content.
type view struct {
	id        templateID
	shape     shape
	partition int32
	rules     rules
	labels    func(deps.Source) (map[string]string, bool)
	versions  func(deps.Source) (int, bool)
}

// reference is what the core finds that the template reads of a source.
func (v view) reference(name deps.Source) deps.Reference {
	found, _ := referenceOf(v.id, name)
	return found
}

// truth is the view of the API server.
func (c *cluster) truth(w *workload) view {
	return view{
		id: w.spec.id, shape: shapes[w.spec.id.shape], partition: w.spec.partition,
		rules: rulesFor(c.policies, w.labels),
		labels: func(name deps.Source) (map[string]string, bool) {
			if s := c.sources[name]; s != nil {
				return s.labels, true
			}
			return nil, false
		},
		versions: func(name deps.Source) (int, bool) {
			return len(c.history[name]) - 1, c.sources[name] != nil
		},
	}
}

// view is that of a manager.
func (m *manager) view(w *snapshot) view {
	return view{
		id: w.id, shape: shapes[w.id.shape], partition: w.partition,
		rules: rulesFor(m.policies, w.labels),
		labels: func(name deps.Source) (map[string]string, bool) {
			if s := m.sources[name]; s != nil {
				return s.labels, true
			}
			return nil, false
		},
		versions: func(name deps.Source) (int, bool) {
			record, known := m.ledger.records[name]
			return record.version, known
		},
	}
}

// old is something that a running container has read and that has changed since.
type old struct {
	p *pod
	k *container
	r reading
	// change is the last change of what counts.
	change int
	// keys are those that count, nil for all: those that the present template reads, whatever its Pods read.
	keys []string
	// reference is what the present template reads of the source.
	reference deps.Reference
}

// readings are all that running containers have read in the scope of a view, of sources that exist.
func (c *cluster) readings(w *workload, v view) []old {
	var all []old
	for _, p := range w.live() {
		for _, k := range p.containers {
			if !k.running && !k.ended {
				continue
			}
			for _, r := range k.reads {
				labels, exists := v.labels(r.use.source)
				version, known := v.versions(r.use.source)
				if len(v.shape.usesOf(r.use.source)) == 0 {
					continue // A Pod of an older template reads it, the workload no longer does.
				}
				if !exists || !known || !v.rules.admits(labels) {
					continue
				}
				o := old{p: p, k: k, r: r, reference: v.reference(r.use.source)}
				if v.rules.byKey(labels) {
					o.keys = v.shape.mergedKeys(r.use.source)
				}
				o.change = c.relevant(r.use.source, o.keys, version)
				all = append(all, o)
			}
		}
	}
	return all
}

// behind tells whether the source has changed since the container read it.
func (o old) behind() bool { return o.r.version < o.change }

// lacking tells whether what the container carries differs from what it should carry.
func (c *cluster) lacking(o old) bool {
	keys := o.keys
	if read := o.r.use.keys(); keys != nil && read != nil {
		keys = slices.DeleteFunc(read, func(key string) bool { return !slices.Contains(keys, key) })
	}
	return o.behind() && !maps.Equal(part(o.r.data, keys), part(c.history[o.r.use.source][o.change].data, keys))
}

// bound is the latest time as of which the core may take the container to have read its source.
func (o old) bound() time.Time {
	started := o.k.started.Truncate(time.Second)
	if o.r.use.environment() || o.k.restarts == 0 {
		return started
	}
	bound := started.Add(-filesTrail)
	if taken := o.p.startedAt.Truncate(time.Second); taken.After(bound) {
		return taken
	}
	return bound
}

// excuse names the documented limit by which the core may take a container to carry what it does not, empty for none. The
// partition is that which the core saw.
func (c *cluster) excuse(o old, partition int32, record remembered) string {
	change := c.history[o.r.use.source][o.change]
	date := record.ChangedAt
	if o.keys != nil {
		date, _ = record.Consumed(o.reference)
	}
	w := o.p.w
	stamp, err := time.Parse(time.RFC3339Nano, w.spec.id.stamp)
	switch {
	case partition > int32(o.p.ordinal):
		return partitioned
	case o.r.version < 0 && !change.at.After(o.r.at):
		return cameBack
	case o.r.version < 0 && record.backFrom < o.change && o.change <= record.backTo:
		return cameBack // as it was on record, which knows nothing of what was there in between
	case record.doubt != "" && date.Before(change.at):
		return record.doubt
	case record.backFrom < o.r.version && o.r.version < record.backTo:
		return changedBack
	case !o.r.use.environment() && !change.at.After(o.k.started) && o.k.restarts == 0:
		return firstRun
	case err == nil && o.p.revision.id == w.spec.id && stamp.After(o.p.revision.createdAt) && !date.After(stamp):
		return stampAhead
	default:
		return ""
	}
}
