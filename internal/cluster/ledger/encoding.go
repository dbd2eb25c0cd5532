package ledger

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/intern"
	"github.com/kick-dev/kick/internal/core/deps"
	"github.com/kick-dev/kick/internal/core/observation"
)

func encode(source deps.Source, record observation.Record) v1alpha1.SourceRecord {
	return v1alpha1.SourceRecord{
		Kind:            source.Kind,
		Name:            source.Name,
		ResourceVersion: record.ResourceVersion,
		ChangedAt:       metav1.NewMicroTime(record.ChangedAt),
		LastWrite:       metav1.NewTime(record.LastWrite),
		Fingerprint:     record.Fingerprint,
		KeyID:           record.KeyID,
		Encoding:        record.Encoding,
		Keys:            encodeKeys(record.Keys),
		KeysOmitted:     record.Keys == nil,
		Pending:         record.Pending,
	}
}

// decode reports false for a record that cannot be read, which names no source that there could be.
func decode(record *v1alpha1.SourceRecord) (source deps.Source, decoded observation.Record, readable bool) {
	source = deps.Source{Kind: record.Kind, Name: record.Name}
	if source.Name == "" || source.Kind != v1alpha1.Secret && source.Kind != v1alpha1.ConfigMap {
		return source, observation.Record{}, false
	}
	return source, observation.Record{
		ResourceVersion: record.ResourceVersion,
		ChangedAt:       record.ChangedAt.Time,
		LastWrite:       record.LastWrite.Time,
		Fingerprint:     record.Fingerprint,
		KeyID:           intern.String(record.KeyID),
		Encoding:        record.Encoding,
		Keys:            decodeKeys(record),
		Pending:         record.Pending,
	}, true
}

func encodeKeys(keys observation.Keys) []v1alpha1.KeyRecord {
	var list []v1alpha1.KeyRecord
	for _, key := range keys {
		list = append(list, v1alpha1.KeyRecord{Name: key.Name, Digest: key.Digest, ChangedAt: metav1.NewMicroTime(key.ChangedAt)})
	}
	return list
}

func decodeKeys(record *v1alpha1.SourceRecord) observation.Keys {
	if record.KeysOmitted {
		return nil
	}
	keys := make([]observation.KeyRecord, len(record.Keys))
	for i, key := range record.Keys {
		keys[i] = observation.KeyRecord{Name: intern.String(key.Name), Digest: key.Digest, ChangedAt: key.ChangedAt.Time}
	}
	return observation.KeysOf(keys...)
}

// weightOf is about how many bytes a record takes in a ledger object.
func weightOf(source deps.Source, record observation.Record) int {
	const ofRecord, ofKey = 350, 100
	weight := ofRecord + len(source.Name)
	for _, key := range record.Keys {
		weight += ofKey + len(key.Name)
	}
	return weight
}

// encodeAll lists records in a stable order, so that equal content is stored as equal bytes.
func encodeAll(records map[deps.Source]observation.Record) []v1alpha1.SourceRecord {
	list := make([]v1alpha1.SourceRecord, 0, len(records))
	for source, record := range records {
		list = append(list, encode(source, record))
	}
	slices.SortFunc(list, func(a, b v1alpha1.SourceRecord) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return list
}
