package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"github.com/kick-dev/kick/test/testbed"
)

// up builds what is needed and starts a supervisor that outlives it.
func up(ctx context.Context, arguments []string) error {
	s, err := parseSettings("up", arguments)
	if err != nil {
		return err
	}
	_, running, err := testbed.Owner(s.dir)
	if err != nil {
		return err
	}
	if running {
		if err := healthy(ctx, s.dir); err != nil {
			return fmt.Errorf("a testbed that is not healthy runs in %s, stop it with down: %w", s.dir, err)
		}
		fmt.Printf("a healthy testbed runs in %s already\n", s.dir)
		return nil
	}
	if _, err := testbed.Build(ctx, testbed.BuildOptions{Cache: s.cache, Out: os.Stdout}); err != nil {
		return err
	}
	return startSupervisor(ctx, s)
}

// startSupervisor relays the progress of a new supervisor until it is ready.
func startSupervisor(ctx context.Context, s *settings) error {
	progress, progressWriter, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start supervisor: %w", err)
	}
	defer func() { _ = progress.Close() }()
	cmd, err := supervisorCommand(s, progressWriter)
	if err != nil {
		return fmt.Errorf("start supervisor: %w", err)
	}
	// As long as this process lives, the supervisor's stdin stays open.
	alive, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("start supervisor: %w", err)
	}
	defer func() { _ = alive.Close() }()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start supervisor: %w", err)
	}
	_ = progressWriter.Close()
	cancel := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	defer cancel()
	if relay(progress) {
		fmt.Printf("export KUBECONFIG=%s\n", kubeconfig(s.dir))
		return nil
	}
	_ = cmd.Wait()
	if ctx.Err() != nil {
		return errors.New("interrupted, nothing is left running")
	}
	return errors.New("the testbed did not start, nothing is left running")
}

func supervisorCommand(s *settings, progress *os.File) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	log, err := supervisorLog(s.dir)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, append([]string{"supervise"}, s.arguments()...)...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{progress}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd, nil
}

// relay copies progress to stdout, and tells whether it ended with readiness.
func relay(progress io.Reader) (ready bool) {
	lines := bufio.NewScanner(progress)
	for lines.Scan() {
		if lines.Text() == readyLine {
			return true
		}
		fmt.Println(lines.Text())
	}
	return false
}
