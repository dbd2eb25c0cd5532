package testbed

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// buildFlags make a binary that is the same wherever it is built.
var buildFlags = []string{"-trimpath", "-buildvcs=false"}

// linkFlags are those of every component; a file "ldflags" in its folder holds
// more, such as a version to report.
const (
	linkFlags     = "-s -w"
	linkFlagsFile = "ldflags"
)

// contentHash identifies what a component is built from: its sources, its
// module files (and with them all dependencies), the flags and the toolchain.
func contentHash(source, toolchain string) (string, error) {
	entries, err := os.ReadDir(source)
	if err != nil {
		return "", fmt.Errorf("read sources: %w", err)
	}
	hash := sha256.New()
	_, _ = fmt.Fprintln(hash, toolchain, runtime.GOOS, runtime.GOARCH, buildFlags, linkFlags)
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(source, entry.Name()))
		if err != nil {
			return "", fmt.Errorf("read sources: %w", err)
		}
		_, _ = fmt.Fprintln(hash, entry.Name(), len(content))
		hash.Write(content)
	}
	return hex.EncodeToString(hash.Sum(nil))[:16], nil
}

// toolchain is the version of the Go toolchain that builds the components.
func toolchain(ctx context.Context, folder string) (string, error) {
	version, err := goTool(ctx, folder, "env", "GOVERSION")
	if err != nil {
		return "", fmt.Errorf("ask for the toolchain: %w", err)
	}
	return version, nil
}

func compile(ctx context.Context, source, target, output string) error {
	more, err := os.ReadFile(filepath.Join(source, linkFlagsFile))
	if err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("read link flags: %w", err)
	}
	flags := strings.Join(append([]string{linkFlags}, strings.Fields(string(more))...), " ")
	arguments := append([]string{"build", "-o", output, "-ldflags", flags}, buildFlags...)
	_, err = goTool(ctx, source, append(arguments, target)...)
	return err
}

func copyModuleFolder(ctx context.Context, source string, from moduleFolder, to string) error {
	root, err := goTool(ctx, source, "list", "-m", "-f", "{{.Dir}}", from.module)
	if err != nil {
		return fmt.Errorf("locate %s: %w", from.module, err)
	}
	if err := os.CopyFS(to, os.DirFS(filepath.Join(root, from.folder))); err != nil {
		return fmt.Errorf("copy %s: %w", from.folder, err)
	}
	return nil
}

// goTool runs the go command in a folder and returns what it prints.
func goTool(ctx context.Context, folder string, arguments ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", arguments...)
	cmd.Dir = folder
	// The components are modules of their own, whatever workspace is in use.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	// The compilers that go starts have to end with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", arguments[0], err, lastLines(&stderr, 20))
	}
	return strings.TrimSpace(stdout.String()), nil
}

// lastLines returns up to n lines from the end of a text.
func lastLines(text io.Reader, n int) string {
	content, err := io.ReadAll(text)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
