package process

import (
	"path/filepath"
	"testing"
	"time"
)

func start(t *testing.T, s *Spawner, script string) *Process {
	t.Helper()
	p, err := s.Start(Spec{
		Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"PATH=/usr/bin:/bin"},
		Log: filepath.Join(t.TempDir(), "log"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestExitOfAProcessFollowsTheShells(t *testing.T) {
	s := NewSpawner()
	defer s.Close()
	p := start(t, s, "exit 3")
	<-p.Done()
	if p.Exit().Code != 3 {
		t.Errorf("want 3, got %+v", p.Exit())
	}
	p = start(t, s, "sleep 1000")
	p.Kill()
	if p.Exit().Code != 137 {
		t.Errorf("want 137, got %+v", p.Exit())
	}
}

func TestStopKillsAProcessThatStays(t *testing.T) {
	s := NewSpawner()
	defer s.Close()
	p := start(t, s, "trap '' TERM; while :; do sleep 0.1; done")
	p.Stop(10 * time.Millisecond)
	if p.Alive() {
		t.Error("it is still alive")
	}
}

func TestClosedSpawnerHasNoProcesses(t *testing.T) {
	s := NewSpawner()
	p := start(t, s, "sleep 1000 & sleep 1000")
	s.Close()
	if p.Alive() {
		t.Error("it is still alive")
	}
	if _, err := s.Start(Spec{Path: "/bin/true", Log: filepath.Join(t.TempDir(), "log")}); err == nil {
		t.Error("want a refusal")
	}
}
