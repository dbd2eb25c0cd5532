package servertime_test

import (
	"net/http"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kick-dev/kick/internal/cluster/servertime"
)

var noon = time.Date(2026, 8, 6, 12, 0, 0, 500_000_000, time.UTC)

// answers is a transport whose answers carry a date.
type answers string

func (a answers) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{Header: http.Header{"Date": []string{string(a)}}, Body: http.NoBody}, nil
}

func TestClockFollowsTheServerOnlyWhenTheyDisagree(t *testing.T) {
	for name, tc := range map[string]struct {
		date string
		want time.Time
	}{
		"the same second":            {noon.Format(http.TimeFormat), noon},
		"a second behind":            {noon.Add(-time.Second).Format(http.TimeFormat), noon},
		"two seconds ahead":          {noon.Add(2 * time.Second).Format(http.TimeFormat), noon},
		"ten minutes ahead":          {noon.Add(10 * time.Minute).Format(http.TimeFormat), noon.Add(10 * time.Minute)},
		"ten minutes behind":         {noon.Add(-10 * time.Minute).Format(http.TimeFormat), noon.Add(-10 * time.Minute)},
		"no date":                    {"", noon},
		"a date that does not parse": {"yesterday", noon},
	} {
		t.Run(name, func(t *testing.T) {
			clock := servertime.New(clocktesting.NewFakePassiveClock(noon))
			response, err := clock.Wrap(answers(tc.date)).RoundTrip(nil)
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			if got := clock.Now(); !got.Equal(tc.want) {
				t.Errorf("now %s, want %s", got, tc.want)
			}
		})
	}
}
