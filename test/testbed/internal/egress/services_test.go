package egress

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestServiceHasItsDNSNames(t *testing.T) {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}
	for host, want := range map[string]bool{
		"web.ns":                   true,
		"web.ns.svc":               true,
		"web.ns.svc.cluster.local": true,
		"web.ns2.svc":              false,
		"other.ns.svc":             false,
		"web":                      false,
	} {
		if got := isNameOf(host, service); got != want {
			t.Errorf("%s: want %t, got %t", host, want, got)
		}
	}
}
