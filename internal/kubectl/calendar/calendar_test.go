package calendar_test

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/kubectl/calendar"
	"github.com/kick-dev/kick/internal/testing/golden"
)

func window(kind v1alpha1.WindowKind, cron, duration, zone string) v1alpha1.Window {
	return v1alpha1.Window{Kind: kind, Cron: cron, Duration: duration, TimeZone: zone}
}

func policyWith(spec v1alpha1.KickPolicySpec, windows ...v1alpha1.Window) *v1alpha1.KickPolicy {
	spec.Schedule.Windows = windows
	return &v1alpha1.KickPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: spec}
}

var cases = map[string]struct {
	of   *v1alpha1.KickPolicy
	now  string
	days int
	zone *time.Location
}{
	"nights": {policyWith(v1alpha1.KickPolicySpec{},
		window(v1alpha1.WindowAllow, "0 22 * * 1-5", "4h30m", "Europe/Berlin"), window(v1alpha1.WindowDeny, "0 0 7 8 *", "24h", "Europe/Berlin")),
		"2026-08-05T12:20:00Z", 6, nil},
	"month": {&v1alpha1.KickPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "payments-reconciliation-of-the-north-american-subsidiary", Name: "nightly-windows-and-the-freezes-of-the-finance-department"},
		Spec: v1alpha1.KickPolicySpec{Schedule: v1alpha1.Schedule{Windows: []v1alpha1.Window{
			window(v1alpha1.WindowAllow, "0 */6 * * *", "45m", "America/Argentina/ComodRivadavia"), window(v1alpha1.WindowAllow, "30 22 * * 6", "26h", "America/Argentina/ComodRivadavia"),
			window(v1alpha1.WindowDeny, "0 0 12 8 *", "72h", "America/Argentina/ComodRivadavia"),
		}}},
	}, "2026-08-05T12:20:00Z", 31, nil},
	"always":     {policyWith(v1alpha1.KickPolicySpec{Suspend: true}), "2026-08-05T12:20:00Z", 2, nil},
	"never":      {policyWith(v1alpha1.KickPolicySpec{}, window(v1alpha1.WindowDeny, "0 0 * * *", "24h", "")), "2026-08-05T12:20:00Z", 2, nil},
	"unreadable": {policyWith(v1alpha1.KickPolicySpec{DryRun: true}, window(v1alpha1.WindowAllow, "bad", "1h", "")), "2026-08-05T12:20:00Z", 2, nil},
	"two-zones": {policyWith(v1alpha1.KickPolicySpec{},
		window(v1alpha1.WindowAllow, "0 2 * * *", "2h", "Europe/Berlin"), window(v1alpha1.WindowAllow, "0 2 * * *", "2h", "America/New_York")),
		"2026-08-05T12:20:00Z", 2, nil},
	"clocks-go-back": {policyWith(v1alpha1.KickPolicySpec{}, window(v1alpha1.WindowAllow, "0 1 * * *", "2h15m", "Europe/Berlin")),
		"2025-10-25T12:20:00Z", 3, nil},
	"clocks-go-forward": {policyWith(v1alpha1.KickPolicySpec{}, window(v1alpha1.WindowAllow, "0 1 * * *", "2h15m", "Europe/Berlin")),
		"2025-03-29T12:20:00Z", 3, nil},
}

func calendarOf(t *testing.T, name string) calendar.Calendar {
	t.Helper()
	tc := cases[name]
	now, err := time.Parse(time.RFC3339, tc.now)
	if err != nil {
		t.Fatal(err)
	}
	return calendar.Of(tc.of, now, tc.days, tc.zone)
}

func TestCalendars(t *testing.T) {
	for name := range cases {
		t.Run(name, func(t *testing.T) {
			c := calendarOf(t, name)
			for suffix, write := range map[string]func(io.Writer) error{".txt": c.WriteText, ".svg": c.WriteSVG, ".html": c.WriteHTML} {
				var out strings.Builder
				if err := write(&out); err != nil {
					t.Fatal(err)
				}
				golden.Compare(t, name+suffix, out.String())
				if suffix == ".svg" {
					wellFormed(t, out.String())
				}
				for _, outside := range []string{"src=", "href=", "url(", "@import", "<script"} {
					if strings.Contains(out.String(), outside) {
						t.Errorf("%s%s refers to something outside, or runs something: %s", name, suffix, outside)
					}
				}
				if suffix != ".txt" && !strings.Contains(out.String(), "prefers-color-scheme: dark") {
					t.Errorf("%s%s does not mind dark", name, suffix)
				}
			}
		})
	}
}

func wellFormed(t *testing.T, text string) {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("no XML: %v", err)
		}
	}
}

// Each minute of each day is shown open exactly if the schedule is open then.
func TestDaysShowEveryMinuteOfTheOpenings(t *testing.T) {
	for name := range cases {
		t.Run(name, func(t *testing.T) {
			c := calendarOf(t, name)
			for _, day := range c.Days {
				for at := day.From; at.Before(day.To); at = at.Add(time.Minute) {
					open := false
					for _, span := range c.Openings {
						open = open || !at.Before(span.From) && at.Before(span.To)
					}
					minute, drawn := at.In(c.Zone).Hour()*60+at.In(c.Zone).Minute(), false
					for _, bar := range day.Open {
						drawn = drawn || bar.From <= minute && minute < bar.To
					}
					if open && !drawn || drawn && !open && !day.Turns {
						t.Fatalf("%s: open %v, drawn %v", at.In(c.Zone), open, drawn)
					}
				}
			}
		})
	}
}

func TestNamesAreEscaped(t *testing.T) {
	of := policyWith(v1alpha1.KickPolicySpec{})
	of.Name = `<img src=x onerror=alert(1)>`
	var out strings.Builder
	if err := calendar.Of(of, time.Unix(0, 0), 1, time.UTC).WriteHTML(&out); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "<img") {
		t.Error("a name becomes a part of the page")
	}
}
