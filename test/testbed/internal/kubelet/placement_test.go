package kubelet

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// newPlaced is a container with one mapped port and nested mounts.
func newPlaced() *container {
	w := &worker{ip: "10.244.0.7", volumes: newVolumes(nil, "/real", "")}
	return &container{
		worker: w,
		spec: corev1.Container{VolumeMounts: []corev1.VolumeMount{
			{Name: "etc", MountPath: "/etc/kick"},
			{Name: "certs", MountPath: "/etc/kick/certs"},
			{Name: "one", MountPath: "/one", SubPath: "sub/file"},
		}},
		ports: map[int32]int{8443: 20001},
	}
}

func TestValuesArePlacedOnThisMachine(t *testing.T) {
	for value, want := range map[string]string{
		"/etc/kick":               "/real/etc",
		"/etc/kick/certs/tls.crt": "/real/certs/tls.crt",
		"/etc/kickstart":          "/etc/kickstart",
		"/one":                    "/real/one/sub/file",
		"8443":                    "20001",
		":8443":                   "127.0.0.1:20001",
		"0.0.0.0:8443":            "127.0.0.1:20001",
		"10.244.0.7:8443":         "127.0.0.1:20001",
		"elsewhere:8443":          "elsewhere:8443",
		":9443":                   ":9443",
		"84430":                   "84430",
		"plain":                   "plain",
	} {
		if got := newPlaced().place(value); got != want {
			t.Errorf("%s: want %s, got %s", value, want, got)
		}
	}
}

func TestArgumentsArePlacedByTheirValues(t *testing.T) {
	c := newPlaced()
	c.spec.Command = []string{"/manager", "run"}
	c.spec.Args = []string{"--port=8443", "--certs=$(CERTS)", "a=8443", "--on"}
	got := c.arguments(map[string]string{"CERTS": "/etc/kick/certs"})
	want := []string{"run", "--port=20001", "--certs=/real/certs", "a=8443", "--on"}
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			t.Fatalf("want %q, got %q", want, got)
		}
	}
}

func TestVariablesAreExpanded(t *testing.T) {
	variables := map[string]string{"A": "1", "B": "2"}
	for text, want := range map[string]string{
		"$(A)-$(B)": "1-2",
		"$(C)":      "$(C)",
		"$$(A)":     "$(A)",
		"$A $":      "$A $",
		"$(A":       "$(A",
		"$(C) $(A)": "$(C) 1",
	} {
		if got := expand(text, variables); got != want {
			t.Errorf("%s: want %s, got %s", text, want, got)
		}
	}
}
