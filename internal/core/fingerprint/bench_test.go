package fingerprint_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"testing"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/fingerprint"
)

// sizes of sources: a password, a file of settings, the biggest Secret.
var sizes = []int{16, 4 << 10, 1 << 20}

func BenchmarkDigest(b *testing.B) {
	key := fingerprint.Key{ID: "k", Secret: make([]byte, fingerprint.KeySize)}
	for _, size := range sizes {
		content := fingerprint.Content{Kind: v1alpha1.Secret, Data: map[string][]byte{"value": bytes.Repeat([]byte{'x'}, size)}}
		b.Run(fmt.Sprintf("%d bytes", size), func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				key.Digest(content)
			}
		})
	}
}

// The bound: what the standard library needs for the bytes alone.
func BenchmarkBareHMAC(b *testing.B) {
	for _, size := range sizes {
		value := bytes.Repeat([]byte{'x'}, size)
		b.Run(fmt.Sprintf("%d bytes", size), func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				mac := hmac.New(sha256.New, make([]byte, fingerprint.KeySize))
				mac.Write(value)
				mac.Sum(nil)
			}
		})
	}
}
