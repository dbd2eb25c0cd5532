package kubelet

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestVolumeIsReplacedAtOnce(t *testing.T) {
	dir := t.TempDir()
	for _, content := range []payload{
		{"a": []byte("1"), "deep/b": []byte("2")},
		{"a": []byte("3")},
		{"c": []byte("4")},
	} {
		if err := replaceAtomically(dir, content); err != nil {
			t.Fatal(err)
		}
		for name, want := range content {
			got, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: want %s, got %s, %v", name, want, got, err)
			}
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	// The link, its target, and the one visible name.
	if len(entries) != 3 {
		t.Errorf("want nothing of former versions, got %v", entries)
	}
}
