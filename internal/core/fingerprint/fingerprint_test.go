package fingerprint_test

import (
	"bytes"
	"maps"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/fingerprint"
)

var key = fingerprint.Key{ID: "k", Secret: bytes.Repeat([]byte{7}, fingerprint.KeySize)}

type entries = map[string][]byte

func secretOf(data entries) fingerprint.Content {
	return fingerprint.Content{Kind: v1alpha1.Secret, Type: "Opaque", Data: data}
}

func TestDigestTellsDifferentContentApart(t *testing.T) {
	contents := map[string]fingerprint.Content{
		"no data":                secretOf(nil),
		"an empty value":         secretOf(entries{"a": {}}),
		"a value":                secretOf(entries{"a": []byte("bc")}),
		"a shifted boundary":     secretOf(entries{"ab": []byte("c")}),
		"two keys":               secretOf(entries{"a": []byte("b"), "c": []byte("d")}),
		"the keys run together":  secretOf(entries{"a": []byte("bcd")}),
		"another type":           {Kind: v1alpha1.Secret, Type: "kubernetes.io/tls", Data: entries{"a": []byte("bc")}},
		"immutable":              {Kind: v1alpha1.Secret, Type: "Opaque", Immutable: true, Data: entries{"a": []byte("bc")}},
		"another kind":           {Kind: v1alpha1.ConfigMap, Data: entries{"a": []byte("bc")}},
		"moved to binaryData":    {Kind: v1alpha1.ConfigMap, BinaryData: entries{"a": []byte("bc")}},
		"one byte of binaryData": {Kind: v1alpha1.ConfigMap, BinaryData: entries{"a": []byte("bd")}},
	}
	seen := map[string]string{}
	for name, content := range contents {
		digest := string(key.Digest(content))
		if other, taken := seen[digest]; taken {
			t.Errorf("%q and %q have the same digest", name, other)
		}
		seen[digest] = name
	}
}

func TestAnAbsentMapEqualsAnEmptyOne(t *testing.T) {
	if !bytes.Equal(key.Digest(secretOf(nil)), key.Digest(secretOf(entries{}))) {
		t.Error("nil and empty data differ")
	}
}

func TestAnotherKeyGivesAnotherDigest(t *testing.T) {
	other := fingerprint.Key{ID: "o", Secret: bytes.Repeat([]byte{8}, fingerprint.KeySize)}
	if content := secretOf(entries{"pin": []byte("1234")}); bytes.Equal(key.Digest(content), other.Digest(content)) {
		t.Error("the digest does not depend on the key")
	}
}

// Equal digests mean equal content, and equal content means equal digests: §3 of the model.
func TestDigestsAreEqualExactlyWhenContentIs(t *testing.T) {
	values := rapid.MapOfN(rapid.StringMatching(`[ab]{0,2}`), rapid.SliceOfN(rapid.SampledFrom([]byte("ab")), 0, 2), 0, 3)
	rapid.Check(t, func(t *rapid.T) {
		a, b := values.Draw(t, "a"), values.Draw(t, "b")
		equal := maps.EqualFunc(a, b, bytes.Equal)
		if got := bytes.Equal(key.Digest(secretOf(a)), key.Digest(secretOf(b))); got != equal {
			t.Fatalf("digests equal: %v, contents equal: %v", got, equal)
		}
	})
}

func TestKeyDigestsTellWhichKeyChanged(t *testing.T) {
	before := fingerprint.Content{Data: entries{"a": []byte("1"), "b": []byte("1")}, BinaryData: entries{"c": []byte("1")}}
	after := fingerprint.Content{Data: entries{"a": []byte("1"), "b": []byte("2")}, BinaryData: entries{"c": []byte("1"), "d": nil}}
	old, changed := key.KeyDigests(before), key.KeyDigests(after)
	if len(changed) != 4 || !bytes.Equal(old["a"], changed["a"]) || bytes.Equal(old["b"], changed["b"]) || !bytes.Equal(old["c"], changed["c"]) {
		t.Errorf("digests %x, then %x", old, changed)
	}
	moved := key.KeyDigests(fingerprint.Content{Data: entries{"c": []byte("1")}})
	if bytes.Equal(moved["c"], old["c"]) {
		t.Error("a key that moves from binaryData to data keeps its digest")
	}
	if bytes.Equal(old["a"], old["b"]) {
		t.Error("two keys of one value have one digest")
	}
}

func TestASourceOfVeryManyKeysHasNoKeyDigests(t *testing.T) {
	many := entries{}
	for i := range fingerprint.MaxKeys {
		many[strconv.Itoa(i)] = nil
	}
	if got := key.KeyDigests(secretOf(many)); len(got) != fingerprint.MaxKeys {
		t.Errorf("%d digests", len(got))
	}
	many["one more"] = nil
	if got := key.KeyDigests(secretOf(many)); got != nil {
		t.Errorf("%d digests", len(got))
	}
}
