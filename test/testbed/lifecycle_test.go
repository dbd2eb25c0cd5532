package testbed_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/kick-dev/kick/test/testbed"
)

// leftovers are the processes that work in dir or name it in their command.
func leftovers(dir string) []string {
	var found []string
	entries, _ := filepath.Glob("/proc/[0-9]*")
	for _, entry := range entries {
		command, _ := os.ReadFile(filepath.Join(entry, "cmdline"))
		folder, _ := os.Readlink(filepath.Join(entry, "cwd"))
		if strings.Contains(string(command), dir) || strings.HasPrefix(folder, dir) {
			found = append(found, fmt.Sprintf("%s %s", filepath.Base(entry), bytes.ReplaceAll(command, []byte{0}, []byte{' '})))
		}
	}
	return found
}

func awaitNoLeftovers(t *testing.T, dir string) {
	t.Helper()
	eventually(t, func() error {
		if found := leftovers(dir); len(found) > 0 {
			return fmt.Errorf("left running: %s", strings.Join(found, "\n"))
		}
		return nil
	})
}

func TestNothingIsLeftAfterStop(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a folder whose path is too long for a unix socket", strings.Repeat("x", 100))
	second, err := testbed.Start(t.Context(), testbed.Options{Dir: dir, Binaries: shared.binaries, Nodes: 1})
	if err != nil {
		t.Fatal(err)
	}
	if len(leftovers(dir)) < 5 {
		t.Errorf("want all components, got %v", leftovers(dir))
	}
	if _, err := testbed.Start(t.Context(), testbed.Options{Dir: dir, Binaries: shared.binaries}); err == nil {
		t.Error("want a refusal to start twice in a folder")
	}
	if err := second.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if found := leftovers(dir); len(found) > 0 {
		t.Errorf("left running: %v", found)
	}
}

func TestFailedStartTellsWhyAndLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	binaries := shared.binaries
	binaries.Scheduler = shared.manager
	_, err := testbed.Start(t.Context(), testbed.Options{Dir: dir, Binaries: binaries})
	var failed *testbed.StartError
	const complaint = "flag provided but not defined"
	if !errors.As(err, &failed) || failed.Component != testbed.Scheduler || !strings.Contains(failed.Tail, complaint) {
		t.Errorf("want the log of the scheduler, got %v", err)
	}
	if found := leftovers(dir); len(found) > 0 {
		t.Errorf("left running: %v", found)
	}
}

// command runs the testbed command, and returns what it prints.
func command(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), shared.command, arguments...).CombinedOutput()
	return string(out), err
}

func TestCommandLeavesNothingWhenItsOwnerIsKilled(t *testing.T) {
	dir := t.TempDir()
	image := "--image=" + managerImage + "=" + shared.manager
	if out, err := command(t, "up", "--dir="+dir, "--nodes=1", image); err != nil {
		t.Fatalf("up: %v\n%s", err, out)
	}
	if out, err := command(t, "up", "--dir="+dir); err != nil || !strings.Contains(out, "already") {
		t.Errorf("up again: %v\n%s", err, out)
	}
	if out, err := command(t, "kubectl", "--dir="+dir, "--", "get", "nodes", "-o", "name"); err != nil || out != "node/node-0\n" {
		t.Errorf("kubectl: %v\n%s", err, out)
	}
	startProcessPod(t, dir)

	pid, running, err := testbed.Owner(dir)
	if err != nil || !running {
		t.Fatalf("want an owner, got %v, %v", running, err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	awaitNoLeftovers(t, dir)
	if out, err := command(t, "down", "--dir="+dir); err != nil {
		t.Errorf("down: %v\n%s", err, out)
	}
}

// startProcessPod starts a Pod as a process in the testbed of another process.
func startProcessPod(t *testing.T, dir string) {
	t.Helper()
	run := []string{"kubectl", "--dir=" + dir, "--", "run", "manager", "--image=" + managerImage, "--port=8081",
		"--", "--health-probe-bind-address=:8081"}
	if out, err := command(t, run...); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := command(t, "kubectl", "--dir="+dir, "--", "wait", "pod/manager", "--for=condition=Ready"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func TestCommandStopsATestbed(t *testing.T) {
	dir := t.TempDir()
	if out, err := command(t, "up", "--dir="+dir, "--nodes=1"); err != nil {
		t.Fatalf("up: %v\n%s", err, out)
	}
	if out, err := command(t, "status", "--dir="+dir); err != nil {
		t.Errorf("status: %v\n%s", err, out)
	}
	for range 2 {
		if out, err := command(t, "down", "--dir="+dir); err != nil {
			t.Errorf("down: %v\n%s", err, out)
		}
		if found := leftovers(dir); len(found) > 0 {
			t.Errorf("left running: %v", found)
		}
	}
}

func TestInterruptedCommandLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(shared.command, "up", "--dir="+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		if _, err := os.Stat(filepath.Join(dir, "logs", "kube-apiserver.log")); err != nil {
			return err
		}
		return cmd.Process.Signal(os.Interrupt)
	})
	if err := cmd.Wait(); err == nil {
		t.Error("want up to fail")
	}
	if found := leftovers(dir); len(found) > 0 {
		t.Errorf("left running: %v", found)
	}
}
