package controllers

import (
	"fmt"
	"testing"
	"time"

	"github.com/kick-dev/kick/internal/cluster/source"
)

func TestWhatFailsForLongIsTriedOnceAMinute(t *testing.T) {
	limiter := retries[source.Key]()
	last := limiter.When(source.Key{Namespace: "shop"})
	if last > 10*time.Millisecond {
		t.Errorf("the first pause is %s", last)
	}
	for range 60 {
		next := limiter.When(source.Key{Namespace: "shop"})
		if next < last {
			t.Errorf("a pause of %s after one of %s", next, last)
		}
		last = next
	}
	if last != time.Minute {
		t.Errorf("the longest pause is %s, want a minute", last)
	}
	for i := range 5000 {
		if other := limiter.When(source.Key{Namespace: fmt.Sprint(i)}); other > 10*time.Millisecond {
			t.Fatalf("the first pause of key %d is %s: it waits for others", i, other)
		}
	}
}
