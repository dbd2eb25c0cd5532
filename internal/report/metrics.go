package report

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/observation"
)

// Outcomes of a restart, the values of the label outcome.
const (
	// OutcomeStamped: the stamp was written.
	OutcomeStamped = "stamped"
	// OutcomeSucceeded: the rollout completed and every Pod carries the change.
	OutcomeSucceeded = "succeeded"
	// OutcomeFailed: the rollout did not complete.
	OutcomeFailed = "failed"
	// OutcomeDenied: the API server refused the stamp.
	OutcomeDenied = "denied"
)

// Metrics counts what KICK does. No label ever holds the name of a source, a workload or a namespace.
type Metrics struct {
	observations *prometheus.CounterVec
	sourceReads  prometheus.Counter
	ledgerWrites prometheus.Counter
	restarts     *prometheus.CounterVec
}

// NewMetrics makes the metrics and registers them.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		observations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kick_observations_total",
			Help: "Sources read and compared with the ledger, by result.",
		}, []string{"result"}),
		sourceReads: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kick_source_reads_total",
			Help: "Reads of the content of Secrets and ConfigMaps.",
		}),
		ledgerWrites: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kick_ledger_writes_total",
			Help: "Writes of KickLedger objects.",
		}),
		restarts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kick_restarts_total",
			Help: "Restarts by workload kind and outcome; every restart counts as stamped and again with its end.",
		}, []string{"kind", "outcome"}),
	}
	for _, collector := range []prometheus.Collector{m.observations, m.sourceReads, m.ledgerWrites, m.restarts} {
		if err := registry.Register(collector); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Observed counts a comparison with the ledger.
func (m *Metrics) Observed(result observation.Result) {
	m.observations.WithLabelValues(string(result)).Inc()
}

// SourceRead counts a read of content.
func (m *Metrics) SourceRead() { m.sourceReads.Inc() }

// LedgerWritten counts a write of a ledger object.
func (m *Metrics) LedgerWritten() { m.ledgerWrites.Inc() }

// Restarted counts an outcome of a restart.
func (m *Metrics) Restarted(kind v1alpha1.WorkloadKind, outcome string) {
	m.restarts.WithLabelValues(string(kind), outcome).Inc()
}
