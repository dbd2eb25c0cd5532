package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

func TestEveryKindOfMetricIsCatalogued(t *testing.T) {
	registry := &catalogue{}
	registry.MustRegister(
		prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "d", Help: "help, with a comma"}, []string{"x", "y"}),
		prometheus.NewCounter(prometheus.CounterOpts{Name: "c", Help: `with "quotes"`}),
		prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "b", Help: "b"}, []string{"x"}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "a", Help: "a", ConstLabels: prometheus.Labels{"v": `1,"2"`}},
			func() float64 { return 1 }),
	)
	got, err := registry.sorted()
	if err != nil {
		t.Fatal(err)
	}
	want := []metric{
		{name: "a", kind: "gauge", help: "a", labels: []string{"v"}},
		{name: "b", kind: "histogram", help: "b", labels: []string{"x"}},
		{name: "c", kind: "counter", help: `with "quotes"`},
		{name: "d", kind: "gauge", help: "help, with a comma", labels: []string{"x", "y"}},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(metric{})); diff != "" {
		t.Errorf("catalogue (-want +got):\n%s", diff)
	}
}

func TestAMetricOfNoKnownTypeIsAnError(t *testing.T) {
	registry := &catalogue{}
	registry.MustRegister(prometheus.NewSummary(prometheus.SummaryOpts{Name: "a", Help: "a"}))
	if all, err := registry.sorted(); err == nil {
		t.Errorf("%v", all)
	}
}
