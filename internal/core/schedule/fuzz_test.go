package schedule_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/schedule"
)

// Whatever a window says, it is parsed or refused with a place and a reason; and an opening that is found is open, and
// the first.
func FuzzWindows(f *testing.F) {
	f.Add("0 2 * * 1-5", "2h", "Europe/Berlin", true, "0 3 * * *", "30m", int64(1761436800))
	f.Add("30 2 * * *", "30m", "Europe/Berlin", false, "* * * * *", "1m", int64(1761436800))
	f.Add("0 0 29 2 *", "1h", "UTC", true, "CRON_TZ=UTC", "0s", int64(0))
	f.Fuzz(func(t *testing.T, cron, duration, zone string, allowing bool, deny, length string, seconds int64) {
		now := time.Unix(seconds%4102444800, 0).UTC()
		first := v1alpha1.Window{Kind: v1alpha1.WindowDeny, Cron: cron, Duration: duration, TimeZone: zone}
		if allowing {
			first.Kind = v1alpha1.WindowAllow
		}
		s, faults := schedule.Parse([]v1alpha1.Window{first, {Kind: v1alpha1.WindowDeny, Cron: deny, Duration: length}}, field.NewPath("w"))
		for _, fault := range faults {
			if fault.Field == "" || fault.Detail == "" {
				t.Errorf("a fault without a place or a reason: %#v", fault)
			}
		}
		opening := s.NextOpening(now)
		if s.Open(now) && (!opening.Found || !opening.At.Equal(now)) {
			t.Errorf("open at %s, and opens at %+v", now, opening)
		}
		if !opening.Found {
			return
		}
		if opening.At.Before(now) || !s.Open(opening.At) {
			t.Errorf("from %s on it opens at %s: %v", now, opening.At, s.Open(opening.At))
		}
		if before := opening.At.Add(-time.Nanosecond); before.After(now) && s.Open(before) {
			t.Errorf("open at %s already, before the opening at %s", before, opening.At)
		}
		s.Endless(now)
	})
}
