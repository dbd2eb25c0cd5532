package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"debug/buildinfo"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// check reads back what was built. All faults are named at once.
func (r *release) check(ctx context.Context) error {
	faults := []error{r.checkFiles(), r.checkSums(), r.checkChart(), r.checkManifest()}
	for _, b := range r.binaries {
		faults = append(faults, r.checkBinary(ctx, b), r.checkSBOM(b))
	}
	return errors.Join(faults...)
}

// checkFiles finds what is missing and what is too much.
func (r *release) checkFiles() error {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var found []string
	for _, entry := range entries {
		found = append(found, entry.Name())
	}
	want := append(r.published(), r.checksum)
	slices.Sort(want)
	if !slices.Equal(found, want) {
		return fmt.Errorf("%s holds %v, want %v", r.out, found, want)
	}
	return nil
}

// checkSums does what `sha256sum --check` does, and demands a sum for every file.
func (r *release) checkSums() error {
	list, err := os.ReadFile(r.path(r.checksum))
	if err != nil {
		return err
	}
	var faults []error
	var summed []string
	for line := range strings.Lines(string(list)) {
		want, file, found := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if !found {
			return fmt.Errorf("%s: line %q is no checksum", r.checksum, line)
		}
		summed = append(summed, file)
		if got, err := sumOf(r.path(file)); err != nil || got != want {
			faults = append(faults, fmt.Errorf("%s: the checksum of %s is %s, not %s: %w", r.checksum, file, got, want, err))
		}
	}
	slices.Sort(summed)
	if want := r.published(); !slices.Equal(summed, want) {
		faults = append(faults, fmt.Errorf("%s is about %v, want %v", r.checksum, summed, want))
	}
	return errors.Join(faults...)
}

// checkBinary demands a static binary for its platform, of the right version.
func (r *release) checkBinary(ctx context.Context, b binary) error {
	path := r.path(b.file())
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return err
	}
	settings := map[string]string{}
	for _, setting := range info.Settings {
		settings[setting.Key] = setting.Value
	}
	for key, want := range map[string]string{"GOOS": b.os, "GOARCH": b.arch, "CGO_ENABLED": "0"} {
		if settings[key] != want {
			return fmt.Errorf("%s was built with %s=%s, want %s", b.file(), key, settings[key], want)
		}
	}
	if !strings.HasSuffix(info.Path, "/"+b.command) {
		return fmt.Errorf("%s is the command %s", b.file(), info.Path)
	}
	if err := checkStatic(b, path); err != nil {
		return err
	}
	return r.checkVersion(ctx, b, path)
}

// checkVersion demands that the linker has put the version into a binary: there is nothing else in it, built like this, that
// could hold it. What this machine can run also has to say it; plugins of kubectl have no common way to ask them.
func (r *release) checkVersion(ctx context.Context, b binary, path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !bytes.Contains(content, []byte(r.version)) {
		return fmt.Errorf("%s does not hold the version %s", b.file(), r.version)
	}
	if b.os != runtime.GOOS || b.arch != runtime.GOARCH || strings.HasPrefix(b.command, kubectlPlugin) {
		return nil
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	said, err := command(ctx, nil, absolute, "--version")
	if err != nil {
		return err
	}
	if !slices.Contains(strings.Fields(said), r.version) {
		return fmt.Errorf("%s --version says %q, want %s", b.file(), strings.TrimSpace(said), r.version)
	}
	return nil
}

// checkStatic refuses a binary for Linux that needs a loader or a library: the image holds nothing else. Elsewhere the
// system's own libraries are part of it.
func checkStatic(b binary, path string) error {
	if b.os != "linux" {
		return nil
	}
	file, err := elf.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	for _, program := range file.Progs {
		if program.Type == elf.PT_INTERP || program.Type == elf.PT_DYNAMIC {
			return fmt.Errorf("%s is not static: it has a program header %s", b.file(), program.Type)
		}
	}
	return nil
}

// checkSBOM compares a bill of materials with the modules that the binary was linked from.
func (r *release) checkSBOM(b binary) error {
	var bill struct {
		BOMFormat, SpecVersion string
		Metadata               struct {
			Component struct{ Name, Version string }
		}
		Components []struct{ Name, Version, PURL string }
	}
	text, err := os.ReadFile(r.path(b.sbom()))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &bill); err != nil {
		return fmt.Errorf("%s: %w", b.sbom(), err)
	}
	if bill.BOMFormat != "CycloneDX" || bill.SpecVersion == "" {
		return fmt.Errorf("%s is no CycloneDX bill of materials", b.sbom())
	}
	if got := bill.Metadata.Component.Version; got != r.version {
		return fmt.Errorf("%s is about version %q, want %q", b.sbom(), got, r.version)
	}
	info, err := buildinfo.ReadFile(r.path(b.file()))
	if err != nil {
		return err
	}
	billed := map[string]string{}
	for _, component := range bill.Components {
		billed[component.Name] = component.Version
	}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		if billed[module.Path] != module.Version {
			return fmt.Errorf("%s says %q of module %s, which the binary has in version %s",
				b.sbom(), billed[module.Path], module.Path, module.Version)
		}
	}
	return nil
}

// checkChart reads the version that the packaged chart gives itself and its image.
func (r *release) checkChart() error {
	text, err := fileInArchive(r.path(r.chartArchive), releaseName+"/Chart.yaml")
	if err != nil {
		return err
	}
	var chart struct{ Version, AppVersion string }
	if err := yaml.Unmarshal(text, &chart); err != nil {
		return fmt.Errorf("%s: %w", r.chartArchive, err)
	}
	if chart.Version != chartVersion(r.version) || chart.AppVersion != r.version {
		return fmt.Errorf("%s has version %q and appVersion %q, want %q and %q",
			r.chartArchive, chart.Version, chart.AppVersion, chartVersion(r.version), r.version)
	}
	return nil
}

func fileInArchive(path, name string) ([]byte, error) {
	archive, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = archive.Close() }()
	unzipped, err := gzip.NewReader(bufio.NewReader(archive))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	files := tar.NewReader(unzipped)
	for {
		header, err := files.Next()
		if err != nil {
			return nil, fmt.Errorf("find %s in %s: %w", name, path, err)
		}
		if header.Name == name {
			return io.ReadAll(files)
		}
	}
}

// checkManifest demands what makes the manifest complete: the namespace first, the CRDs of the chart, and a Deployment of
// this version.
func (r *release) checkManifest() error {
	text, err := os.ReadFile(r.path(r.manifest))
	if err != nil {
		return err
	}
	kinds, image := map[string]int{}, ""
	for i, document := range strings.Split("\n"+string(text), "\n---") {
		var object struct {
			Kind string
			Spec struct {
				Template struct {
					Spec struct{ Containers []struct{ Image string } }
				}
			}
		}
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			return fmt.Errorf("%s: document %d: %w", r.manifest, i, err)
		}
		if i == 0 && object.Kind != "Namespace" {
			return fmt.Errorf("%s begins with a %s, want the namespace", r.manifest, object.Kind)
		}
		kinds[object.Kind]++
		for _, container := range object.Spec.Template.Spec.Containers {
			image = container.Image
		}
	}
	crds, err := filepath.Glob(filepath.Join(r.chart, "templates", "generated", "crd.*.yaml"))
	if err != nil {
		return err
	}
	if got := kinds["CustomResourceDefinition"]; got == 0 || got != len(crds) {
		return fmt.Errorf("%s has %d CRDs, the chart %d", r.manifest, got, len(crds))
	}
	if !strings.HasSuffix(image, ":"+r.version) {
		return fmt.Errorf("%s runs image %q, want version %s", r.manifest, image, r.version)
	}
	return nil
}
