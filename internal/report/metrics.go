package report

import (
	"time"

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
	ledgerErrors prometheus.Counter
	restarts     *prometheus.CounterVec

	notifications        *prometheus.CounterVec
	notificationsPending prometheus.Gauge

	changeToStamp, stampToComplete prometheus.Histogram
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
		ledgerErrors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kick_ledger_write_errors_total",
			Help: "Writes of KickLedger objects that failed, other than by losing a race; they are tried again.",
		}),
		restarts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kick_restarts_total",
			Help: "Restarts by workload kind and outcome; every restart counts as stamped and again with its end.",
		}, []string{"kind", "outcome"}),
		notifications: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kick_notifications_total",
			Help: "Messages of KickNotifications by format and outcome: delivered, failed (and sent again), dropped (given up).",
		}, []string{"format", "outcome"}),
		notificationsPending: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "kick_notifications_pending",
			Help: "Messages of KickNotifications that are not delivered yet, as the leader knows them.",
		}),
		changeToStamp: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "kick_change_to_stamp_seconds",
			Help:    "Time from the latest change a restart is about to its stamp, with all that held it back.",
			Buckets: []float64{.01, .05, .1, .5, 1, 5, 10, 30, 60, 300, 900, 3600, 6 * 3600, 24 * 3600, 7 * 24 * 3600},
		}),
		stampToComplete: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "kick_stamp_to_complete_seconds",
			Help:    "Time from the stamp to the end of the rollout that it began.",
			Buckets: []float64{1, 5, 10, 30, 60, 120, 300, 600, 900, 1800, 3600, 6 * 3600},
		}),
	}
	for _, collector := range []prometheus.Collector{
		m.observations, m.sourceReads, m.ledgerWrites, m.ledgerErrors, m.restarts, m.changeToStamp, m.stampToComplete,
		m.notifications, m.notificationsPending,
	} {
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

// Stamped takes the time from a change to the stamp that answers it.
func (m *Metrics) Stamped(sinceChange time.Duration) { m.changeToStamp.Observe(sinceChange.Seconds()) }

// Completed takes the time of a rollout that KICK began.
func (m *Metrics) Completed(sinceStamp time.Duration) {
	m.stampToComplete.Observe(sinceStamp.Seconds())
}

// SourceRead counts a read of content.
func (m *Metrics) SourceRead() { m.sourceReads.Inc() }

// LedgerWritten counts a write of a ledger object.
func (m *Metrics) LedgerWritten() { m.ledgerWrites.Inc() }

// Outcomes of a message, the values of the label outcome.
const (
	// MessageDelivered: the receiver took it.
	MessageDelivered = "delivered"
	// MessageFailed: the receiver did not, and it is sent again.
	MessageFailed = "failed"
	// MessageDropped: it is too old, or the receiver finds fault with it, and it is not sent again.
	MessageDropped = "dropped"
)

// Notified counts the end of an attempt to deliver a message.
func (m *Metrics) Notified(format v1alpha1.NotificationFormat, outcome string) {
	m.notifications.WithLabelValues(string(format), outcome).Inc()
}

// NotificationsPending sets how many messages are not delivered yet.
func (m *Metrics) NotificationsPending(count int) { m.notificationsPending.Set(float64(count)) }

// LedgerWriteFailed counts a failed write of a ledger object.
func (m *Metrics) LedgerWriteFailed() { m.ledgerErrors.Inc() }

// Restarted counts an outcome of a restart.
func (m *Metrics) Restarted(kind v1alpha1.WorkloadKind, outcome string) {
	m.restarts.WithLabelValues(string(kind), outcome).Inc()
}
