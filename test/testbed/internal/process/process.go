// Package process starts processes that never outlive their owner, whatever
// way the owner ends, and that have a process group and a log of their own.
package process

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Spec says what to run.
type Spec struct {
	Path string
	Args []string
	// Env is the whole environment.
	Env []string
	Dir string
	// Log is the file that stdout and stderr are appended to.
	Log string
}

// Exit is how a process ended. Code follows the shells: 128 + signal for a
// process that was killed by a signal.
type Exit struct {
	Code   int
	Signal int
	At     time.Time
}

// Process is a process that was started.
type Process struct {
	cmd     *exec.Cmd
	started time.Time
	done    chan struct{}
	exit    Exit
}

// PID is also the id of the process group.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Started is the time of start.
func (p *Process) Started() time.Time { return p.started }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exit is how the process ended; it is meaningful only once Done is closed.
func (p *Process) Exit() Exit { return p.exit }

// Alive tells whether the process has not ended yet.
func (p *Process) Alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Signal sends a signal to the process and its children.
func (p *Process) Signal(signal syscall.Signal) error {
	if !p.Alive() {
		return fmt.Errorf("signal process %d: %w", p.PID(), os.ErrProcessDone)
	}
	if err := syscall.Kill(-p.PID(), signal); err != nil {
		return fmt.Errorf("signal process %d: %w", p.PID(), err)
	}
	return nil
}

// Pause freezes the process and its children, and returns when they stand still.
func (p *Process) Pause() error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	return awaitStopped(p.PID())
}

// Resume ends a Pause.
func (p *Process) Resume() error { return p.Signal(syscall.SIGCONT) }

// Stop asks the process to end, and kills it after the grace period.
func (p *Process) Stop(grace time.Duration) {
	_ = p.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(grace):
		p.Kill()
	}
}

// Kill ends the process at once and waits until it is gone.
func (p *Process) Kill() {
	_ = p.Signal(syscall.SIGKILL)
	<-p.done
}

// await records how the process ended.
func (p *Process) await() {
	_ = p.cmd.Wait()
	// Children that the process left behind are in its group.
	_ = syscall.Kill(-p.PID(), syscall.SIGKILL)
	p.exit = Exit{Code: p.cmd.ProcessState.ExitCode(), At: time.Now()}
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		p.exit.Signal = int(status.Signal())
		p.exit.Code = 128 + p.exit.Signal
	}
	close(p.done)
}
