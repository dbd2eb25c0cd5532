package intern_test

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/kick-dev/kick/internal/cluster/intern"
)

// address of the bytes of a string.
func address(text string) *byte { return unsafe.StringData(text) }

func TestEqualStringsShareOneCopy(t *testing.T) {
	whole := strings.Repeat("x", 100) + "shop"
	first, second := intern.String(whole[100:]), intern.String(strings.Clone("shop"))
	if first != "shop" || address(first) != address(second) {
		t.Errorf("%q and %q are two copies", first, second)
	}
	if address(first) == address(whole[100:]) {
		t.Error("the copy keeps alive the text that it was cut from")
	}
	if got := intern.String(""); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}

func TestALongStringIsLeftAlone(t *testing.T) {
	long := strings.Repeat("x", 1000)
	if got := intern.String(long); address(got) != address(long) {
		t.Error("it was copied")
	}
}

func TestEqualMapsShareOneCopy(t *testing.T) {
	first := intern.Map(map[string]string{"app": "web", "tier": "front"})
	second := intern.Map(map[string]string{"tier": "front", "app": "web"})
	if reflect.ValueOf(first).Pointer() != reflect.ValueOf(second).Pointer() {
		t.Error("they are two copies")
	}
	other := intern.Map(map[string]string{"app": "web", "tier": "back"})
	if other["tier"] != "back" || first["tier"] != "front" {
		t.Errorf("%v is taken for %v", other, first)
	}
	shifted := intern.Map(map[string]string{"app": "webtier", "": "front"})
	if !maps.Equal(shifted, map[string]string{"app": "webtier", "": "front"}) {
		t.Errorf("%v is taken for %v", shifted, first)
	}
	if got := intern.Map(nil); got != nil {
		t.Errorf("of none: %v", got)
	}
	if got := intern.Map(map[string]string{}); got == nil {
		t.Error("an empty map has become none")
	}
}

// However many values come, and from however many sides, each is what it was.
func TestValuesSurviveWhenManyOthersCome(t *testing.T) {
	var group sync.WaitGroup
	for side := range 4 {
		group.Go(func() {
			for i := range 10000 {
				text := fmt.Sprintf("%d-%d", side, i)
				if got := intern.String(strings.Clone(text)); got != text {
					t.Errorf("%q has become %q", text, got)
				}
				if got := intern.Map(map[string]string{"name": text}); len(got) != 1 || got["name"] != text {
					t.Errorf("the map of %q has become %v", text, got)
				}
			}
		})
	}
	group.Wait()
}
