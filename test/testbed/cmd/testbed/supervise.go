package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/kick-dev/kick/test/testbed"
)

const (
	// progressFile is the number of the open file that up reads progress from.
	progressFile = 3
	// readyLine ends the progress of a supervisor that is ready.
	readyLine = "\x04ready"
)

// supervise owns a testbed until it is told to end. Before the testbed is
// ready, the end of the up command that started it is such a sign, too.
func supervise(ctx context.Context, arguments []string) error {
	s, err := parseSettings("supervise", arguments)
	if err != nil {
		return err
	}
	progress := os.NewFile(progressFile, "progress")
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var ready atomic.Bool
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		if !ready.Load() {
			cancel()
		}
	}()

	t, err := startTestbed(ctx, s, progress)
	if err != nil {
		_, _ = fmt.Fprintln(progress, err)
		return err
	}
	ready.Store(true)
	_, _ = fmt.Fprintln(progress, readyLine)
	_ = progress.Close()
	<-ctx.Done()
	_ = os.Remove(stateFile(s.dir))
	return t.Stop(context.WithoutCancel(ctx))
}

func startTestbed(ctx context.Context, s *settings, progress io.Writer) (*testbed.Testbed, error) {
	binaries, err := testbed.Build(ctx, testbed.BuildOptions{Cache: s.cache})
	if err != nil {
		return nil, err
	}
	t, err := testbed.Start(ctx, testbed.Options{
		Dir:         s.dir,
		Binaries:    binaries,
		Nodes:       s.nodes,
		CertManager: s.certManager,
		Images:      s.images,
		Out:         progress,
	})
	if err != nil {
		return nil, err
	}
	if err := writeState(t, binaries); err != nil {
		_ = t.Stop(context.WithoutCancel(ctx))
		return nil, err
	}
	return t, nil
}

func supervisorLog(dir string) (*os.File, error) {
	path := filepath.Join(dir, "logs", "supervisor.log")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
}
