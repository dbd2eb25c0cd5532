package text_test

import (
	"strings"
	"testing"
	"time"

	"github.com/kick-dev/kick/internal/kubectl/text"
)

func TestDuration(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0s": 0, "40s": 40 * time.Second, "1m40s": 100 * time.Second, "10m": 10 * time.Minute, "2h": 2 * time.Hour, "10h30m": 630 * time.Minute,
		"1h0m10s": time.Hour + 10*time.Second,
	} {
		if got := text.Duration(d); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestATableKeepsItsShapeWhateverIsInIt(t *testing.T) {
	var out strings.Builder
	w := text.NewWriter(&out)
	w.Table(func(row func(cells ...string)) {
		row("a\tb", "c\nd", "")
		row("a", "c", "e")
	})
	if want := "a b   c d\na     c     e\n"; out.String() != want || w.Err() != nil {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
