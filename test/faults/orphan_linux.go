package faults

import (
	"os/exec"
	"runtime"
	"syscall"
)

// launches run on one thread that lives as long as the tests: the kernel ends a child when the thread that started it
// ends.
var launches = func() chan<- func() {
	queue := make(chan func())
	go func() {
		runtime.LockOSThread()
		for launch := range queue {
			launch()
		}
	}()
	return queue
}()

// launch starts a process that does not outlive the tests, however they end.
func launch(process *exec.Cmd) error {
	process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	result := make(chan error)
	launches <- func() { result <- process.Start() }
	return <-result
}
