package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// quorum is a number of replicas of which one leads. One that ends by itself is started again, as a kubelet does: on a
// slow machine a leader may lose its lease at any time.
type quorum struct {
	replicas []*Manager

	mu sync.Mutex
	// since is the length of each log when its process was started.
	since map[*Manager]int64
	// failing are the replicas that are not to be started again for now.
	failing map[*Manager]bool
}

func newQuorum(t *testing.T, size int) *quorum {
	t.Helper()
	q := &quorum{since: map[*Manager]int64{}, failing: map[*Manager]bool{}}
	for i := range size {
		q.replicas = append(q.replicas, newReplica(t, fmt.Sprint("replica-", i)))
	}
	ctx, cancel := context.WithCancel(t.Context())
	var kept sync.WaitGroup
	kept.Go(func() {
		for ctx.Err() == nil {
			q.revive()
			time.Sleep(time.Second)
		}
	})
	t.Cleanup(func() { cancel(); kept.Wait() })
	return q
}

// revive starts what has ended and is not to fail now.
func (q *quorum) revive() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range q.replicas {
		if !m.Running() && !q.failing[m] {
			q.since[m] = m.LogSize()
			_ = m.Start() // The next round tries again.
		}
	}
}

// fail says whether a replica is to stay down once it has ended.
func (q *quorum) fail(m *Manager, fails bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.failing[m] = fails
}

// leads tells whether a replica has taken the lead in its present life.
func (q *quorum) leads(m *Manager) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return m.Running() && strings.Contains(m.Logged(q.since[m]), "Successfully acquired lease")
}

// leader waits for a replica to lead, other than one.
func (q *quorum) leader(t *testing.T, except *Manager) *Manager {
	t.Helper()
	var leader *Manager
	eventually(t, func() error {
		for _, m := range q.replicas {
			if m != except && q.leads(m) {
				leader = m
				return nil
			}
		}
		return errors.New("nobody leads")
	})
	return leader
}

// gone waits until the process of a replica that was made to fail has ended.
func gone(t *testing.T, m *Manager) {
	t.Helper()
	eventually(t, func() error {
		if m.Running() {
			return errors.New("the former leader goes on")
		}
		return nil
	})
}

// wrote lists the writes that the API server has accepted from a manager, but for its leases and events.
func wrote(exchanges []Exchange) []string {
	var writes []string
	for _, e := range exchanges {
		write := slices.Contains([]string{"create", "update", "patch", "delete"}, e.Verb)
		if write && e.Code < 300 && e.Resource != "leases" && e.Resource != "events" {
			writes = append(writes, e.String())
		}
	}
	return writes
}

// stall is longer than a lease lasts.
const stall = 40 * time.Second

func TestALeaderThatFails(t *testing.T) {
	sizes := []int{3}
	if full() {
		sizes = []int{2, 3}
	}
	for _, size := range sizes {
		t.Run(fmt.Sprint(size, " replicas"), func(t *testing.T) {
			q := newQuorum(t, size)
			q.leader(t, nil)
			f := newFleet(t, 10)
			fails := map[string]struct{ begin, end func(*Manager) }{
				"killed": {(*Manager).Kill, func(*Manager) {}},
				"stopped for longer than its lease": {
					func(m *Manager) { _ = m.Signal(syscall.SIGSTOP) },
					func(m *Manager) { _ = m.Signal(syscall.SIGCONT) },
				},
				"parted from the API server": {
					func(m *Manager) { m.Proxy.Partition() },
					func(m *Manager) { m.Proxy.Heal() },
				},
			}
			for name, fail := range fails {
				if testing.Short() && name == "parted from the API server" {
					continue
				}
				t.Run(name, func(t *testing.T) {
					old := q.leader(t, nil)
					began := time.Now()
					q.fail(old, true)
					fail.begin(old)
					f.change(t, f.names...)
					q.leader(t, old)
					f.check(t)
					eventually(t, func() error {
						if left := stall - time.Since(began); left > 0 && name != "killed" {
							return fmt.Errorf("the fault is to last for another %s", left)
						}
						return nil
					})
					old.Proxy.Record()
					fail.end(old)
					gone(t, old)
					if writes := wrote(old.Proxy.Recorded()); len(writes) > 0 {
						t.Errorf("the former leader wrote %v", writes)
					}
					q.fail(old, false)
					f.change(t, f.names[0])
					f.check(t)
				})
			}
		})
	}
}

// The hardest case of all: the leader is stopped with its write on the wire, somebody else takes over and does the work,
// and then the old write arrives.
func TestAWriteOfAFormerLeaderArrivesLate(t *testing.T) {
	q := newQuorum(t, 2)
	q.leader(t, nil)
	for _, call := range []Call{
		{Verb: "patch", Resource: "deployments"},
		{Verb: "update", Resource: "kickrequests/status"},
		{Verb: "update", Resource: ledgers},
	} {
		t.Run(call.String(), func(t *testing.T) {
			f := newFleet(t, 1)
			old := q.leader(t, nil)
			call.Concerns = f.namespace
			plan := old.Proxy.Arm(&Plan{At: Nth{Call: call, N: 1}, Fault: Hold, Release: make(chan struct{})})
			f.change(t, f.names...)
			eventually(t, func() error {
				if !plan.Fired() {
					return errors.New("the write has not come")
				}
				return nil
			})
			q.fail(old, true)
			must(t, old.Signal(syscall.SIGSTOP))
			q.leader(t, old)
			f.check(t)
			old.Proxy.Record()
			close(plan.Release)
			eventually(t, func() error {
				if len(old.Proxy.Recorded()) == 0 {
					old.Proxy.Record()
					return errors.New("the late write is not answered yet")
				}
				return nil
			})
			old.Proxy.Disarm(plan)
			must(t, old.Signal(syscall.SIGCONT))
			gone(t, old)
			q.fail(old, false)
			f.check(t)
			f.change(t, f.names...)
			f.check(t)
		})
	}
}
