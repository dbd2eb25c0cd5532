package report

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kick-dev/kick/api/v1alpha1"
)

// Census is how many requests and policies there are, by state.
type Census struct {
	Requests map[v1alpha1.Phase]int
	// Blocked counts the requests that wait, by the reason that holds them back.
	Blocked map[string]int
	// Stalled counts the requests that have not ended and that a person has to help.
	Stalled int
	// OldestWaiting is how long the oldest request that has not ended has been open, zero for none.
	OldestWaiting time.Duration
	// Policies counts policies by the status of their condition Ready.
	Policies map[string]int
	// LedgerRecords is the number of sources on record, of the leader alone.
	LedgerRecords int
}

// phases are all that are reported, so that a series does not vanish when its last request moves on.
var phases = []v1alpha1.Phase{
	v1alpha1.PhasePending, v1alpha1.PhaseWaitingForGate, v1alpha1.PhaseWaitingForOwner,
	v1alpha1.PhaseWaitingForApplicationSync, v1alpha1.PhaseWaitingForRollout, v1alpha1.PhaseExecuting,
	v1alpha1.PhaseSucceeded, v1alpha1.PhaseNoLongerRequired, v1alpha1.PhaseFailed,
}

// censusCollector takes a census at each scrape.
type censusCollector struct {
	take                                                  func() (Census, error)
	requests, blocked, stalled, oldest, policies, records *prometheus.Desc
}

// RegisterCensus has a census taken whenever the metrics are read.
func RegisterCensus(registry prometheus.Registerer, take func() (Census, error)) error {
	describe := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return registry.Register(&censusCollector{
		take:     take,
		requests: describe("kick_requests", "KickRequests by phase; the same on every replica.", "phase"),
		blocked: describe("kick_gate_blocked", "KickRequests that wait, by the reason that holds them back; the same on every replica.",
			"reason"),
		stalled: describe("kick_requests_stalled",
			"KickRequests that have not ended and do not go on until a person acts; the same on every replica."),
		oldest: describe("kick_oldest_waiting_seconds",
			"Age of the oldest KickRequest that has not ended, 0 for none; the same on every replica."),
		policies: describe("kick_policies", "KickPolicies by the status of their condition Ready; the same on every replica.", "ready"),
		records:  describe("kick_ledger_records", "Secrets and ConfigMaps on record, as the leader knows them; 0 on the other replicas."),
	})
}

// Describe implements prometheus.Collector.
func (c *censusCollector) Describe(descriptions chan<- *prometheus.Desc) {
	for _, description := range []*prometheus.Desc{c.requests, c.blocked, c.stalled, c.oldest, c.policies, c.records} {
		descriptions <- description
	}
}

// Collect implements prometheus.Collector.
func (c *censusCollector) Collect(metrics chan<- prometheus.Metric) {
	census, err := c.take()
	if err != nil {
		metrics <- prometheus.NewInvalidMetric(c.requests, err)
		return
	}
	gauge := func(description *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(description, prometheus.GaugeValue, value, labels...)
	}
	for _, phase := range phases {
		gauge(c.requests, float64(census.Requests[phase]), string(phase))
	}
	for reason, count := range census.Blocked {
		gauge(c.blocked, float64(count), reason)
	}
	for status, count := range census.Policies {
		gauge(c.policies, float64(count), status)
	}
	gauge(c.stalled, float64(census.Stalled))
	gauge(c.oldest, census.OldestWaiting.Seconds())
	gauge(c.records, float64(census.LedgerRecords))
}
