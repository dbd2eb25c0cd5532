package ledger

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/deps"
	"github.com/kick-dev/kick/internal/core/observation"
)

// A full shard: what one write encodes, to the bytes that go out.
func BenchmarkEncodeAFullShard(b *testing.B) {
	at := time.Date(2026, 8, 6, 12, 0, 0, 123456000, time.UTC)
	records := map[deps.Source]observation.Record{}
	for i := range maxRecords {
		records[deps.Source{Kind: v1alpha1.Secret, Name: fmt.Sprintf("secret-%d", i)}] = observation.Record{
			ResourceVersion: "1234567", ChangedAt: at, LastWrite: at, Fingerprint: make([]byte, 32), KeyID: "0123456789abcdef", Encoding: 2,
			Keys: observation.Keys{{Name: "value", Digest: make([]byte, 8), ChangedAt: at}},
		}
	}
	for b.Loop() {
		encoded, err := json.Marshal(encodeAll(records))
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(encoded)))
	}
}
