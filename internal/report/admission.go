package report

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// AdmissionVerdict is an answer of a webhook, the value of the label verdict.
type AdmissionVerdict string

// The verdicts.
const (
	// AdmissionAllowed: the write may pass.
	AdmissionAllowed AdmissionVerdict = "allowed"
	// AdmissionWarned: it may pass, and the writer is told something.
	AdmissionWarned AdmissionVerdict = "warned"
	// AdmissionDenied: it is refused, for what it says.
	AdmissionDenied AdmissionVerdict = "denied"
	// AdmissionFailed: it is refused because it could not be judged.
	AdmissionFailed AdmissionVerdict = "failed"
)

// Admission counts the answers of the webhooks.
type Admission struct {
	answers *prometheus.CounterVec
	seconds *prometheus.HistogramVec
}

// NewAdmission makes the metrics of the webhooks and registers them.
func NewAdmission(registry prometheus.Registerer) (*Admission, error) {
	a := &Admission{
		answers: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kick_admission_total",
			Help: "Writes that the webhooks were asked about, by webhook and verdict.",
		}, []string{"webhook", "verdict"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "kick_admission_seconds",
			Help:    "Time that a webhook took to answer.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2, 5},
		}, []string{"webhook"}),
	}
	for _, collector := range []prometheus.Collector{a.answers, a.seconds} {
		if err := registry.Register(collector); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// Answered counts one answer of a webhook and the time it took.
func (a *Admission) Answered(webhook string, verdict AdmissionVerdict, took time.Duration) {
	a.answers.WithLabelValues(webhook, string(verdict)).Inc()
	a.seconds.WithLabelValues(webhook).Observe(took.Seconds())
}
