//go:build !linux

package process

import "syscall"

// awaitStopped trusts that the kernel is quick.
func awaitStopped(int) error { return nil }

// attributes gives a process its own group, out of reach of a terminal's
// Ctrl-C. Only Linux can tie its life to that of its owner: elsewhere a
// process outlives an owner that was killed.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
