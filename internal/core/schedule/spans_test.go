package schedule_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/schedule"
)

func TestOpenings(t *testing.T) {
	const berlin = "Europe/Berlin"
	for name, tc := range map[string]struct {
		windows  []v1alpha1.Window
		from, to string
		want     [][2]string
	}{
		"without windows it is always open": {
			nil, "2025-10-01 00:00 +0000", "2025-10-03 00:00 +0000", [][2]string{{"2025-10-01 00:00 +0000", "2025-10-03 00:00 +0000"}},
		},
		"an Allow window each night": {
			[]v1alpha1.Window{allow("0 2 * * *", "2h", "")}, "2025-10-01 03:00 +0000", "2025-10-03 00:00 +0000",
			[][2]string{{"2025-10-01 03:00 +0000", "2025-10-01 04:00 +0000"}, {"2025-10-02 02:00 +0000", "2025-10-02 04:00 +0000"}},
		},
		"a Deny window cuts an Allow window": {
			[]v1alpha1.Window{allow("0 2 * * *", "4h", ""), deny("0 3 * * *", "1h", "")}, "2025-10-01 00:00 +0000", "2025-10-02 00:00 +0000",
			[][2]string{{"2025-10-01 02:00 +0000", "2025-10-01 03:00 +0000"}, {"2025-10-01 04:00 +0000", "2025-10-01 06:00 +0000"}},
		},
		"windows that meet are one opening": {
			[]v1alpha1.Window{allow("0 2 * * *", "2h", ""), allow("0 4 * * *", "1h", "")}, "2025-10-01 00:00 +0000", "2025-10-02 00:00 +0000",
			[][2]string{{"2025-10-01 02:00 +0000", "2025-10-01 05:00 +0000"}},
		},
		"a night in which the clocks go back": {
			[]v1alpha1.Window{allow("0 1 * * *", "4h", berlin)}, "2025-10-25 12:00 +0200", "2025-10-26 12:00 +0100",
			[][2]string{{"2025-10-26 01:00 +0200", "2025-10-26 04:00 +0100"}},
		},
		"never": {
			[]v1alpha1.Window{deny("0 0 * * *", "24h", "")}, "2025-10-01 00:00 +0000", "2025-10-03 00:00 +0000", nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, all := parse(t, tc.windows...).Openings(in(t, tc.from), in(t, tc.to))
			if len(got) != len(tc.want) || !all {
				t.Fatalf("%v (all: %v), want %v", got, all, tc.want)
			}
			for i, want := range tc.want {
				if !got[i].From.Equal(in(t, want[0])) || !got[i].To.Equal(in(t, want[1])) {
					t.Errorf("%v, want %v", got[i], want)
				}
			}
		})
	}
}

// Minute by minute, a schedule is open exactly in its openings, and a window active in its spans.
func TestOpeningsAreWhenItIsOpen(t *testing.T) {
	inside := func(spans []schedule.Span, at time.Time) bool {
		for _, span := range spans {
			if !at.Before(span.From) && at.Before(span.To) {
				return true
			}
		}
		return false
	}
	windows := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) v1alpha1.Window {
		return v1alpha1.Window{
			Kind:     rapid.SampledFrom([]v1alpha1.WindowKind{v1alpha1.WindowAllow, v1alpha1.WindowDeny}).Draw(t, "kind"),
			Cron:     rapid.SampledFrom([]string{"0 2 * * *", "30 */6 * * *", "15 1 * * 0", "*/20 3 * * *", "0 0 26 10 *"}).Draw(t, "cron"),
			Duration: rapid.SampledFrom([]string{"10m", "45m", "2h", "7h", "30h"}).Draw(t, "duration"),
			TimeZone: rapid.SampledFrom([]string{"", "Europe/Berlin", "America/New_York"}).Draw(t, "zone"),
		}
	}), 0, 4)
	rapid.Check(t, func(t *rapid.T) {
		raw := windows.Draw(t, "windows")
		s, faults := schedule.Parse(raw, nil)
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		from := time.Date(2025, 10, 25, rapid.IntRange(0, 23).Draw(t, "hour"), 0, 0, 0, time.UTC)
		to := from.Add(36 * time.Hour)
		openings, all := s.Openings(from, to)
		if !all {
			t.Fatal("not all openings are listed")
		}
		for at := from; at.Before(to); at = at.Add(5 * time.Minute) {
			if got := inside(openings, at); got != s.Open(at) {
				t.Fatalf("at %s: listed %v, open %v", at, got, s.Open(at))
			}
		}
		for i, w := range s.Windows() {
			raw[i].Kind = v1alpha1.WindowAllow
			alone, _ := schedule.Parse(raw[i:i+1], nil)
			active := w.Active(from, to)
			for at := from; at.Before(to); at = at.Add(5 * time.Minute) {
				if got := inside(active, at); got != alone.Open(at) {
					t.Fatalf("window %d at %s: listed %v", i, at, got)
				}
			}
		}
	})
}
