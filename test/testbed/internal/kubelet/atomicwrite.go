package kubelet

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// dataLink is the name of the link that is swapped to change all files of a
// volume at once; programs that watch mounted certificates know it.
const dataLink = "..data"

// replaceAtomically gives a folder its content the way a kubelet does: the files
// are in a new hidden folder, ..data points to it, and each visible name is a
// link through ..data.
func replaceAtomically(folder string, content payload) error {
	fresh, err := os.MkdirTemp(folder, "..")
	if err != nil {
		return fmt.Errorf("create version: %w", err)
	}
	if err := os.Chmod(fresh, 0o755); err != nil {
		return fmt.Errorf("create version: %w", err)
	}
	for path, value := range content {
		file := filepath.Join(fresh, path)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return fmt.Errorf("create version: %w", err)
		}
		if err := os.WriteFile(file, value, 0o644); err != nil {
			return fmt.Errorf("create version: %w", err)
		}
	}
	link := filepath.Join(folder, dataLink)
	former, _ := os.Readlink(link)
	if err := replaceLink(filepath.Base(fresh), link); err != nil {
		return fmt.Errorf("swap version: %w", err)
	}
	if err := linkVisible(folder, content); err != nil {
		return err
	}
	if former == "" {
		return nil
	}
	return os.RemoveAll(filepath.Join(folder, former))
}

// linkVisible makes the visible names those of the content.
func linkVisible(folder string, content payload) error {
	names := map[string]bool{}
	for path := range content {
		name, _, _ := strings.Cut(path, "/")
		names[name] = true
	}
	for name := range names {
		err := os.Symlink(filepath.Join(dataLink, name), filepath.Join(folder, name))
		if err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("link file: %w", err)
		}
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("list volume: %w", err)
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), "..") || names[entry.Name()] {
			continue
		}
		if err := os.Remove(filepath.Join(folder, entry.Name())); err != nil {
			return fmt.Errorf("unlink file: %w", err)
		}
	}
	return nil
}

func replaceLink(target, link string) error {
	temporary := link + "_tmp"
	if err := os.Remove(temporary); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Symlink(target, temporary); err != nil {
		return err
	}
	return os.Rename(temporary, link)
}
