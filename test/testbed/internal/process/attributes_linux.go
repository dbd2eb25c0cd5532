package process

import "syscall"

// attributes gives a process its own group, out of reach of a terminal's
// Ctrl-C, and lets the kernel kill it when its owner is gone.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
