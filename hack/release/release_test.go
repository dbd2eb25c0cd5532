package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestChartVersionsAreSemantic(t *testing.T) {
	for version, want := range map[string]string{
		"v1.2.3":               "1.2.3",
		"1.2.3":                "1.2.3",
		"v1.2.3-rc.1":          "1.2.3-rc.1",
		"v1.2.3-4-gabcdef0":    "1.2.3-4-gabcdef0",
		"abcdef0":              "0.0.0-gabcdef0",
		"0123456":              "0.0.0-g0123456",
		"0123456-dirty":        "0.0.0-g0123456-dirty",
		"v1.2":                 "0.0.0-gv1.2",
		"nightly_2026":         "0.0.0-gnightly-2026",
		"v01.2.3":              "0.0.0-gv01.2.3",
		"v1.2.3-01":            "0.0.0-gv1.2.3-01",
		"v1.2.3-4-gabc-dirty":  "1.2.3-4-gabc-dirty",
		"v10.20.30-alpha.beta": "10.20.30-alpha.beta",
	} {
		got := chartVersion(version)
		if got != want {
			t.Errorf("chartVersion(%q) = %q, want %q", version, got, want)
		}
		if !semver.MatchString(got) {
			t.Errorf("chartVersion(%q) = %q is no semantic version", version, got)
		}
	}
}

func TestVersionsThatNoLabelCanHoldAreRefused(t *testing.T) {
	for _, version := range []string{"", "-1", "v1.0.0+build", "v1 0", "a/b", strings.Repeat("a", 64), "v1."} {
		r := release{version: version, commands: "../../cmd", out: t.TempDir()}
		if err := r.plan(); err == nil || !strings.Contains(err.Error(), "-version") {
			t.Errorf("version %q: %v", version, err)
		}
	}
}

func TestAFolderThatIsNoReleaseIsLeftAlone(t *testing.T) {
	out := t.TempDir()
	if err := os.MkdirAll(filepath.Join(out, "precious"), 0o755); err != nil {
		t.Fatal(err)
	}
	r := release{version: "v1.0.0", commands: "../../cmd", out: out}
	if err := r.plan(); err == nil || !strings.Contains(err.Error(), "precious") {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(out, "precious")); err != nil {
		t.Error(err)
	}
}

func TestCommandsForPeopleAreBuiltForTheirMachines(t *testing.T) {
	systems := func(command string) string {
		var all []string
		for _, b := range binariesOf(command) {
			all = append(all, b.file())
		}
		return strings.Join(all, " ")
	}
	if got := systems("manager"); strings.Contains(got, "windows") || !strings.Contains(got, "manager_linux_arm64") {
		t.Error(got)
	}
	if got := systems("kubectl-kick"); !strings.Contains(got, "kubectl-kick_windows_amd64.exe") ||
		!strings.Contains(got, "kubectl-kick_darwin_arm64") || !strings.Contains(got, "kubectl-kick_linux_amd64") {
		t.Error(got)
	}
}

// A released command, in miniature: it has one dependency, which its bill of materials has to name.
const (
	sampleModule = "module example.test/sample\n\ngo 1.26\n\nrequire example.test/part v1.0.0\n\nreplace example.test/part => ./part\n"
	sampleMain   = `package main

import (
	"fmt"

	_ "example.test/part"
)

var version = "development"

func main() { fmt.Println(version) }
`
	sampleVersion = "v1.2.3"
)

// here is a binary that this machine can run.
var here = binary{command: "manager", platform: platform{os: runtime.GOOS, arch: runtime.GOARCH}}

// sample builds a small release, for this machine alone, as far as that takes no other tools, and stands in for those.
func sample(t *testing.T) *release {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": sampleModule, "cmd/manager/main.go": sampleMain,
		"part/go.mod": "module example.test/part\n\ngo 1.26\n", "part/part.go": "package part\n",
		"kick/templates/generated/crd.a.yaml": "",
	} {
		write(t, filepath.Join(root, name), text)
	}
	t.Chdir(root)
	r := &release{version: sampleVersion, commands: "cmd", chart: "kick", out: "dist"}
	if err := r.plan(); err != nil {
		t.Fatal(err)
	}
	r.binaries = []binary{here}
	if err := r.buildBinaries(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, b := range r.binaries {
		bill, err := json.Marshal(map[string]any{
			"bomFormat": "CycloneDX", "specVersion": "1.6",
			"metadata":   map[string]any{"component": map[string]any{"name": "example.test/sample", "version": sampleVersion}},
			"components": []any{map[string]any{"name": "./part", "version": "(devel)"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		write(t, r.path(b.sbom()), string(bill))
	}
	write(t, r.path(r.manifest), "kind: Namespace\n---\nkind: CustomResourceDefinition\n---\n"+
		"kind: Deployment\nspec: {template: {spec: {containers: [{image: 'registry/kick:v1.2.3'}]}}}\n")
	writeArchive(t, r.path(r.chartArchive), "version: 1.2.3\nappVersion: v1.2.3\n")
	sum(t, r)
	if err := r.check(t.Context()); err != nil {
		t.Fatalf("the sample as it should be: %v", err)
	}
	return r
}

func sum(t *testing.T, r *release) {
	t.Helper()
	if err := r.writeChecksums(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func writeArchive(t *testing.T, path, chart string) {
	t.Helper()
	var archive bytes.Buffer
	zipped := gzip.NewWriter(&archive)
	files := tar.NewWriter(zipped)
	if err := files.WriteHeader(&tar.Header{Name: "kick/Chart.yaml", Mode: 0o644, Size: int64(len(chart))}); err != nil {
		t.Fatal(err)
	}
	if _, err := files.Write([]byte(chart)); err != nil {
		t.Fatal(err)
	}
	for _, closer := range []interface{ Close() error }{files, zipped} {
		if err := closer.Close(); err != nil {
			t.Fatal(err)
		}
	}
	write(t, path, archive.String())
}

func TestTheCheckFindsWhatIsNotAsItClaims(t *testing.T) {
	r := sample(t)
	replace := func(t *testing.T, file, before, after string) {
		t.Helper()
		text, err := os.ReadFile(r.path(file))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { write(t, r.path(file), string(text)) })
		if !strings.Contains(string(text), before) {
			t.Fatalf("%s does not hold %q", file, before)
		}
		write(t, r.path(file), strings.ReplaceAll(string(text), before, after))
	}
	for name, c := range map[string]struct {
		spoil func(*testing.T)
		want  string
	}{
		"a byte of the manifest":      {func(t *testing.T) { replace(t, r.manifest, "registry", "registrx") }, "the checksum of install.yaml"},
		"a sum that is missing":       {func(t *testing.T) { replace(t, r.checksum, "  "+r.manifest, "  "+r.chartArchive) }, "is about"},
		"another file":                {func(t *testing.T) { write(t, r.path("x"), ""); t.Cleanup(func() { _ = os.Remove(r.path("x")) }) }, "holds"},
		"the image's version":         {func(t *testing.T) { replace(t, r.manifest, ":v1.2.3", ":v1.2.2") }, "runs image"},
		"a CRD that is missing":       {func(t *testing.T) { replace(t, r.manifest, "CustomResourceDefinition", "Service") }, "CRDs"},
		"no namespace":                {func(t *testing.T) { replace(t, r.manifest, "kind: Namespace", "kind: Service") }, "begins with"},
		"a manifest that is none":     {func(t *testing.T) { replace(t, r.manifest, "kind: Namespace", "kind: [") }, "document 0"},
		"an SBOM that is none":        {func(t *testing.T) { replace(t, here.sbom(), "{", "(") }, "invalid character"},
		"another format":              {func(t *testing.T) { replace(t, here.sbom(), "CycloneDX", "SPDX") }, "no CycloneDX"},
		"an SBOM of another version":  {func(t *testing.T) { replace(t, here.sbom(), "v1.2.3", "v1.2.2") }, "is about version"},
		"a module that is not billed": {func(t *testing.T) { replace(t, here.sbom(), "./part", "./other") }, "says"},
		"a chart of another version": {func(t *testing.T) {
			t.Cleanup(func() { writeArchive(t, r.path(r.chartArchive), "version: 1.2.3\nappVersion: v1.2.3\n") })
			writeArchive(t, r.path(r.chartArchive), "version: 1.2.3\nappVersion: v1.2.2\n")
		}, "appVersion"},
	} {
		t.Run(name, func(t *testing.T) {
			c.spoil(t)
			if !strings.Contains(name, "sum") && !strings.Contains(name, "byte") && !strings.Contains(name, "file") {
				defer sum(t, r)
				sum(t, r)
			}
			if err := r.check(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want something with %q", err, c.want)
			}
		})
	}
	t.Run("a binary of another version", func(t *testing.T) {
		other := *r
		other.version = "v9.9.9"
		if err := other.checkBinary(t.Context(), here); err == nil || !strings.Contains(err.Error(), "does not hold the version v9.9.9") {
			t.Error(err)
		}
	})
	t.Run("a binary that needs a loader", func(t *testing.T) {
		if here.os != "linux" {
			t.Skip("binaries are static on Linux alone")
		}
		if _, err := command(t.Context(), []string{"CGO_ENABLED=0"}, "go", "build", "-buildmode=pie", "-o", r.path(here.file()),
			"./cmd/manager"); err != nil {
			t.Fatal(err)
		}
		if err := r.checkBinary(t.Context(), here); err == nil || !strings.Contains(err.Error(), "not static") {
			t.Error(err)
		}
	})
}
