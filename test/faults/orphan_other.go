//go:build !linux

package faults

import (
	"os/exec"
	"syscall"
)

// launch starts a process. If the tests are killed it is left behind.
func launch(process *exec.Cmd) error {
	process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return process.Start()
}
