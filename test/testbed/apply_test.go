package testbed_test

import (
	"os"
	"path/filepath"
	"testing"
)

// apply applies manifests with kubectl.
func apply(t *testing.T, manifests string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "manifests.yaml")
	if err := os.WriteFile(file, []byte(manifests), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := shared.Kubectl(t.Context(), "apply", "-f", file); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
