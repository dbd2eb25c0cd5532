package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/kick-dev/kick/test/testbed"
	"github.com/kick-dev/kick/test/testbed/internal/client"
)

// state is what a supervisor tells other commands about its testbed.
type state struct {
	Server     string
	Binaries   testbed.Binaries
	Components map[string]int
}

func stateFile(dir string) string { return filepath.Join(dir, "testbed.json") }

func kubeconfig(dir string) string { return client.Kubeconfig(dir) }

func writeState(t *testbed.Testbed, binaries testbed.Binaries) error {
	s := state{Server: t.RESTConfig().Host, Binaries: binaries, Components: map[string]int{}}
	for _, component := range t.Components() {
		s.Components[component.Name()] = component.PID()
	}
	content, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	if err := os.WriteFile(stateFile(t.Dir()), content, 0o644); err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	return writeEnvironment(t.Dir(), binaries)
}

// writeEnvironment writes a file of variables that both a shell and make read.
func writeEnvironment(dir string, binaries testbed.Binaries) error {
	lines := append(client.Environment(dir),
		"KUBECTL="+binaries.Kubectl,
		"HELM="+binaries.Helm,
	)
	content := strings.Join(lines, "\n") + "\n"
	if err := os.WriteFile(filepath.Join(dir, "testbed.env"), []byte(content), 0o644); err != nil {
		return fmt.Errorf("write environment: %w", err)
	}
	return nil
}

func readState(dir string) (*state, error) {
	content, err := os.ReadFile(stateFile(dir))
	if err != nil {
		return nil, fmt.Errorf("no testbed is ready in %s: %w", dir, err)
	}
	s := &state{}
	if err := json.Unmarshal(content, s); err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	return s, nil
}
