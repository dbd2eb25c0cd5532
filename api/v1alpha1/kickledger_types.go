package v1alpha1

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SourceRecord is what KICK remembers of one source: enough to tell, at any later sight of it, whether its content
// changed and when. In a ledger it is a string that holds the JSON of these fields: the API server checks and tracks
// every field of every record at each write of a ledger, which would cost it most of the write.
//
// +kubebuilder:validation:Type=string
type SourceRecord struct {
	// kind of the source.
	//
	// +required
	// +kubebuilder:validation:Enum=Secret;ConfigMap
	Kind SourceKind `json:"kind"`

	// name of the source.
	//
	// +required
	Name string `json:"name"`

	// resourceVersion last seen. A source still at this version is not read again.
	//
	// +required
	ResourceVersion string `json:"resourceVersion"`

	// changedAt is when the content last changed, with microseconds.
	//
	// +required
	ChangedAt metav1.MicroTime `json:"changedAt"`

	// lastWrite is the last write the API server had dated when the record was made, in whole seconds.
	//
	// +required
	LastWrite metav1.Time `json:"lastWrite"`

	// fingerprint is the keyed digest of the content. It is of no use without the key, which lives in a Secret.
	//
	// +required
	Fingerprint []byte `json:"fingerprint"`

	// keyID names the key of the fingerprint. A record under another key is taken anew, without a restart.
	//
	// +required
	KeyID string `json:"keyID"`

	// encoding is the version of the encoding under the fingerprint; treated like keyID.
	//
	// +required
	Encoding int32 `json:"encoding"`

	// keys holds the digest and the last change of each key of the content, of at most 256 keys.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	Keys []KeyRecord `json:"keys,omitempty"`

	// keysOmitted is true for a source of more keys: then any change counts as one of every key.
	//
	// +optional
	KeysOmitted bool `json:"keysOmitted,omitempty"`

	// pending is true until every consumer of the change has its request. Pending changes are delivered again
	// after a crash.
	//
	// +optional
	Pending bool `json:"pending,omitempty"`
}

// recordFields are the fields of a SourceRecord without its methods.
type recordFields SourceRecord

// MarshalJSON implements json.Marshaler.
func (r SourceRecord) MarshalJSON() ([]byte, error) {
	text, err := json.Marshal(recordFields(r))
	if err != nil {
		return nil, err
	}
	return json.Marshal(string(text))
}

// UnmarshalJSON implements json.Unmarshaler. What cannot be read, because somebody edited it, is the zero record, which
// names no source: an error would keep the other records from being read.
func (r *SourceRecord) UnmarshalJSON(data []byte) error {
	var (
		text   string
		fields recordFields
	)
	if json.Unmarshal(data, &text) != nil || json.Unmarshal([]byte(text), &fields) != nil {
		fields = recordFields{}
	}
	*r = SourceRecord(fields)
	return nil
}

// KeyRecord is what KICK remembers of one key of a source.
type KeyRecord struct {
	// name of the key.
	//
	// +required
	Name string `json:"name"`

	// digest of the value, keyed like the fingerprint and cut to 8 bytes. Absent for a key that was removed.
	//
	// +optional
	Digest []byte `json:"digest,omitempty"`

	// changedAt is when the value last changed, appeared or went.
	//
	// +required
	ChangedAt metav1.MicroTime `json:"changedAt"`
}

// KickLedger holds the records of the sources of one namespace. Ledgers live in KICK's own namespace and are
// not meant to be edited: removing one makes KICK take its sources anew, without restarting anything that is fresh.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=kick
// +kubebuilder:printcolumn:name="Source Namespace",type=string,JSONPath=`.sourceNamespace`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type KickLedger struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// sourceNamespace is the namespace of the recorded sources.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	SourceNamespace string `json:"sourceNamespace"`

	// records, one per source.
	//
	// +optional
	// +listType=atomic
	Records []SourceRecord `json:"records,omitempty"`
}

// KickLedgerList is a list of KickLedgers.
//
// +kubebuilder:object:root=true
type KickLedgerList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []KickLedger `json:"items"`
}
