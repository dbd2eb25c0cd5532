package schedule_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"pgregory.net/rapid"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/schedule"
)

func allow(cron, duration, zone string) v1alpha1.Window {
	return v1alpha1.Window{Kind: v1alpha1.WindowAllow, Cron: cron, Duration: duration, TimeZone: zone}
}

func deny(cron, duration, zone string) v1alpha1.Window {
	return v1alpha1.Window{Kind: v1alpha1.WindowDeny, Cron: cron, Duration: duration, TimeZone: zone}
}

func parse(t testing.TB, windows ...v1alpha1.Window) schedule.Schedule {
	t.Helper()
	parsed, faults := schedule.Parse(windows, field.NewPath("windows"))
	if len(faults) > 0 {
		t.Fatal(faults.ToAggregate())
	}
	return parsed
}

// in reads a wall-clock time with its offset, such as 2025-10-26 02:30 +0200.
func in(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse("2006-01-02 15:04 -0700", text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestOpen(t *testing.T) {
	const la, berlin = "America/Los_Angeles", "Europe/Berlin"
	overnight := allow("0 21 * * 1-5", "8h", la)
	cases := map[string]struct {
		windows []v1alpha1.Window
		open    []string
		closed  []string
	}{
		"no windows": {open: []string{"2025-10-01 12:00 +0000"}},
		"a window belongs to its start, also across midnight (C055)": {
			windows: []v1alpha1.Window{overnight},
			open:    []string{"2025-10-03 22:49 -0700", "2025-10-04 00:49 -0700", "2025-10-04 04:59 -0700"},
			closed:  []string{"2025-10-04 05:00 -0700", "2025-10-05 00:49 -0700"},
		},
		"with Deny windows alone the default is open (C056)": {
			windows: []v1alpha1.Window{deny("2 13 * * *", "1h", "")},
			open:    []string{"2025-10-01 12:00 +0000", "2025-10-01 14:02 +0000"},
			closed:  []string{"2025-10-01 13:02 +0000", "2025-10-01 13:30 +0000"},
		},
		"any Allow window makes the default closed (C058)": {
			windows: []v1alpha1.Window{allow("0 2 * * *", "1h", ""), deny("0 20 * * *", "1h", "")},
			open:    []string{"2025-10-01 02:00 +0000", "2025-10-01 02:59 +0000"},
			closed:  []string{"2025-10-01 03:00 +0000", "2025-10-01 12:00 +0000", "2025-10-01 20:30 +0000"},
		},
		"a Deny window wins": {
			windows: []v1alpha1.Window{allow("0 2 * * *", "4h", ""), deny("0 3 * * *", "1h", "")},
			open:    []string{"2025-10-01 02:30 +0000", "2025-10-01 04:00 +0000"},
			closed:  []string{"2025-10-01 03:30 +0000"},
		},
		"a window longer than its period is always active": {
			windows: []v1alpha1.Window{allow("0 0 * * *", "36h", "")},
			open:    []string{"2025-10-01 00:00 +0000", "2025-10-01 23:59 +0000"},
		},
		"day of month and day of week are either (C069)": {
			windows: []v1alpha1.Window{allow("0 2 1 * 1", "1h", "")},
			open:    []string{"2025-10-01 02:30 +0000", "2025-10-06 02:30 +0000"},
			closed:  []string{"2025-10-07 02:30 +0000"},
		},
		"the default zone is UTC (C073)": {
			windows: []v1alpha1.Window{allow("0 15 * * *", "1h", "")},
			open:    []string{"2025-10-01 15:00 +0000"},
			closed:  []string{"2025-10-01 14:59 +0000", "2025-10-01 16:00 +0000"},
		},
		"duration is elapsed time when the clocks go back (C067)": {
			windows: []v1alpha1.Window{allow("0 22 * * *", "8h", berlin)},
			open:    []string{"2025-10-25 22:00 +0200", "2025-10-26 04:59 +0100"},
			closed:  []string{"2025-10-25 21:59 +0200", "2025-10-26 05:00 +0100"},
		},
		"a repeated start begins at both passes (C067)": {
			windows: []v1alpha1.Window{deny("30 2 * * *", "30m", berlin)},
			open:    []string{"2025-10-26 02:29 +0200", "2025-10-26 02:00 +0100", "2025-10-26 02:29 +0100", "2025-10-26 03:00 +0100"},
			closed:  []string{"2025-10-26 02:30 +0200", "2025-10-26 02:59 +0200", "2025-10-26 02:30 +0100", "2025-10-26 02:59 +0100"},
		},
		"a skipped start begins when the gap ends": {
			windows: []v1alpha1.Window{allow("30 2 * * *", "30m", berlin)},
			open:    []string{"2025-03-30 03:00 +0200", "2025-03-30 03:29 +0200"},
			closed:  []string{"2025-03-30 01:59 +0100", "2025-03-30 03:30 +0200"},
		},
		"New York, forward": {
			windows: []v1alpha1.Window{deny("15 2 * * *", "1h", "America/New_York")},
			open:    []string{"2025-03-09 01:59 -0500", "2025-03-09 04:00 -0400"},
			closed:  []string{"2025-03-09 03:00 -0400", "2025-03-09 03:59 -0400"},
		},
		"New York, back": {
			windows: []v1alpha1.Window{allow("15 1 * * *", "10m", "America/New_York")},
			open:    []string{"2025-11-02 01:15 -0400", "2025-11-02 01:15 -0500"},
			closed:  []string{"2025-11-02 01:25 -0400", "2025-11-02 01:14 -0500", "2025-11-02 01:25 -0500"},
		},
		"Cairo changes at midnight": {
			windows: []v1alpha1.Window{allow("0 0 * * *", "30m", "Africa/Cairo")},
			open:    []string{"2025-04-25 01:00 +0300", "2025-04-25 01:29 +0300", "2025-10-31 00:00 +0200"},
			closed:  []string{"2025-04-24 23:59 +0200", "2025-04-25 01:30 +0300"},
		},
		"Sao Paulo changed at midnight": {
			windows: []v1alpha1.Window{deny("0 0 * * *", "1h", "America/Sao_Paulo")},
			open:    []string{"2018-11-03 23:59 -0300", "2018-11-04 02:00 -0200"},
			closed:  []string{"2018-11-04 01:00 -0200", "2018-11-04 01:59 -0200"},
		},
		"Kolkata never changes": {
			windows: []v1alpha1.Window{allow("0 2 * * *", "1h", "Asia/Kolkata")},
			open:    []string{"2025-03-30 02:00 +0530"},
			closed:  []string{"2025-03-30 01:59 +0530", "2025-03-30 03:00 +0530"},
		},
		"Lord Howe changes by half an hour": {
			windows: []v1alpha1.Window{allow("45 1 * * *", "10m", "Australia/Lord_Howe")},
			open:    []string{"2025-04-06 01:45 +1100", "2025-04-06 01:45 +1030"},
			closed:  []string{"2025-04-06 01:55 +1100", "2025-04-06 01:55 +1030"},
		},
		"Lord Howe, forward": {
			windows: []v1alpha1.Window{allow("15 2 * * *", "10m", "Australia/Lord_Howe")},
			open:    []string{"2025-10-05 02:30 +1100"},
			closed:  []string{"2025-10-05 01:59 +1030", "2025-10-05 02:40 +1100"},
		},
		"Apia skipped a whole day": {
			windows: []v1alpha1.Window{allow("0 12 30 12 *", "1h", "Pacific/Apia")},
			open:    []string{"2011-12-31 00:00 +1400", "2011-12-31 00:59 +1400"},
			closed:  []string{"2011-12-29 23:59 -1000", "2011-12-31 01:00 +1400", "2011-12-31 12:00 +1400"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := parse(t, tc.windows...)
			for _, at := range tc.open {
				if !s.Open(in(t, at)) {
					t.Errorf("closed at %s", at)
				}
			}
			for _, at := range tc.closed {
				if s.Open(in(t, at)) {
					t.Errorf("open at %s", at)
				}
			}
		})
	}
}

func TestNextOpening(t *testing.T) {
	for name, tc := range map[string]struct {
		windows []v1alpha1.Window
		now     string
		want    string // empty for never
	}{
		"now":                       {now: "2025-10-01 12:00 +0000", want: "2025-10-01 12:00 +0000"},
		"the next start":            {[]v1alpha1.Window{allow("0 2 * * 1-5", "2h", "Europe/Berlin")}, "2025-10-03 12:00 +0200", "2025-10-06 02:00 +0200"},
		"the end of a Deny":         {[]v1alpha1.Window{deny("0 0 24 12 *", "72h", "")}, "2025-12-25 08:00 +0000", "2025-12-27 00:00 +0000"},
		"a start inside a Deny":     {[]v1alpha1.Window{allow("0 2 * * *", "1h", ""), deny("0 0 24 12 *", "72h", "")}, "2025-12-23 12:00 +0000", "2025-12-27 02:00 +0000"},
		"an Allow cut by a Deny":    {[]v1alpha1.Window{allow("0 2 * * *", "4h", ""), deny("0 1 * * *", "3h", "")}, "2025-10-01 00:00 +0000", "2025-10-01 04:00 +0000"},
		"past the gap":              {[]v1alpha1.Window{allow("30 2 * * *", "1h", "Europe/Berlin")}, "2025-03-29 12:00 +0100", "2025-03-30 03:00 +0200"},
		"the second pass":           {[]v1alpha1.Window{allow("30 2 * * *", "10m", "Europe/Berlin")}, "2025-10-26 02:45 +0200", "2025-10-26 02:30 +0100"},
		"always denied":             {[]v1alpha1.Window{deny("0 0 * * *", "24h", "")}, "2025-10-01 12:00 +0000", ""},
		"allowed only while denied": {[]v1alpha1.Window{allow("0 2 * * *", "1h", ""), deny("0 1 * * *", "3h", "")}, "2025-10-01 12:00 +0000", ""},
		"beyond the horizon":        {[]v1alpha1.Window{allow("0 0 29 2 *", "1h", "")}, "2025-10-01 12:00 +0000", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := parse(t, tc.windows...).NextOpening(in(t, tc.now))
			if tc.want == "" {
				if !got.Never {
					t.Errorf("opens at %s", got.At)
				}
				return
			}
			if !got.Found || !got.At.Equal(in(t, tc.want)) {
				t.Errorf("opens at %s (found %v), want %s", got.At, got.Found, tc.want)
			}
		})
	}
}

func TestTheSearchForAnOpeningIsBounded(t *testing.T) {
	s := parse(t, allow("* * * * *", "1m", ""), deny("* * * * *", "1m", ""))
	now := in(t, "2025-10-01 12:00 +0000")
	got := s.NextOpening(now)
	if got.Found || got.Never || !got.At.After(now.Add(time.Hour)) {
		t.Errorf("%+v, want to be told when to look again", got)
	}
}

func TestParseNamesEveryFault(t *testing.T) {
	for name, tc := range map[string]struct {
		window v1alpha1.Window
		path   string
		text   string
	}{
		"a zone in the expression":      {allow("TZ=Europe/Paris 0 2 * * *", "1h", ""), "windows[0].cron", "timeZone"},
		"a cron zone in the expression": {allow("CRON_TZ=UTC 0 2 * * *", "1h", "UTC"), "windows[0].cron", "timeZone"},
		"nothing but a zone":            {allow("TZ=UTC", "1h", ""), "windows[0].cron", "timeZone"},
		"a descriptor":                  {allow("@daily", "1h", ""), "windows[0].cron", "five fields"},
		"a descriptor with an argument": {allow("@every 1h", "1h", ""), "windows[0].cron", "five fields"},
		"six fields":                    {allow("0 0 2 * * *", "1h", ""), "windows[0].cron", "6 fields"},
		"no fields":                     {allow("", "1h", ""), "windows[0].cron", "0 fields"},
		"a range that wraps (C060)":     {allow("0 0 * * sat-sun", "1h", ""), "windows[0].cron", "range"},
		"Sunday as 7 (C060)":            {allow("0 0 * * 7", "1h", ""), "windows[0].cron", "above maximum"},
		"a range up to 7 (C060)":        {allow("30 10 * * 1-7", "1h", ""), "windows[0].cron", "above maximum"},
		"minute 60":                     {allow("60 0 * * *", "1h", ""), "windows[0].cron", "above maximum"},
		"the 30th of February":          {allow("0 0 30 2 *", "1h", ""), "windows[0].cron", "no date ever matches"},
		"no duration":                   {allow("0 0 * * *", "", ""), "windows[0].duration", "duration such as"},
		"days":                          {allow("0 0 * * *", "3d", ""), "windows[0].duration", "72h"},
		"nothing":                       {allow("0 0 * * *", "0s", ""), "windows[0].duration", "positive"},
		"less than nothing":             {allow("0 0 * * *", "-1h", ""), "windows[0].duration", "positive"},
		"an unknown zone":               {allow("0 0 * * *", "1h", "Europe/Atlantis"), "windows[0].timeZone", "IANA"},
		"the zone of the process":       {allow("0 0 * * *", "1h", "Local"), "windows[0].timeZone", "process"},
		"an unknown kind":               {v1alpha1.Window{Kind: "Maybe", Cron: "0 0 * * *", Duration: "1h"}, "windows[0].kind", "Allow"},
	} {
		t.Run(name, func(t *testing.T) {
			_, faults := schedule.Parse([]v1alpha1.Window{tc.window}, field.NewPath("windows"))
			if len(faults) != 1 || faults[0].Field != tc.path || !strings.Contains(faults[0].Error(), tc.text) {
				t.Errorf("faults %v, want one at %s about %q", faults, tc.path, tc.text)
			}
		})
	}
}

func TestAWindowThatDoesNotParseClosesTheSchedule(t *testing.T) {
	now := in(t, "2025-10-01 12:00 +0000")
	broken, faults := schedule.Parse([]v1alpha1.Window{deny("0 0 * * *", "1h", ""), deny("bad", "1h", "")}, field.NewPath("w"))
	if len(faults) != 1 || broken.Open(now) || !broken.Invalid() || !broken.NextOpening(now).Never {
		t.Errorf("faults %v, open %v", faults, broken.Open(now))
	}
	never, _ := schedule.Parse([]v1alpha1.Window{deny("0 0 30 2 *", "1h", "")}, field.NewPath("w"))
	if !never.Open(now) || never.Invalid() {
		t.Error("a Deny window that never begins blocks")
	}
	unreachable, _ := schedule.Parse([]v1alpha1.Window{allow("0 0 30 2 *", "1h", "")}, field.NewPath("w"))
	if unreachable.Open(now) {
		t.Error("an Allow window that never begins opens")
	}
}

// The schedule agrees with an evaluator that does nothing clever: it looks at every minute of the clocks.
func TestOpenAgreesWithMinuteByMinuteEvaluation(t *testing.T) {
	zones := []string{"UTC", "Europe/Berlin", "America/New_York", "Africa/Cairo", "Australia/Lord_Howe", "Asia/Kolkata", "Pacific/Apia"}
	changes := []string{"2025-03-30", "2025-10-26", "2025-03-09", "2025-11-02", "2025-04-25", "2025-10-31", "2025-04-06", "2025-10-05", "2011-12-30"}
	rapid.Check(t, func(t *rapid.T) {
		var windows []v1alpha1.Window
		for i := range rapid.IntRange(1, 3).Draw(t, "windows") {
			windows = append(windows, v1alpha1.Window{
				Kind: rapid.SampledFrom([]v1alpha1.WindowKind{v1alpha1.WindowAllow, v1alpha1.WindowDeny}).Draw(t, "kind"),
				Cron: fmt.Sprintf("%s %s * * %s",
					rapid.SampledFrom([]string{"0", "30", "*/20", "59"}).Draw(t, "minute"),
					rapid.SampledFrom([]string{"*", "0", "2", "1-3", "23"}).Draw(t, "hour"),
					rapid.SampledFrom([]string{"*", "0", "1-5"}).Draw(t, "weekday")),
				Duration: rapid.SampledFrom([]string{"1m", "45m", "3h", "26h"}).Draw(t, fmt.Sprint("duration", i)),
				TimeZone: rapid.SampledFrom(zones).Draw(t, "zone"),
			})
		}
		s, faults := schedule.Parse(windows, field.NewPath("w"))
		if len(faults) > 0 {
			t.Fatal(faults.ToAggregate())
		}
		day, _ := time.Parse("2006-01-02", rapid.SampledFrom(changes).Draw(t, "day"))
		now := day.Add(time.Duration(rapid.IntRange(-24*60, 30*60).Draw(t, "minute")) * time.Minute)

		naive := newNaive(windows, now.Add(-30*time.Hour), now.Add(40*time.Hour))
		if got, want := s.Open(now), naive.open(now); got != want {
			t.Fatalf("%v: open at %s: %v, minute by minute %v", windows, now, got, want)
		}
		opening := s.NextOpening(now)
		for at := now; at.Before(now.Add(8 * time.Hour)); at = at.Add(time.Minute) {
			if naive.open(at) {
				if !opening.Found || !opening.At.Equal(at) {
					t.Fatalf("%v: from %s opens at %s (found %v), minute by minute %s", windows, now, opening.At, opening.Found, at)
				}
				return
			}
		}
		if opening.Found && opening.At.Before(now.Add(8*time.Hour)) {
			t.Fatalf("%v: from %s opens at %s, minute by minute not for hours", windows, now, opening.At)
		}
	})
}

// naive holds every start of every window in a span of time.
type naive struct {
	windows []v1alpha1.Window
	starts  [][]time.Time
}

// newNaive goes through the span minute by minute and notes what each clock shows, and what it jumps over.
func newNaive(windows []v1alpha1.Window, from, to time.Time) naive {
	n := naive{windows: windows, starts: make([][]time.Time, len(windows))}
	for i, w := range windows {
		zone, _ := time.LoadLocation(w.TimeZone)
		parsed, _ := cron.ParseStandard(w.Cron)
		matches := func(wall time.Time) bool { return parsed.Next(wall.Add(-time.Second)).Equal(wall) }
		shown := clockFace(from.Add(-time.Minute), zone)
		for at := from; at.Before(to); at = at.Add(time.Minute) {
			wall := clockFace(at, zone)
			begins := matches(wall)
			for skipped := shown.Add(time.Minute); skipped.Before(wall); skipped = skipped.Add(time.Minute) {
				begins = begins || matches(skipped)
			}
			if begins {
				n.starts[i] = append(n.starts[i], at)
			}
			shown = wall
		}
	}
	return n
}

func clockFace(at time.Time, zone *time.Location) time.Time {
	l := at.In(zone)
	return time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), 0, 0, time.UTC)
}

func (n naive) open(at time.Time) bool {
	allowing, allowed := false, false
	for i, w := range n.windows {
		duration, _ := time.ParseDuration(w.Duration)
		active := false
		for _, start := range n.starts[i] {
			active = active || (!start.After(at) && at.Before(start.Add(duration)))
		}
		if w.Kind == v1alpha1.WindowDeny && active {
			return false
		}
		allowing = allowing || w.Kind == v1alpha1.WindowAllow
		allowed = allowed || (w.Kind == v1alpha1.WindowAllow && active)
	}
	return !allowing || allowed
}

// The longest search: every window begins each minute, and the clocks change meanwhile. Admission waits for it, and each
// decision about a waiting request does.
func BenchmarkNextOpeningOfTheBusiestSchedule(b *testing.B) {
	var windows []v1alpha1.Window
	for range 16 {
		windows = append(windows, allow("* * * * *", "1m", "Europe/Berlin"), deny("* * * * *", "1m", "America/New_York"))
	}
	s := parse(b, windows...)
	now := in(b, "2026-10-25 00:30 +0000")
	for b.Loop() {
		s.NextOpening(now)
	}
}

func BenchmarkNextOpening(b *testing.B) {
	s := parse(b, allow("0 2 * * 1-5", "2h", "Europe/Berlin"), deny("0 0 24 12 *", "72h", ""))
	now := in(b, "2025-12-23 12:00 +0000")
	for b.Loop() {
		s.NextOpening(now)
	}
}
