package main

import (
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// The manifest that a release fills in parses, and each platform says what krew needs to know.
func TestTheKrewManifestIsComplete(t *testing.T) {
	template, err := os.ReadFile("../../hack/release/kick.krew.yaml")
	if err != nil {
		t.Fatal(err)
	}
	filled := os.Expand(string(template), func(name string) string {
		if name == "VERSION" {
			return "v1.2.3"
		}
		if !strings.HasPrefix(name, "SHA256_") {
			t.Errorf("a release does not know %s", name)
		}
		return strings.Repeat("0", 64)
	})
	var manifest struct {
		APIVersion string
		Kind       string
		Metadata   struct{ Name string }
		Spec       struct {
			Version, ShortDescription, Description, Homepage, Caveats string
			Platforms                                                 []struct {
				Selector         struct{ MatchLabels map[string]string }
				URI, SHA256, Bin string
			}
		}
	}
	if err := yaml.UnmarshalStrict([]byte(filled), &manifest); err != nil {
		t.Fatal(err)
	}
	if manifest.Metadata.Name != "kick" || manifest.Spec.Version != "v1.2.3" || len(manifest.Spec.ShortDescription) > 50 {
		t.Errorf("%+v", manifest)
	}
	for _, platform := range manifest.Spec.Platforms {
		labels := platform.Selector.MatchLabels
		name := "kubectl-kick_v1.2.3_" + labels["os"] + "_" + labels["arch"] + ".tar.gz"
		if !strings.HasSuffix(platform.URI, "/v1.2.3/"+name) || len(platform.SHA256) != 64 || !strings.HasPrefix(platform.Bin, "kubectl-kick") {
			t.Errorf("%+v, want an archive %s", platform, name)
		}
	}
	if len(manifest.Spec.Platforms) == 0 {
		t.Error("no platform")
	}
}
