package kubelet

import "testing"

func TestRepositoryIsAnImageWithoutTagAndDigest(t *testing.T) {
	for image, want := range map[string]string{
		"nginx":                        "nginx",
		"nginx:1.27":                   "nginx",
		"registry:5000/a/b":            "registry:5000/a/b",
		"registry:5000/a/b:v1":         "registry:5000/a/b",
		"registry/a/b@sha256:00":       "registry/a/b",
		"registry:5000/a:v1@sha256:00": "registry:5000/a",
	} {
		if got := Repository(image); got != want {
			t.Errorf("%s: want %s, got %s", image, want, got)
		}
	}
}
