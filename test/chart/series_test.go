package chart

import (
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// value is a sample of a series.
type value struct {
	at    int64 // milliseconds
	value float64
}

func (v value) T() int64                      { return v.at }
func (v value) ST() int64                     { return 0 }
func (v value) F() float64                    { return v.value }
func (v value) H() *histogram.Histogram       { return nil }
func (v value) FH() *histogram.FloatHistogram { return nil }
func (v value) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (v value) Copy() chunks.Sample           { return v }

// minutes holds series in the notation of Prometheus's own tests, one sample a minute from 1970 on. Its storage for tests
// does the same, and comes with the clients of three clouds.
func minutes(t *testing.T, text string) storage.Queryable {
	t.Helper()
	var all []storage.Series
	for line := range strings.Lines(text) {
		name, values, err := promQL.ParseSeriesDesc(strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, storage.NewListSeries(name, samples(values)))
	}
	return &storage.MockQueryable{MockQuerier: &storage.MockQuerier{
		SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
			set := &chosen{at: -1}
			for _, series := range all {
				if matches(series.Labels(), matchers) {
					set.series = append(set.series, series)
				}
			}
			return set
		},
	}}
}

func samples(values []parser.SequenceValue) []chunks.Sample {
	var all []chunks.Sample
	for i, v := range values {
		if !v.Omitted {
			all = append(all, value{at: int64(i) * 60_000, value: v.Value})
		}
	}
	return all
}

func matches(name labels.Labels, matchers []*labels.Matcher) bool {
	for _, m := range matchers {
		if !m.Matches(name.Get(m.Name)) {
			return false
		}
	}
	return true
}

// chosen are the series that a query selects.
type chosen struct {
	series []storage.Series
	at     int
}

func (c *chosen) Next() bool         { c.at++; return c.at < len(c.series) }
func (c *chosen) At() storage.Series { return c.series[c.at] }
func (c *chosen) Err() error         { return nil }

// Warnings implements storage.SeriesSet.
func (c *chosen) Warnings() annotations.Annotations { return nil }
