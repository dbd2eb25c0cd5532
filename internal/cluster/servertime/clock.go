// Package servertime tells the time of the API server's clock. Change times are compared with times that the API
// server wrote, so a node whose clock is wrong must not date them by its own.
package servertime

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// tolerance is the difference below which the local clock is taken as it is. The Date header has whole seconds and
// the answer takes its time, so a smaller difference means nothing.
const tolerance = 2 * time.Second

// trusted is for how long, by the local clock, an answer tells how that differs from the API server's. While anything is
// done, and while a Lease is renewed, answers come more often than that.
const trusted = 10 * time.Second

// Clock is the local clock corrected by the Date headers of the API server's answers. It is safe for concurrent use.
type Clock struct {
	local  clock.PassiveClock
	offset atomic.Int64
	// observed is what the local clock showed at the last answer, in nanoseconds of Unix time.
	observed atomic.Int64
	ask      func(context.Context) error
}

// New returns a clock that runs like local until it has seen an answer of the API server.
func New(local clock.PassiveClock) *Clock { return &Clock{local: local} }

// Now is the present time on the API server's clock, to about a second when the clocks disagree and as exact as the
// local clock when they agree.
func (c *Clock) Now() time.Time { return c.local.Now().Add(time.Duration(c.offset.Load())) }

// AskWith sets the request, through a transport that Wrap has returned, by which Confirm asks the API server. It is to be
// set before the clock is used.
func (c *Clock) AskWith(ask func(context.Context) error) { c.ask = ask }

// Confirm makes sure that Now is right at this moment: when the local clock has moved on since the last answer, or was set
// meanwhile, it asks the API server. Without it a clock that is set while nothing is asked of the API server stays wrong
// until something is. An error means that the API server did not answer.
func (c *Clock) Confirm(ctx context.Context) error {
	if c.ask == nil || c.confirmed() {
		return nil
	}
	if err := c.ask(ctx); err != nil && !c.confirmed() {
		return err
	}
	return nil
}

// confirmed compares what the clocks of the wall show: the monotonic clock would not tell that one was set.
func (c *Clock) confirmed() bool {
	return c.local.Now().Round(0).Sub(time.Unix(0, c.observed.Load())).Abs() < trusted
}

// Wrap returns a transport that learns the offset from the answers passing through. It fits rest.Config.Wrap.
func (c *Clock) Wrap(next http.RoundTripper) http.RoundTripper {
	return &observer{clock: c, next: next}
}

type observer struct {
	clock *Clock
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (o *observer) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := o.next.RoundTrip(request)
	if err == nil {
		if date, parseErr := http.ParseTime(response.Header.Get("Date")); parseErr == nil {
			o.clock.observe(date)
		}
	}
	return response, err
}

// observe compares the server's date, which has whole seconds, with the local clock.
func (c *Clock) observe(date time.Time) {
	local := c.local.Now()
	offset := date.Sub(local.Truncate(time.Second))
	if offset.Abs() <= tolerance {
		offset = 0
	}
	c.offset.Store(int64(offset))
	c.observed.Store(local.UnixNano())
}

// WrappedRoundTripper implements the interface by which client-go finds the transport below a wrapper.
func (o *observer) WrappedRoundTripper() http.RoundTripper { return o.next }
