// Command release builds what a release of KICK consists of: the commands as static binaries for every platform, a
// CycloneDX SBOM for each of them, the packaged chart, the manifest it renders to, and checksums. Before it ends it reads
// all of that back and checks that it is what it claims to be.
//
// It needs nothing but Go, Helm and cyclonedx-gomod, whose binaries it is given.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
)

func main() {
	var r release
	flag.StringVar(&r.version, "version", "", "version to stamp, such as v1.2.0")
	flag.StringVar(&r.helm, "helm", "helm", "the helm command")
	flag.StringVar(&r.cyclonedx, "cyclonedx", "cyclonedx-gomod", "the cyclonedx-gomod command")
	flag.StringVar(&r.chart, "chart", "charts/kick", "folder of the chart")
	flag.StringVar(&r.commands, "commands", "cmd", "folder whose folders are the commands")
	flag.StringVar(&r.out, "out", "dist", "folder to write to; what was in it is removed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := r.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release is one set of things to publish.
type release struct {
	version                          string
	helm, cyclonedx                  string
	chart, commands, out             string
	binaries                         []binary
	chartArchive, manifest, checksum string // names of files in out
}

// run builds everything and checks it.
func (r *release) run(ctx context.Context) error {
	if err := r.plan(); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{
		r.buildBinaries, r.describeBinaries, r.packageChart, r.renderManifest, r.writeChecksums,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if err := r.check(ctx); err != nil {
		return fmt.Errorf("what was built is not what it should be: %w", err)
	}
	fmt.Printf("%s: %d binaries, the chart and the manifest of version %s\n", r.out, len(r.binaries), r.version)
	return nil
}

// plan decides what there will be, and makes room for it.
func (r *release) plan() error {
	if !validVersion.MatchString(r.version) {
		return fmt.Errorf("-version=%q is no version: it has to begin with a letter or a digit, have at most 63 characters, and "+
			"consist of letters, digits, dots, hyphens and underscores", r.version)
	}
	commands, err := commandsIn(r.commands)
	if err != nil {
		return err
	}
	for _, command := range commands {
		r.binaries = append(r.binaries, binariesOf(command)...)
	}
	r.chartArchive = fmt.Sprintf("%s-%s.tgz", filepath.Base(r.chart), chartVersion(r.version))
	r.manifest, r.checksum = "install.yaml", "SHA256SUMS"
	if err := r.clear(); err != nil {
		return err
	}
	return os.MkdirAll(r.out, 0o755)
}

// clear removes an earlier release, and refuses to remove anything else.
func (r *release) clear() error {
	entries, err := os.ReadDir(r.out)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look into -out: %w", err)
	}
	for _, entry := range entries {
		if entry.IsDir() {
			return fmt.Errorf("-out=%s holds the folder %s, which no release does: empty it yourself", r.out, entry.Name())
		}
	}
	return os.RemoveAll(r.out)
}
