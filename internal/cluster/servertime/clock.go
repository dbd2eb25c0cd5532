// Package servertime tells the time of the API server's clock. Change times are compared with times that the API
// server wrote, so a node whose clock is wrong must not date them by its own.
package servertime

import (
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// tolerance is the difference below which the local clock is taken as it is. The Date header has whole seconds and
// the answer takes its time, so a smaller difference means nothing.
const tolerance = 2 * time.Second

// Clock is the local clock corrected by the Date headers of the API server's answers. It is safe for concurrent use.
type Clock struct {
	local  clock.PassiveClock
	offset atomic.Int64
}

// New returns a clock that runs like local until it has seen an answer of the API server.
func New(local clock.PassiveClock) *Clock { return &Clock{local: local} }

// Now is the present time on the API server's clock, to about a second when the clocks disagree and as exact as the
// local clock when they agree.
func (c *Clock) Now() time.Time { return c.local.Now().Add(time.Duration(c.offset.Load())) }

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
	offset := date.Sub(c.local.Now().Truncate(time.Second))
	if offset.Abs() <= tolerance {
		offset = 0
	}
	c.offset.Store(int64(offset))
}

// WrappedRoundTripper implements the interface by which client-go finds the transport below a wrapper.
func (o *observer) WrappedRoundTripper() http.RoundTripper { return o.next }
