package ledger

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/source"
	"github.com/kick-dev/kick/internal/core/observation"
)

// Snapshot is the content of the ledger at one time, for those who only read. It holds no digests, so that what is shown of
// it can give none away: a record of it answers when something changed and which keys exist, and nothing about values.
type Snapshot struct {
	records map[source.Key]observation.Record
	ledgers int
	pending int
}

// Read takes a snapshot of what is on record of the sources of a namespace, the empty one for all. The ledgers are those in
// KICK's own namespace. It needs neither the key of the fingerprints nor any right but to list ledgers.
func Read(ctx context.Context, reader client.Reader, kickNamespace, sourceNamespace string) (*Snapshot, error) {
	snapshot := &Snapshot{records: map[source.Key]observation.Record{}}
	page := &v1alpha1.KickLedgerList{}
	for {
		err := reader.List(ctx, page, client.InNamespace(kickNamespace), client.Limit(pageSize), client.Continue(page.Continue))
		if err != nil {
			return nil, fmt.Errorf("list the ledgers of namespace %s: %w", kickNamespace, err)
		}
		for i := range page.Items {
			if sourceNamespace == "" || page.Items[i].SourceNamespace == sourceNamespace {
				snapshot.add(&page.Items[i])
			}
		}
		if page.Continue == "" {
			return snapshot, nil
		}
	}
}

func (s *Snapshot) add(object *v1alpha1.KickLedger) {
	s.ledgers++
	for i := range object.Records {
		name, record, readable := decode(&object.Records[i])
		if !readable {
			continue
		}
		if record.Pending {
			s.pending++
		}
		s.records[source.Key{Namespace: object.SourceNamespace, Source: name}] = withoutDigests(record)
	}
}

// present stands for the digest of a key that exists.
var present = []byte{}

func withoutDigests(record observation.Record) observation.Record {
	record.Fingerprint = nil
	keys := record.Keys
	if keys == nil {
		return record
	}
	record.Keys = make(observation.Keys, len(keys))
	for i, key := range keys {
		if key.Digest != nil {
			key.Digest = present
		}
		record.Keys[i] = key
	}
	return record
}

// Get returns the record of a source, nil if there is none.
func (s *Snapshot) Get(key source.Key) *observation.Record {
	record, known := s.records[key]
	if !known {
		return nil
	}
	return &record
}

// Ledgers is the number of ledger objects.
func (s *Snapshot) Ledgers() int { return s.ledgers }

// Size is the number of sources on record.
func (s *Snapshot) Size() int { return len(s.records) }

// Pending is the number of sources whose last change may not have reached every consumer yet.
func (s *Snapshot) Pending() int { return s.pending }
