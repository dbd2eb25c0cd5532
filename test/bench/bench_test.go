package main

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if isBareWebhook() {
		return
	}
	os.Exit(m.Run())
}

// The counts hold on a cluster of any size, and on a machine of any speed.
func TestKickAsksLittleOfTheAPIServer(t *testing.T) {
	if _, err := os.Stat("../../bin/manager"); err != nil {
		t.Fatal("run `make build`, or `make test-bench`, which does: ", err)
	}
	o, err := parseOptions([]string{"-scale=0.01", "-repeat=4", "-idle=5s"})
	if err != nil {
		t.Fatal(err)
	}
	var progress strings.Builder
	report, err := measure(t.Context(), o, &progress, &progress)
	t.Log(progress.String())
	if err != nil {
		t.Fatal(err)
	}
	shape := report.Shape
	workloads, namespaces := shape.Workloads(), shape.Namespaces+1
	for _, tc := range []struct {
		what        string
		got, atMost int
	}{
		{"adoption: reads of sources", report.Traffic["adoption"].SourceReads(), shape.Sources() + keyReads},
		{"adoption: writes of requests", report.Traffic["adoption"].of("kickrequests"), 2 * workloads},
		{"adoption: writes of the ledger", report.Traffic["adoption"].of("kickledgers"), 3 * namespaces},
		{"restart: reads of sources", report.Traffic["restart"].SourceReads(), keyReads},
		{"restart: writes", report.Traffic["restart"].Writes(), 0},
		{"standby: writes", report.Traffic["standby"].Writes(), 0},
		{"one change, one consumer: requests", report.Traffic["change"].Total(), requestsPerChange * o.repeat},
		{"one change, many consumers: requests", report.Traffic["fan-out"].Total(), requestsPerConsumer*shape.Sharers + 10},
		{"outage: reads of sources", report.Traffic["outage"].SourceReads(), shape.Missed + keyReads},
		{"metadata touches: reads", report.Traffic["touches"].Reads(), shape.Touches},
		{"metadata touches: writes", report.Traffic["touches"].Writes(), 0},
		{"idle: requests", report.Traffic["idle"].Total(), 0},
	} {
		if tc.got > tc.atMost {
			t.Errorf("%s: %d, want at most %d", tc.what, tc.got, tc.atMost)
		}
	}
	capped := slices.IndexFunc(report.Rows, func(r Row) bool { return r.Measure == mostAtATime })
	if capped < 0 || report.Rows[capped].Measured == 0 || !report.Rows[capped].Met() {
		t.Errorf("the limit on concurrent restarts was not kept, or not looked at: row %d", capped)
	}
}

func TestPercentiles(t *testing.T) {
	values := []time.Duration{4, 1, 3, 2}
	for percent, want := range map[float64]time.Duration{50: 2, 75: 3, 99: 4, 100: 4, 1: 1} {
		if got := percentile(values, percent); got != want {
			t.Errorf("percentile %v is %v, want %v", percent, got, want)
		}
	}
	if got := percentile(nil, 50); got != 0 {
		t.Errorf("the percentile of nothing is %v", got)
	}
}

func TestUsageOfThisProcess(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("no /proc on this platform")
	}
	usage, err := usageOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if usage.RSS < 1<<20 || usage.PeakRSS < usage.RSS {
		t.Errorf("usage %+v", usage)
	}
	if got := cpu("42 (a (name) of sorts) S 1 1 1 0 -1 4194560 1 0 0 0 250 50 0 0"); got != 3*time.Second {
		t.Errorf("CPU time %s, want 3s", got)
	}
}
