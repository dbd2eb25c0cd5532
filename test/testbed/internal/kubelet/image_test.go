package kubelet

import "testing"

func TestImageIsPlayedByItsTagOrElseItsRepository(t *testing.T) {
	k := &Kubelet{Options: Options{Images: map[string]string{
		"registry:5000/a/b":    "any",
		"registry:5000/a/b:v2": "two",
		"nginx":                "web",
		"tagged:v1":            "one",
	}}}
	for image, want := range map[string]string{
		"nginx":                          "web",
		"nginx:1.27":                     "web",
		"registry:5000/a/b":              "any",
		"registry:5000/a/b:v1":           "any",
		"registry:5000/a/b:v2":           "two",
		"registry:5000/a/b:v2@sha256:00": "two",
		"registry:5000/a/b@sha256:00":    "any",
		"registry:5000/a":                "",
		"tagged:v1":                      "one",
		"tagged:v2":                      "",
	} {
		if got, _ := k.executable(image); got != want {
			t.Errorf("%s: want %q, got %q", image, want, got)
		}
	}
}
