// Package filelock holds advisory locks on files. A lock belongs to the open
// file, so it also lives as long as any process that inherited that file.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// interval is the time between two attempts of Wait.
const interval = 100 * time.Millisecond

// ErrHeld is returned by Try when somebody else holds the lock.
var ErrHeld = errors.New("lock is held")

// Try takes the lock on path and returns the open file that holds it: closing
// the file gives the lock back.
func Try(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return file, nil
	}
	_ = file.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, ErrHeld
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}

// Wait takes the lock on path as soon as nobody else holds it.
func Wait(ctx context.Context, path string) (*os.File, error) {
	for {
		file, err := Try(path)
		if !errors.Is(err, ErrHeld) {
			return file, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for lock %s: %w", path, ctx.Err())
		case <-time.After(interval):
		}
	}
}
