// Command metrics writes docs/metrics.md: every metric of KICK's own, as it is registered.
package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kick-dev/kick/internal/report"
)

func main() {
	if err := write(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "metrics:", err)
		os.Exit(1)
	}
}

const head = `<!-- Generated from the registered metrics by "make generate"; DO NOT EDIT. -->
# Metrics

What the manager serves on its metrics port beside what every Go program and controller-runtime do. No label holds the name
of a Secret, a ConfigMap or a workload, and nothing is derived from the content of a source. How to let Prometheus read them,
and the alerts and the dashboard of the chart: [operations.md](operations.md#metrics-alerts-dashboard).

Requests are counted by every replica from its cache, work by the replica that does it: sum counters, and take the maximum
of gauges that are the same on every replica.

| Metric | Type | Labels | Meaning |
|---|---|---|---|
`

// write writes the page.
func write(out io.Writer) error {
	registered, err := metrics()
	if err != nil {
		return err
	}
	var page strings.Builder
	page.WriteString(head)
	for _, m := range registered {
		var labels []string
		for _, label := range m.labels {
			labels = append(labels, "`"+label+"`")
		}
		fmt.Fprintf(&page, "| `%s` | %s | %s | %s |\n", m.name, m.kind, strings.Join(labels, ", "), m.help)
	}
	_, err = io.WriteString(out, page.String())
	return err
}

// metrics registers everything that KICK registers and returns it by name.
func metrics() ([]metric, error) {
	registry := &catalogue{}
	if _, err := report.NewMetrics(registry); err != nil {
		return nil, err
	}
	if _, err := report.NewAdmission(registry); err != nil {
		return nil, err
	}
	census := func() (report.Census, error) {
		return report.Census{Blocked: map[string]int{"": 0}, Policies: map[string]int{"": 0}}, nil
	}
	expiry := func() (time.Time, error) { return time.Unix(0, 0), nil }
	for _, register := range []func(prometheus.Registerer) error{
		func(r prometheus.Registerer) error { return report.RegisterCensus(r, census) },
		func(r prometheus.Registerer) error { return report.RegisterBuild(r, "") },
		func(r prometheus.Registerer) error { return report.RegisterLeader(r, nil) },
		func(r prometheus.Registerer) error { return report.RegisterCertificate(r, expiry) },
	} {
		if err := register(registry); err != nil {
			return nil, err
		}
	}
	return registry.sorted()
}
