package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"
)

// Spawner starts processes and owns them. Linux kills the children of a thread
// when the thread ends, so all of them are forked by one thread that lives as
// long as the Spawner.
type Spawner struct {
	inherit  []*os.File
	requests chan func()
	closed   chan struct{}
	close    sync.Once

	mu   sync.Mutex
	live map[*Process]bool
}

var errClosed = errors.New("start process: its owner was closed")

// NewSpawner returns a Spawner whose processes inherit the given open files.
func NewSpawner(inherit ...*os.File) *Spawner {
	s := &Spawner{
		inherit:  inherit,
		requests: make(chan func()),
		closed:   make(chan struct{}),
		live:     map[*Process]bool{},
	}
	go s.serve()
	return s
}

// serve never unlocks its thread, so the thread ends with it.
func (s *Spawner) serve() {
	runtime.LockOSThread()
	for {
		select {
		case request := <-s.requests:
			request()
		case <-s.closed:
			return
		}
	}
}

// Start starts a process.
func (s *Spawner) Start(spec Spec) (*Process, error) {
	if err := os.MkdirAll(filepath.Dir(spec.Log), 0o755); err != nil {
		return nil, fmt.Errorf("create log folder: %w", err)
	}
	log, err := os.OpenFile(spec.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(spec.Path, spec.Args...)
	cmd.Env, cmd.Dir = spec.Env, spec.Dir
	if cmd.Env == nil {
		cmd.Env = []string{}
	}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = s.inherit
	cmd.SysProcAttr = attributes()
	return s.start(cmd)
}

func (s *Spawner) start(cmd *exec.Cmd) (*Process, error) {
	p := &Process{cmd: cmd, done: make(chan struct{})}
	result := make(chan error, 1)
	request := func() {
		p.started = time.Now()
		err := cmd.Start()
		if err == nil {
			s.track(p)
		}
		result <- err
	}
	select {
	case s.requests <- request:
	case <-s.closed:
		return nil, errClosed
	}
	if err := <-result; err != nil {
		return nil, fmt.Errorf("start process: %w", err)
	}
	return p, nil
}

func (s *Spawner) track(p *Process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live[p] = true
	go func() {
		p.await()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.live, p)
	}()
}

// Close kills what still runs, and waits until it is gone.
func (s *Spawner) Close() {
	for _, p := range s.processes() {
		p.Kill()
	}
	s.close.Do(func() { close(s.closed) })
	// A process may have been started while the others were killed.
	for _, p := range s.processes() {
		p.Kill()
	}
}

func (s *Spawner) processes() []*Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*Process
	for p := range s.live {
		all = append(all, p)
	}
	return all
}
