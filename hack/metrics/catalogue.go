package main

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// metric is what is known of a metric without any series of it.
type metric struct {
	name, kind, help string
	labels           []string
}

// catalogue is a registry that only looks at what is registered.
type catalogue struct {
	metrics []metric
	fault   error
}

// Register implements prometheus.Registerer.
func (c *catalogue) Register(collector prometheus.Collector) error {
	descriptions := make(chan *prometheus.Desc, 32)
	collector.Describe(descriptions)
	close(descriptions)
	kinds := kindsOf(collector)
	for description := range descriptions {
		m, err := parse(description.String())
		if err != nil {
			return err
		}
		if m.kind = kinds[description.String()]; m.kind == "" {
			return fmt.Errorf("metric %s has no type that this program knows", m.name)
		}
		c.metrics = append(c.metrics, m)
	}
	return nil
}

// MustRegister implements prometheus.Registerer.
func (c *catalogue) MustRegister(collectors ...prometheus.Collector) {
	for _, collector := range collectors {
		c.fault = cmp.Or(c.fault, c.Register(collector))
	}
}

// Unregister implements prometheus.Registerer.
func (c *catalogue) Unregister(prometheus.Collector) bool { return false }

// sorted are all metrics by name.
func (c *catalogue) sorted() ([]metric, error) {
	slices.SortFunc(c.metrics, func(a, b metric) int { return cmp.Compare(a.name, b.name) })
	return c.metrics, c.fault
}

// kindsOf tells the type of each metric of a collector by its description. A vector has no series yet, its type is that
// of the vector.
func kindsOf(collector prometheus.Collector) map[string]string {
	kinds := map[string]string{}
	var vector string
	switch collector.(type) {
	case *prometheus.CounterVec:
		vector = "counter"
	case *prometheus.HistogramVec:
		vector = "histogram"
	case *prometheus.GaugeVec:
		vector = "gauge"
	}
	if vector != "" {
		descriptions := make(chan *prometheus.Desc, 1)
		collector.Describe(descriptions)
		kinds[(<-descriptions).String()] = vector
		return kinds
	}
	collected := make(chan prometheus.Metric, 256)
	collector.Collect(collected)
	close(collected)
	for m := range collected {
		var written dto.Metric
		if err := m.Write(&written); err != nil {
			continue // It has no kind then, which is an error.
		}
		kinds[m.Desc().String()] = kindOf(&written)
	}
	return kinds
}

func kindOf(written *dto.Metric) string {
	switch {
	case written.Counter != nil:
		return "counter"
	case written.Gauge != nil:
		return "gauge"
	case written.Histogram != nil:
		return "histogram"
	default:
		return ""
	}
}

// described is how a description writes itself, which is the only thing it tells.
var described = regexp.MustCompile(`^Desc\{fqName: ("(?:[^"\\]|\\.)*"), help: ("(?:[^"\\]|\\.)*"),` +
	`.* constLabels: \{(.*)\}, variableLabels: \{(.*)\}\}$`)

// constant is a constant label with its value.
var constant = regexp.MustCompile(`(\w+)="(?:[^"\\]|\\.)*"`)

func parse(description string) (metric, error) {
	parts := described.FindStringSubmatch(description)
	if parts == nil {
		return metric{}, fmt.Errorf("cannot read the description of a metric: %s", description)
	}
	name, err := strconv.Unquote(parts[1])
	if err != nil {
		return metric{}, err
	}
	help, err := strconv.Unquote(parts[2])
	if err != nil {
		return metric{}, err
	}
	m := metric{name: name, help: help}
	for _, label := range constant.FindAllStringSubmatch(parts[3], -1) {
		m.labels = append(m.labels, label[1])
	}
	for label := range strings.SplitSeq(parts[4], ",") {
		if label != "" {
			m.labels = append(m.labels, label)
		}
	}
	return m, nil
}
