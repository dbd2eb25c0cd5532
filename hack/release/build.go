package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

func (r *release) path(file string) string { return filepath.Join(r.out, file) }

// buildBinaries compiles every command for its platforms. The same sources and the same Go make the same binaries.
func (r *release) buildBinaries(ctx context.Context) error {
	for _, b := range r.binaries {
		environment := []string{"CGO_ENABLED=0", "GOOS=" + b.os, "GOARCH=" + b.arch}
		_, err := command(ctx, environment, "go", "build", "-tags", "grpcnotrace", "-trimpath", "-buildvcs=false",
			"-ldflags", "-s -w -X main.version="+r.version, "-o", r.path(b.file()), "./"+filepath.Join(r.commands, b.command))
		if err != nil {
			return fmt.Errorf("build %s: %w", b.file(), err)
		}
	}
	return nil
}

// describeBinaries writes the bills of materials, from what each binary itself says it was built from.
func (r *release) describeBinaries(ctx context.Context) error {
	for _, b := range r.binaries {
		_, err := command(ctx, nil, r.cyclonedx, "bin", "-json", "-noserial", "-version", r.version,
			"-output", r.path(b.sbom()), r.path(b.file()))
		if err != nil {
			return fmt.Errorf("describe %s: %w", b.file(), err)
		}
	}
	return nil
}

func (r *release) packageChart(ctx context.Context) error {
	_, err := r.helmCommand(ctx, "package", r.chart, "--version", chartVersion(r.version), "--app-version", r.version,
		"--destination", r.out)
	if err != nil {
		return fmt.Errorf("package the chart: %w", err)
	}
	return nil
}

// The release that the manifest is of.
const (
	releaseName      = "kick"
	releaseNamespace = "kick-system"
)

// manifestHead is what Helm does not render.
const manifestHead = `# KICK %s, rendered from its chart with the values it has by default. Needs cert-manager.
apiVersion: v1
kind: Namespace
metadata:
  name: %s
`

func (r *release) renderManifest(ctx context.Context) error {
	rendered, err := r.helmCommand(ctx, "template", releaseName, r.path(r.chartArchive), "--namespace", releaseNamespace,
		"--api-versions", "cert-manager.io/v1")
	if err != nil {
		return fmt.Errorf("render the chart: %w", err)
	}
	text := fmt.Sprintf(manifestHead, r.version, releaseNamespace) + rendered
	return os.WriteFile(r.path(r.manifest), []byte(text), 0o644) //nolint:gosec // to be published
}

// helmCommand runs Helm with no settings of whoever runs it.
func (r *release) helmCommand(ctx context.Context, arguments ...string) (string, error) {
	home, err := os.MkdirTemp("", "kick-release-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(home) }()
	environment := []string{"HELM_CONFIG_HOME=" + home, "HELM_CACHE_HOME=" + home, "HELM_DATA_HOME=" + home, "KUBECONFIG=" + os.DevNull}
	return command(ctx, environment, r.helm, arguments...)
}

// published are the files that have a checksum.
func (r *release) published() []string {
	files := []string{r.chartArchive, r.manifest}
	for _, b := range r.binaries {
		files = append(files, b.file(), b.sbom())
	}
	slices.Sort(files)
	return files
}

// writeChecksums writes what `sha256sum --check` reads.
func (r *release) writeChecksums(context.Context) error {
	var list strings.Builder
	for _, file := range r.published() {
		sum, err := sumOf(r.path(file))
		if err != nil {
			return err
		}
		fmt.Fprintf(&list, "%s  %s\n", sum, file)
	}
	return os.WriteFile(r.path(r.checksum), []byte(list.String()), 0o644) //nolint:gosec // to be published
}

func sumOf(path string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("sum: %w", err)
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), nil
}

// command runs a program and returns what it writes to its standard output.
func command(ctx context.Context, environment []string, name string, arguments ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, name, arguments...) //nolint:gosec // what is run is given by whoever makes the release
	cmd.Env = append(os.Environ(), environment...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(arguments, " "), err, stderr.String())
	}
	return stdout.String(), nil
}
