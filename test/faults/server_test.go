package faults

import (
	"errors"
	"fmt"
	"testing"
	"time"

	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/test/testbed"
)

// lasting is how long a disturbance takes: a sample, or all of it in a full run.
func lasting(sample, whole time.Duration) time.Duration {
	if full() {
		return whole
	}
	return sample
}

func ready(t *testing.T, m *Manager) {
	t.Helper()
	eventually(t, func() error { return m.Ready(t.Context()) })
}

// C126. Another API server on the same etcd goes on while the one that KICK talks to is away, and takes a change.
func TestTheAPIServerIsAway(t *testing.T) {
	m := alone(t)
	other := secondServer(t)
	f := newFleet(t, 4)
	ready(t, m)
	f.change(t, "w0")
	bed.Component(testbed.APIServer).Stop()
	began := time.Now()
	eventually(t, func() error {
		if m.Ready(t.Context()) == nil {
			return errors.New("the manager is ready and sees nothing")
		}
		return nil
	})
	f.changeThrough(t, other, "w1")
	eventually(t, func() error {
		if left := lasting(20*time.Second, 2*time.Minute) - time.Since(began); left > 0 {
			return fmt.Errorf("the API server is to stay away for another %s", left)
		}
		return nil
	})
	f.changeThrough(t, other, "w2")
	must(t, bed.Component(testbed.APIServer).Start(t.Context()))
	f.change(t, "w3")
	f.check(t)
	ready(t, m)
	f.change(t, "w0", "w2")
	f.check(t)
	if !m.Running() {
		t.Error("the manager gave up")
	}
}

// secondServer starts another API server for one test, and returns an administrator's client to it.
func secondServer(t *testing.T) client.Client {
	t.Helper()
	config, err := bed.StartSecondAPIServer(t.Context())
	must(t, err)
	t.Cleanup(bed.Component(testbed.SecondAPIServer).Stop)
	other, err := client.New(config, client.Options{Scheme: clientgoscheme.Scheme})
	must(t, err)
	return other
}

func TestEtcdIsRestarted(t *testing.T) {
	alone(t)
	f := newFleet(t, 3)
	f.change(t, "w0")
	bed.Component(testbed.Etcd).Kill()
	must(t, bed.Component(testbed.Etcd).Start(t.Context()))
	f.change(t, "w1")
	f.check(t)
	f.change(t, f.names...)
	f.check(t)
}

func TestWatchesAreCutAllTheTime(t *testing.T) {
	m := alone(t)
	f := newFleet(t, 5)
	began := time.Now()
	for round := 0; time.Since(began) < lasting(10*time.Second, time.Minute); round++ {
		m.Proxy.CutWatches()
		f.change(t, f.names[round%len(f.names)])
		time.Sleep(time.Second) // the rhythm of the fault
		if round >= len(f.names) {
			f.check(t) // Two changes of one source are not to become one.
		}
	}
	f.check(t)
}

// A list that breaks off is no list: what it did not get to is neither deleted nor new.
func TestTheFirstListOfSecretsIsBrokenOff(t *testing.T) {
	m := alone(t)
	f := newFleet(t, 10)
	m.Kill()
	before := map[string]string{}
	for _, name := range f.names[1:] {
		record, err := recordOf(t.Context(), f.namespace, name)
		must(t, err)
		before[name] = record.ChangedAt.String()
	}
	nextSecond()
	f.change(t, "w0")
	var plans []*Plan
	for _, verb := range []string{"watch", "list"} {
		for n := range 5 {
			plans = append(plans, m.Proxy.Arm(&Plan{At: Nth{Call: Call{Verb: verb, Resource: "secrets"}, N: n + 1}, Fault: CutHalf}))
		}
	}
	must(t, m.Start())
	f.check(t)
	for _, name := range f.names[1:] {
		record, err := recordOf(t.Context(), f.namespace, name)
		must(t, err)
		if got := record.ChangedAt.String(); got != before[name] {
			t.Errorf("the record of %s is of %s, want %s", name, got, before[name])
		}
	}
	struck := 0
	for _, plan := range plans {
		if plan.Fired() {
			struck++
		}
		m.Proxy.Disarm(plan)
	}
	if struck < 5 {
		t.Errorf("only %d lists were broken off", struck)
	}
}

func TestTheAPIServerRefusesEverythingForAWhile(t *testing.T) {
	for _, fault := range []Fault{Fail429, Fail500, ResetBefore, ResetAfter} {
		t.Run(string(fault), func(t *testing.T) {
			m := alone(t)
			f := newFleet(t, 5)
			plan := m.Proxy.Arm(&Plan{At: Nth{N: 1}, Fault: fault, Always: true})
			f.change(t, f.names...)
			m.Proxy.CutWatches()
			began := time.Now()
			eventually(t, func() error {
				if left := lasting(5*time.Second, 30*time.Second) - time.Since(began); left > 0 {
					return fmt.Errorf("the storm is to last for another %s", left)
				}
				return nil
			})
			m.Proxy.Disarm(plan)
			f.check(t)
			if !plan.Fired() {
				t.Error("no request was refused")
			}
		})
	}
}
