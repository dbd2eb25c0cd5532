package ledger

import (
	"context"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/deps"
	"github.com/kick-dev/kick/internal/core/observation"
)

// A shard takes further records while it is below these bounds: well below what etcd admits (1.5 MiB), with room for its
// records to grow by many keys.
const (
	maxRecords = 1000
	maxWeight  = 512 << 10
)

// shard is one ledger object.
type shard struct {
	name            string
	resourceVersion string
	records         map[deps.Source]observation.Record
	// noted counts the delivered changes noted in memory, stored how many of them are durable.
	noted, stored int
}

// content is what a shard is to hold after a write.
type content struct {
	records map[deps.Source]observation.Record
	noted   int
}

// roomy tells whether records leave room for another one.
func roomy(records map[deps.Source]observation.Record) bool {
	if len(records) >= maxRecords {
		return false
	}
	weight := 0
	for source, record := range records {
		weight += weightOf(source, record)
	}
	return weight < maxWeight
}

func newShard(name string) *shard {
	return &shard{name: name, records: map[deps.Source]observation.Record{}}
}

// dirty tells whether delivered changes are noted in memory alone.
func (s *shard) dirty() bool { return s.noted != s.stored }

// adopt takes over the state of an object read from the API server. Records that somebody has made unreadable are left
// out: their sources are taken anew, as those without a record.
func (s *shard) adopt(ctx context.Context, object *v1alpha1.KickLedger) {
	s.resourceVersion = object.ResourceVersion
	s.records = make(map[deps.Source]observation.Record, len(object.Records))
	s.stored = s.noted
	unreadable := 0
	for i := range object.Records {
		source, record, readable := decode(&object.Records[i])
		if !readable {
			unreadable++
			continue
		}
		s.records[source] = record
	}
	if unreadable > 0 {
		log.FromContext(ctx).Info("records of a ledger cannot be read; their sources are taken anew",
			"ledger", object.Name, "records", unreadable)
	}
}

// snapshot copies the present content for a write.
func (s *shard) snapshot() *content {
	return &content{records: maps.Clone(s.records), noted: s.noted}
}

// settle takes over what a write has made durable. What was noted during the write stays.
func (s *shard) settle(resourceVersion string, written *content, changes map[deps.Source]change) {
	s.resourceVersion = resourceVersion
	s.stored = written.noted
	for source, change := range changes {
		if record, kept := written.records[source]; kept {
			s.records[source] = record
		} else if change.after == nil {
			delete(s.records, source)
		}
	}
}

// save writes a ledger object and returns its new version. A ledger that somebody deleted is written anew, since
// memory holds all of it.
func (s *Store) save(
	ctx context.Context, namespace string, shard *shard, records map[deps.Source]observation.Record,
) (string, error) {
	object := &v1alpha1.KickLedger{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       s.namespace,
			Name:            shard.name,
			ResourceVersion: shard.resourceVersion,
		},
		SourceNamespace: namespace,
		Records:         encodeAll(records),
	}
	if s.Written != nil {
		s.Written()
	}
	if len(records) == 0 && shard.resourceVersion != "" {
		precondition := client.Preconditions{ResourceVersion: &shard.resourceVersion}
		return "", client.IgnoreNotFound(s.writer.Delete(ctx, object, precondition))
	}
	if shard.resourceVersion != "" {
		err := s.writer.Update(ctx, object)
		if !apierrors.IsNotFound(err) {
			return object.ResourceVersion, err
		}
		object.ResourceVersion, object.UID = "", ""
	}
	err := s.writer.Create(ctx, object)
	return object.ResourceVersion, err
}
