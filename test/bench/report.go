package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// Report is the outcome of a run, as it is written to the JSON file.
type Report struct {
	Shape   Shape                `json:"shape"`
	Version string               `json:"version"`
	Began   time.Time            `json:"began"`
	Rows    []Row                `json:"rows"`
	Traffic map[string]Traffic   `json:"traffic"`
	Usage   map[string]Usage     `json:"usage"`
	Stamps  map[string]Latencies `json:"stamps,omitempty"`
	// Reference has the latencies of a client that does the least.
	Reference map[string]Latencies `json:"reference,omitempty"`
}

// Latencies are the percentiles of the times from the answer to a source's change until a watch shows the stamp.
type Latencies struct {
	P50 time.Duration `json:"p50"`
	P90 time.Duration `json:"p90"`
	P99 time.Duration `json:"p99"`
	Max time.Duration `json:"max"`
}

// Row is one measurement against its target.
type Row struct {
	Phase   string `json:"phase"`
	Measure string `json:"measure"`
	Unit    string `json:"unit"`
	// Limit is the most that is good enough; nil where there is no target.
	Limit    *float64 `json:"limit,omitempty"`
	Measured float64  `json:"measured"`
}

// Met tells whether the target is met, true where there is none.
func (r Row) Met() bool { return r.Limit == nil || r.Measured <= *r.Limit }

func newReport(shape Shape, version string) *Report {
	return &Report{
		Shape: shape, Version: version, Began: time.Now(), Traffic: map[string]Traffic{}, Usage: map[string]Usage{},
		Stamps: map[string]Latencies{}, Reference: map[string]Latencies{},
	}
}

// atMost adds a measurement with a target.
func (r *Report) atMost(limit, measured float64, phase, measure, unit string) {
	r.Rows = append(r.Rows, Row{Phase: phase, Measure: measure, Unit: unit, Limit: &limit, Measured: measured})
}

// note adds a measurement without a target.
func (r *Report) note(measured float64, phase, measure, unit string) {
	r.Rows = append(r.Rows, Row{Phase: phase, Measure: measure, Unit: unit, Measured: measured})
}

func latenciesOf(values []time.Duration) Latencies {
	return Latencies{
		P50: percentile(values, 50), P90: percentile(values, 90), P99: percentile(values, 99), Max: percentile(values, 100),
	}
}

// reference keeps the latencies of the reference.
func (r *Report) reference(phase string, values []time.Duration) {
	latencies := latenciesOf(values)
	r.Reference[phase] = latencies
	r.note(milliseconds(latencies.P50), "the reference, "+phase, "change → stamp, p50", "ms")
	r.note(milliseconds(latencies.P99), "the reference, "+phase, "change → stamp, p99", "ms")
	r.note(seconds(latencies.Max), "the reference, "+phase, "last stamp", "s")
}

// againstReference adds how many times as long as the reference KICK took in a phase, if both were measured. A limit of 0 is
// none.
func (r *Report) againstReference(phase, measure string, limit float64, of func(Latencies) time.Duration) {
	measured, ok := r.Stamps[phase]
	if !ok {
		return
	}
	ratio := float64(of(measured)) / float64(of(r.Reference[phase]))
	if limit == 0 {
		r.note(ratio, "KICK against the reference", phase+", "+measure, "times")
		return
	}
	r.atMost(limit, ratio, "KICK against the reference", phase+", "+measure, "times")
}

// stamps keeps the percentiles of latencies and returns them.
func (r *Report) stamps(phase string, values []time.Duration) Latencies {
	r.Stamps[phase] = latenciesOf(values)
	return r.Stamps[phase]
}

// Markdown writes the table.
func (r *Report) Markdown(out io.Writer) {
	fmt.Fprintf(out, "\nKICK %s on %d workloads in %d namespaces\n\n", r.Version, r.Shape.Workloads(), r.Shape.Namespaces+1)
	fmt.Fprintln(out, "| phase | measure | target | measured | met |")
	fmt.Fprintln(out, "|---|---|---|---|---|")
	for _, row := range r.Rows {
		target, met := "", ""
		if row.Limit != nil {
			target, met = "≤ "+quantity(*row.Limit, row.Unit), "no"
			if row.Met() {
				met = "yes"
			}
		}
		fmt.Fprintf(out, "| %s | %s | %s | %s | %s |\n", row.Phase, row.Measure, target, quantity(row.Measured, row.Unit), met)
	}
	fmt.Fprintln(out)
}

func quantity(value float64, unit string) string {
	number := strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", value), "0"), ".")
	if unit == "" {
		return number
	}
	return number + " " + unit
}

// write stores the report as JSON.
func (r *Report) write(path string) error {
	encoded, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the report: %w", err)
	}
	if err := os.WriteFile(path, append(encoded, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

func seconds(d time.Duration) float64      { return d.Seconds() }
func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
func mebibytes(n int64) float64            { return float64(n) / (1 << 20) }
