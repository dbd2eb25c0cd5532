package servertime_test

import (
	"context"
	"errors"
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

func TestConfirmAsksWhenTheLocalClockHasMovedSinceTheLastAnswer(t *testing.T) {
	for name, tc := range map[string]struct {
		moves time.Duration
		asks  int
	}{
		"not at all":              {0, 0},
		"by a few seconds":        {9 * time.Second, 0},
		"by a minute of silence":  {time.Minute, 1},
		"set ten minutes forward": {10 * time.Minute, 1},
		"set ten minutes back":    {-10 * time.Minute, 1},
	} {
		t.Run(name, func(t *testing.T) {
			local := clocktesting.NewFakePassiveClock(noon)
			clock := servertime.New(local)
			asked := 0
			clock.AskWith(func(context.Context) error {
				asked++
				return answer(clock, noon)
			})
			if err := errors.Join(clock.Confirm(t.Context()), clock.Confirm(t.Context())); err != nil || asked != 1 {
				t.Fatalf("asked %d times before the first answer, want once (%v)", asked, err)
			}
			local.SetTime(noon.Add(tc.moves))
			if err := clock.Confirm(t.Context()); err != nil || asked != 1+tc.asks {
				t.Errorf("asked %d times, want %d (%v)", asked-1, tc.asks, err)
			}
			if got := clock.Now().Sub(noon).Abs(); tc.asks > 0 && got > time.Second {
				t.Errorf("the clock is wrong by %s", got)
			}
		})
	}
}

func TestConfirmFailsWithoutAnAnswerOnly(t *testing.T) {
	away := errors.New("away")
	clock := servertime.New(clocktesting.NewFakePassiveClock(noon))
	clock.AskWith(func(context.Context) error { return away })
	if err := clock.Confirm(t.Context()); !errors.Is(err, away) {
		t.Errorf("got %v, want %v", err, away)
	}
	clock.AskWith(func(context.Context) error { return errors.Join(answer(clock, noon), errors.New("403 with a date")) })
	if err := clock.Confirm(t.Context()); err != nil {
		t.Errorf("an answer that refuses has a date all the same: %v", err)
	}
}

// answer lets a clock see an answer of a date.
func answer(clock *servertime.Clock, date time.Time) error {
	response, err := clock.Wrap(answers(date.Format(http.TimeFormat))).RoundTrip(nil)
	if err != nil {
		return err
	}
	return response.Body.Close()
}
