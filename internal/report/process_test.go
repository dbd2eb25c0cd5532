package report

import (
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func TestAReplicaLeadsOnceItIsElected(t *testing.T) {
	registry, elected := prometheus.NewPedanticRegistry(), make(chan struct{})
	if err := RegisterLeader(registry, elected); err != nil {
		t.Fatal(err)
	}
	expect(t, registry, "kick_leader", 0)
	close(elected)
	expect(t, registry, "kick_leader", 1)
}

func TestACertificateThatCannotBeReadHasNoExpiry(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	expiry, err := time.Unix(1_800_000_000, 0), error(nil)
	if err := RegisterCertificate(registry, func() (time.Time, error) { return expiry, err }); err != nil {
		t.Fatal(err)
	}
	expect(t, registry, "kick_webhook_certificate_expiry_timestamp_seconds", 1.8e9)
	err = errors.New("no file")
	if families, err := registry.Gather(); err != nil || len(families) != 0 {
		t.Errorf("%v, %v", families, err)
	}
}

// expect reads the one series of a gauge.
func expect(t *testing.T, registry prometheus.Gatherer, name string, want float64) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil || len(families) != 1 {
		t.Fatalf("%v, %v", families, err)
	}
	if got := families[0].GetMetric()[0].GetGauge().GetValue(); families[0].GetName() != name || got != want {
		t.Errorf("%s is %g, want %s at %g", families[0].GetName(), got, name, want)
	}
}
