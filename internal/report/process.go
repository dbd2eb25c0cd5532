package report

import (
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// RegisterBuild has the metrics say which version of KICK runs.
func RegisterBuild(registry prometheus.Registerer, version string) error {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "kick_build_info",
		Help:        "Always 1; the labels are the version of KICK and that of the Go it was built with.",
		ConstLabels: prometheus.Labels{"version": version, "go_version": runtime.Version()},
	})
	info.Set(1)
	return registry.Register(info)
}

// RegisterLeader has the metrics say whether this replica leads, which it does once elected is closed.
func RegisterLeader(registry prometheus.Registerer, elected <-chan struct{}) error {
	return registry.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "kick_leader",
		Help: "1 on the replica that restarts workloads, 0 on the others.",
	}, func() float64 {
		select {
		case <-elected:
			return 1
		default:
			return 0
		}
	}))
}

// certificateCollector reads at each scrape until when the certificate is valid.
type certificateCollector struct {
	expiry      func() (time.Time, error)
	description *prometheus.Desc
}

// RegisterCertificate has the metrics say until when the webhooks' certificate is valid. While it cannot be read there is no
// such metric.
func RegisterCertificate(registry prometheus.Registerer, expiry func() (time.Time, error)) error {
	return registry.Register(&certificateCollector{expiry: expiry, description: prometheus.NewDesc(
		"kick_webhook_certificate_expiry_timestamp_seconds",
		"When the certificate of the webhooks expires, in seconds since 1970; absent while there is none.", nil, nil,
	)})
}

// Describe implements prometheus.Collector.
func (c *certificateCollector) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- c.description
}

// Collect implements prometheus.Collector.
func (c *certificateCollector) Collect(metrics chan<- prometheus.Metric) {
	expiry, err := c.expiry()
	if err != nil {
		return // Readiness says why.
	}
	metrics <- prometheus.MustNewConstMetric(c.description, prometheus.GaugeValue, float64(expiry.Unix()))
}
