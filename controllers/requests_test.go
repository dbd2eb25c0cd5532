package controllers

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kick-dev/kick/api/v1alpha1"
)

func TestAWrittenRequestIsRememberedUntilTheCacheShowsIt(t *testing.T) {
	at := func(version string) *v1alpha1.KickRequest {
		return &v1alpha1.KickRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "deployment-web", ResourceVersion: version}}
	}
	for name, tc := range map[string]struct {
		shown string
		want  int
	}{
		"the version before it": {"6", 1},
		"its own version":       {"7", 0},
		"a later version":       {"8", 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRequests(nil)
			r.remember(at("7"))
			r.shown(at(tc.shown))
			if got := len(r.written); got != tc.want {
				t.Errorf("%d requests are remembered, want %d", got, tc.want)
			}
		})
	}
}
