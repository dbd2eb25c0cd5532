// Package watching tells whether the watches that fill the caches are alive. A cache whose watch cannot be established
// again goes on answering, from the past.
package watching

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// patience is how long a watch may be missing: watches end all the time and are back within a second.
	patience = 15 * time.Second
	// abandoned is how long after the last try a watch counts as given up on purpose. Tries are at most a minute apart.
	abandoned = 5 * time.Minute
)

// Watches follows every watch that passes through its transport. It is safe for concurrent use.
type Watches struct {
	clock clock.PassiveClock

	mu    sync.Mutex
	known map[string]*state
}

// state of the watches of one path of the API.
type state struct {
	open         int
	missing      time.Time // since when none is open
	tried        time.Time
	lastRejected string
}

// New returns a follower that has seen no watch yet.
func New(clock clock.PassiveClock) *Watches {
	return &Watches{clock: clock, known: map[string]*state{}}
}

// Check returns an error that names each watch that is missing, and why as far as is known. It fits healthz.Checker.
func (w *Watches) Check(*http.Request) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock.Now()
	var missing []string
	for _, path := range slices.Sorted(maps.Keys(w.known)) {
		s := w.known[path]
		blind := now.Sub(s.missing)
		if s.open > 0 || blind < patience || now.Sub(s.tried) >= abandoned {
			continue
		}
		missing = append(missing, fmt.Sprintf("%s for %s (%s)", path, blind.Truncate(time.Second), s.lastRejected))
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("no watch of %s", strings.Join(missing, ", "))
}

// Wrap returns a transport that reports the watches passing through. It fits rest.Config.Wrap.
func (w *Watches) Wrap(next http.RoundTripper) http.RoundTripper {
	return &follower{watches: w, next: next}
}

type follower struct {
	watches *Watches
	next    http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (f *follower) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet || request.URL.Query().Get("watch") == "" {
		return f.next.RoundTrip(request)
	}
	path := request.URL.Path
	f.watches.trying(path)
	response, err := f.next.RoundTrip(request)
	switch {
	case err != nil:
		f.watches.rejected(path, err.Error())
	case response.StatusCode != http.StatusOK:
		f.watches.rejected(path, response.Status)
	default:
		f.watches.opened(path)
		response.Body = &body{ReadCloser: response.Body, ended: sync.OnceFunc(func() { f.watches.closed(path) })}
	}
	return response, err
}

// WrappedRoundTripper implements the interface by which client-go finds the transport below a wrapper.
func (f *follower) WrappedRoundTripper() http.RoundTripper { return f.next }

func (w *Watches) trying(path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock.Now()
	if w.known[path] == nil {
		w.known[path] = &state{missing: now}
	}
	w.known[path].tried = now
}

func (w *Watches) rejected(path, why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.known[path].lastRejected = why
}

func (w *Watches) opened(path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.known[path].open++
	w.known[path].lastRejected = "it ended"
}

func (w *Watches) closed(path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.known[path]
	if s.open--; s.open == 0 {
		s.missing = w.clock.Now()
		s.tried = s.missing
	}
}

// body is the stream of a watch.
type body struct {
	io.ReadCloser
	ended func()
}

// Read implements io.Reader. A stream that fails is over, whoever closes it.
func (b *body) Read(buffer []byte) (int, error) {
	n, err := b.ReadCloser.Read(buffer)
	if err != nil {
		b.ended()
	}
	return n, err
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.ended()
	return b.ReadCloser.Close()
}
