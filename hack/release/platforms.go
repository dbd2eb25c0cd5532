package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// platform is an operating system and an architecture, as Go names them.
type platform struct{ os, arch string }

// What runs in a cluster runs on Linux; what people run, they run on their own machines.
var (
	clusterPlatforms = []platform{{"linux", "amd64"}, {"linux", "arm64"}}
	peoplePlatforms  = append([]platform{
		{"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"},
	}, clusterPlatforms...)
)

// kubectlPlugin is how the names of commands for people begin.
const kubectlPlugin = "kubectl-"

// binary is a command for a platform.
type binary struct {
	command string
	platform
}

// file is the name of the binary.
func (b binary) file() string {
	name := fmt.Sprintf("%s_%s_%s", b.command, b.os, b.arch)
	if b.os == "windows" {
		name += ".exe"
	}
	return name
}

// sbom is the name of its bill of materials.
func (b binary) sbom() string { return b.file() + ".cdx.json" }

func binariesOf(command string) []binary {
	platforms := clusterPlatforms
	if strings.HasPrefix(command, kubectlPlugin) {
		platforms = peoplePlatforms
	}
	var all []binary
	for _, p := range platforms {
		all = append(all, binary{command: command, platform: p})
	}
	return all
}

// commandsIn are the folders with a main package.
func commandsIn(folder string) ([]string, error) {
	mains, err := filepath.Glob(filepath.Join(folder, "*", "main.go"))
	if err != nil {
		return nil, err
	}
	if len(mains) == 0 {
		return nil, fmt.Errorf("no command in %s%c*", folder, os.PathSeparator)
	}
	var commands []string
	for _, path := range mains {
		commands = append(commands, filepath.Base(filepath.Dir(path)))
	}
	return commands, nil
}

// validVersion is what can be the tag of an image and the value of a label.
var validVersion = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$`)

// semver is the expression that semver.org suggests, without build metadata, which no tag of an image may have.
var semver = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)` +
	`(-((0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?$`)

// chartVersion makes a version that Helm accepts: charts have semantic versions, without a leading v. What is between two
// releases and known by its commit alone comes before all of them.
func chartVersion(version string) string {
	if bare := strings.TrimPrefix(version, "v"); semver.MatchString(bare) {
		return bare
	}
	return "0.0.0-g" + strings.ReplaceAll(version, "_", "-")
}
