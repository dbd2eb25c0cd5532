// Package fingerprint reduces the content of a source to a keyed digest: φ(s), §3 of the model. The digest is
// keyed because a plain hash of a short value can be guessed; it still belongs in the ledger alone.
package fingerprint

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"maps"
	"slices"

	"github.com/kick-dev/kick/api/v1alpha1"
)

// Encoding is the version of the byte encoding under the digest. It must be raised whenever the encoding changes:
// records of another version are taken anew, so that an upgrade restarts nothing.
const Encoding int32 = 2

// KeySize is the length of a Key's secret in bytes.
const KeySize = 32

// Key is the secret under which digests are made, and its name. Digests of different keys cannot be compared.
type Key struct {
	ID     string
	Secret []byte
}

// keyIDSize is the length of a key's name in bytes.
const keyIDSize = 8

// NewKey names a secret of KeySize bytes. The name is drawn from the secret, so that two keys never share one, however
// they came to be.
func NewKey(secret []byte) Key {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("key id"))
	return Key{ID: hex.EncodeToString(mac.Sum(nil)[:keyIDSize]), Secret: secret}
}

// Content is what counts of a source. Labels, annotations and other metadata are not content.
type Content struct {
	Kind      v1alpha1.SourceKind
	Type      string
	Immutable bool
	// Data holds a Secret's data (where the API server has merged stringData) or a ConfigMap's text.
	Data map[string][]byte
	// BinaryData holds a ConfigMap's binaryData.
	BinaryData map[string][]byte
}

// Tags of the two maps in the encoding. A key that moves from one to the other is a change.
const (
	tagData       byte = 1
	tagBinaryData byte = 2
)

// Digest returns the digest of the content. Equal content gives equal digests under one key; every field is
// length-prefixed, so that different content never has the same encoding.
func (k Key) Digest(content Content) []byte {
	mac := hmac.New(sha256.New, k.Secret)
	writeField(mac, []byte(content.Kind))
	writeField(mac, []byte(content.Type))
	immutable := byte(0)
	if content.Immutable {
		immutable = 1
	}
	writeField(mac, []byte{immutable})
	writeEntries(mac, tagData, content.Data)
	writeEntries(mac, tagBinaryData, content.BinaryData)
	return mac.Sum(nil)
}

// MaxKeys is the number of keys up to which a source has digests of its keys.
const MaxKeys = 256

// keyDigestSize is the length of the digest of a key's value: enough to tell values apart, and little to store.
const keyDigestSize = 8

// KeyDigests returns a digest of the value of each key, nil if there are more than MaxKeys.
func (k Key) KeyDigests(content Content) map[string][]byte {
	if len(content.Data)+len(content.BinaryData) > MaxKeys {
		return nil
	}
	digests := map[string][]byte{}
	mac, sum := hmac.New(sha256.New, k.Secret), make([]byte, 0, sha256.Size)
	for _, part := range []struct {
		tag     byte
		entries map[string][]byte
	}{{tagData, content.Data}, {tagBinaryData, content.BinaryData}} {
		for key, value := range part.entries {
			mac.Reset()
			writeField(mac, []byte{part.tag})
			writeField(mac, []byte(key))
			writeField(mac, value)
			digests[key] = bytes.Clone(mac.Sum(sum[:0])[:keyDigestSize]) // The rest would be kept as long as the digest.
		}
	}
	return digests
}

func writeEntries(mac hash.Hash, tag byte, entries map[string][]byte) {
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		writeField(mac, []byte{tag})
		writeField(mac, []byte(key))
		writeField(mac, entries[key])
	}
}

func writeField(mac hash.Hash, field []byte) {
	var length [8]byte
	binary.BigEndian.PutUint64(length[:], uint64(len(field)))
	mac.Write(length[:])
	mac.Write(field)
}
