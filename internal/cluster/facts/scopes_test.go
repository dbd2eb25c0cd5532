package facts

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kick-dev/kick/internal/cluster/source"
)

func TestOnlySourcesOfWatchedNamespacesAreLookedAtAgain(t *testing.T) {
	a, b := source.Key{Namespace: "a"}, source.Key{Namespace: "b"}
	for name, tc := range map[string]struct {
		watched []string
		want    []source.Key
	}{
		"all namespaces": {nil, []source.Key{a, b}},
		"one of them":    {[]string{"b", "kick-system"}, []source.Key{b}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Scopes{Watched: tc.watched}
			if diff := cmp.Diff(tc.want, s.Inside([]source.Key{a, b})); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
