package testbed

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kick-dev/kick/test/testbed/internal/filelock"
)

// BuildOptions say where the binaries of the components are built to.
type BuildOptions struct {
	// Root is the root of KICK's repository; by default it is found by walking
	// up from the working folder.
	Root string
	// Cache is the folder of the built binaries, by default .cache/testbed in
	// the repository.
	Cache string
	// Out receives progress; nil discards it.
	Out io.Writer
}

// Build builds the components whose sources, modules or toolchain changed since
// the last call, and returns the binaries of all. The first build takes
// minutes, a call that finds everything up to date less than a second. Several
// calls may run at the same time, also in different processes.
func Build(ctx context.Context, options BuildOptions) (Binaries, error) {
	b, err := newBuilder(ctx, options)
	if err != nil {
		return Binaries{}, err
	}
	folders := map[string]string{}
	for _, p := range parts {
		if folders[p.name], err = b.ensure(ctx, p); err != nil {
			return Binaries{}, fmt.Errorf("build %s: %w", p.name, err)
		}
		if err := b.link(p, folders[p.name]); err != nil {
			return Binaries{}, fmt.Errorf("link %s: %w", p.name, err)
		}
	}
	return binariesIn(folders), nil
}

type builder struct {
	components string
	cache      string
	toolchain  string
	out        io.Writer
}

func newBuilder(ctx context.Context, options BuildOptions) (*builder, error) {
	root := options.Root
	if root == "" {
		var err error
		if root, err = repositoryRoot(); err != nil {
			return nil, err
		}
	}
	b := &builder{
		components: filepath.Join(root, "test", "testbed", "components"),
		cache:      options.Cache,
		out:        options.Out,
	}
	if b.cache == "" {
		b.cache = filepath.Join(root, ".cache", "testbed")
	}
	if b.out == nil {
		b.out = io.Discard
	}
	var err error
	if b.cache, err = filepath.Abs(b.cache); err != nil {
		return nil, fmt.Errorf("find the cache: %w", err)
	}
	if b.toolchain, err = toolchain(ctx, b.components); err != nil {
		return nil, err
	}
	return b, nil
}

// ensure returns the folder of a part's binary, and builds it if it is not
// there yet.
func (b *builder) ensure(ctx context.Context, p part) (string, error) {
	source := filepath.Join(b.components, p.name)
	hash, err := contentHash(source, b.toolchain)
	if err != nil {
		return "", err
	}
	versions := filepath.Join(b.cache, p.name)
	if err := os.MkdirAll(versions, 0o755); err != nil {
		return "", fmt.Errorf("create cache: %w", err)
	}
	lock, err := filelock.Wait(ctx, versions+".lock")
	if err != nil {
		return "", err
	}
	defer func() { _ = lock.Close() }()

	folder := filepath.Join(versions, hash)
	if _, err := os.Stat(folder); err == nil {
		report(b.out, p.name, "up to date")
		return folder, nil
	}
	began := time.Now()
	if err := b.build(ctx, p, source, folder); err != nil {
		return "", err
	}
	report(b.out, p.name, "built in %s", time.Since(began).Round(time.Second))
	return folder, removeOthers(versions, hash)
}

// build fills a temporary folder and renames it, so that a folder with its
// final name is always complete.
func (b *builder) build(ctx context.Context, p part, source, folder string) error {
	temporary := folder + temporarySuffix
	if err := os.RemoveAll(temporary); err != nil {
		return fmt.Errorf("clean up: %w", err)
	}
	stopProgress := reportEvery(b.out, 15*time.Second, p.name)
	err := compile(ctx, source, p.target, filepath.Join(temporary, p.name))
	stopProgress()
	if err != nil {
		return err
	}
	for _, command := range p.commands {
		if command == p.name {
			continue
		}
		if err := os.Symlink(p.name, filepath.Join(temporary, command)); err != nil {
			return fmt.Errorf("name command %s: %w", command, err)
		}
	}
	for name, from := range p.manifests {
		if err := copyModuleFolder(ctx, source, from, filepath.Join(temporary, name)); err != nil {
			return err
		}
	}
	if err := os.Rename(temporary, folder); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// link makes the commands of a part available under the cache's bin folder,
// for use by hand.
func (b *builder) link(p part, folder string) error {
	bin := filepath.Join(b.cache, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	for _, command := range p.commands {
		target, err := filepath.Rel(bin, filepath.Join(folder, command))
		if err != nil {
			return err
		}
		name := filepath.Join(bin, command)
		if current, err := os.Readlink(name); err == nil && current == target {
			continue
		}
		temporary := fmt.Sprintf("%s.%d%s", name, os.Getpid(), temporarySuffix)
		if err := os.Symlink(target, temporary); err != nil {
			return err
		}
		if err := os.Rename(temporary, name); err != nil {
			return err
		}
	}
	return nil
}

const temporarySuffix = ".tmp"

// removeOthers removes the builds of former contents.
func removeOthers(versions, keep string) error {
	entries, err := os.ReadDir(versions)
	if err != nil {
		return fmt.Errorf("clean up former builds: %w", err)
	}
	for _, entry := range entries {
		if strings.TrimSuffix(entry.Name(), temporarySuffix) == keep {
			continue
		}
		if err := os.RemoveAll(filepath.Join(versions, entry.Name())); err != nil {
			return fmt.Errorf("clean up former builds: %w", err)
		}
	}
	return nil
}

// report writes a line of progress. A build does not fail for want of readers.
func report(out io.Writer, name, format string, arguments ...any) {
	_, _ = fmt.Fprintf(out, "%-12s %s\n", name, fmt.Sprintf(format, arguments...))
}

// reportEvery writes a line of progress at an interval, until the returned
// function is called.
func reportEvery(out io.Writer, interval time.Duration, name string) (stop func()) {
	began, done, ended := time.Now(), make(chan struct{}), make(chan struct{})
	report(out, name, "building")
	go func() {
		defer close(ended)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				report(out, name, "building (%s)", time.Since(began).Round(time.Second))
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}
