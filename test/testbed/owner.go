package testbed

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/kick-dev/kick/test/testbed/internal/filelock"
)

// lockFile is locked by the owner of a testbed and by all its processes, and
// holds the owner's process id.
func lockFile(dir string) string { return filepath.Join(dir, "lock") }

// own takes a folder for a testbed.
func own(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("create folder: %w", err)
	}
	lock, err := filelock.Try(lockFile(dir))
	if errors.Is(err, filelock.ErrHeld) {
		return nil, fmt.Errorf("a testbed runs in %s already", dir)
	}
	if err != nil {
		return nil, err
	}
	if err := lock.Truncate(0); err != nil {
		return nil, fmt.Errorf("take folder: %w", err)
	}
	if _, err := lock.WriteString(strconv.Itoa(os.Getpid())); err != nil {
		return nil, fmt.Errorf("take folder: %w", err)
	}
	return lock, nil
}

// Owner returns the id of the process that owns the testbed in dir. Running
// tells whether that process, or any process of the testbed, is still alive.
func Owner(dir string) (pid int, running bool, err error) {
	content, err := os.ReadFile(lockFile(dir))
	if errors.Is(err, os.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("find owner: %w", err)
	}
	lock, err := filelock.Try(lockFile(dir))
	if err == nil {
		return 0, false, lock.Close()
	}
	if !errors.Is(err, filelock.ErrHeld) {
		return 0, false, fmt.Errorf("find owner: %w", err)
	}
	pid, err = strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		return 0, true, fmt.Errorf("find owner: %w", err)
	}
	return pid, true, nil
}
