package watching_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"

	"github.com/kick-dev/kick/internal/cluster/watching"
)

// answers plays the API server: a status code for each request, or an error for zero.
type answers []int

func (a *answers) RoundTrip(*http.Request) (*http.Response, error) {
	code := (*a)[0]
	*a = (*a)[1:]
	if code == 0 {
		return nil, errors.New("connection refused")
	}
	return &http.Response{StatusCode: code, Status: http.StatusText(code), Body: io.NopCloser(strings.NewReader("{}"))}, nil
}

const secretsPath = "/api/v1/secrets"

func TestAMissingWatchIsNamedOnceItIsMissingForAWhile(t *testing.T) {
	type step struct {
		url   string
		code  int
		ends  bool // the stream breaks off
		after time.Duration
	}
	watch := secretsPath + "?watch=true"
	for name, tc := range map[string]struct {
		steps []step
		want  string // in the error; empty for none
	}{
		"a watch that is open":                   {[]step{{url: watch, code: 200, after: time.Hour}}, ""},
		"a watch that has just ended":            {[]step{{url: watch, code: 200, ends: true, after: time.Second}}, ""},
		"a watch that ended long ago":            {[]step{{url: watch, code: 200, ends: true, after: 20 * time.Second}}, "no watch of " + secretsPath + " for 20s (it ended)"},
		"a watch that is back":                   {[]step{{url: watch, code: 200, ends: true, after: 20 * time.Second}, {url: watch, code: 200}}, ""},
		"one of two watches of a path ended":     {[]step{{url: watch, code: 200}, {url: watch, code: 200, ends: true, after: time.Minute}}, ""},
		"a watch that is forbidden":              {[]step{{url: watch, code: 403, after: 20 * time.Second}}, "Forbidden"},
		"no API server":                          {[]step{{url: watch, after: 20 * time.Second}}, "connection refused"},
		"tries that go on":                       {[]step{{url: watch, after: 4 * time.Minute}, {url: watch, after: 4 * time.Minute}}, "for 8m0s"},
		"a watch that is not tried for any more": {[]step{{url: watch, after: 10 * time.Minute}}, ""},
		"a request that is no watch":             {[]step{{url: secretsPath, code: 403, after: 20 * time.Second}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			clock := testclock.NewFakePassiveClock(time.Unix(1e9, 0))
			watches, server := watching.New(clock), &answers{}
			transport := watches.Wrap(server)
			for _, s := range tc.steps {
				*server = append(*server, s.code)
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://server"+s.url, http.NoBody)
				if err != nil {
					t.Fatal(err)
				}
				response, err := transport.RoundTrip(request)
				if err == nil && s.ends {
					_, _ = io.ReadAll(response.Body)
				}
				if err == nil && s.ends {
					_ = response.Body.Close()
				}
				clock.SetTime(clock.Now().Add(s.after))
			}
			err := watches.Check(nil)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}
