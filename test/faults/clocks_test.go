package faults

import (
	"fmt"
	"os"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
)

// setClock makes the clock of a manager wrong.
func setClock(file, offset string) error {
	return os.WriteFile(file, []byte(offset), 0o600)
}

var clockOffsets = []string{"10m", "-10m"}

func TestTheClockOfTheManagerIsWrong(t *testing.T) {
	file := t.TempDir() + "/clock"
	must(t, setClock(file, "0s"))
	m := alone(t)
	m.Kill()
	m.environment = append(m.environment, "KICK_TEST_CLOCK="+file)
	must(t, m.Start())
	f := newFleet(t, 3)
	for _, offset := range clockOffsets {
		t.Run(fmt.Sprintf("by %s from the start", offset), func(t *testing.T) {
			m.Kill()
			must(t, setClock(file, offset))
			f.change(t, "w0")
			must(t, m.Start())
			f.check(t)
			f.change(t, f.names...)
			f.check(t)
		})
		t.Run(fmt.Sprintf("by %s in a jump back to right", offset), func(t *testing.T) {
			must(t, setClock(file, "0s"))
			f.change(t, f.names...)
			f.check(t)
		})
		t.Run(fmt.Sprintf("by %s in a jump", offset), func(t *testing.T) {
			f.change(t, "w1")
			must(t, setClock(file, offset))
			f.change(t, "w2")
			f.check(t)
			f.change(t, f.names...)
			f.check(t)
		})
	}
}

// wronglyClocked starts the only manager of a test, and returns what sets its clock wrong.
func wronglyClocked(t *testing.T) (*Manager, func(offset string)) {
	t.Helper()
	file := t.TempDir() + "/clock"
	set := func(offset string) { must(t, setClock(file, offset)) }
	set("0s")
	m := prepare(t, token, "manager", "--leader-elect=false")
	m.environment = append(m.environment, clockEnv+"="+file)
	must(t, m.Start())
	return m, set
}

// clockEnv names a file that holds by how much the clock of a manager is wrong.
const clockEnv = "KICK_TEST_CLOCK"

// The windows are judged by the API server's clock: when that of the manager's node is set forward while a request waits,
// nothing comes early, and when it is set back nothing comes late.
func TestTheClockJumpsWhileARequestWaitsForItsWindow(t *testing.T) {
	m, set := wronglyClocked(t)
	f := newFleet(t, 2)
	// At least one of the looks at the clock that come once a minute falls between the jump and the opening.
	opens := time.Now().UTC().Add(80 * time.Second).Truncate(time.Minute).Add(time.Minute)
	must(t, (&actor{namespace: f.namespace}).schedule(t.Context(), v1alpha1.Window{
		Kind: v1alpha1.WindowAllow, Cron: fmt.Sprintf("%d %d * * *", opens.Minute(), opens.Hour()), Duration: "1h", TimeZone: "UTC",
	}))
	f.change(t, f.names...)
	for _, name := range f.names {
		eventually(t, func() error { return waiting(t.Context(), f.of[name], v1alpha1.ReasonOutsideSchedule) })
	}
	set("10m")
	f.change(t, "w1") // Another change is no reason to go by a wrong clock.
	f.stamps["w1"]--  // It waits with the first.
	eventually(t, func() error {
		if left := time.Until(opens.Add(-5 * time.Second)); left > 0 {
			return fmt.Errorf("the window opens in %s", left)
		}
		return nil
	})
	set("-10m")
	f.check(t)
	for _, name := range f.names {
		if at := stampedAt(t, f.of[name]); at.Before(opens) {
			t.Errorf("%s was stamped at %s, before its window opened at %s", f.of[name], at, opens)
		}
	}
	if !m.Running() {
		t.Error("the manager gave up")
	}
}

// stampedAt is when the API server stored the stamp that a workload has.
func stampedAt(t *testing.T, c consumer) time.Time {
	t.Helper()
	found, err := c.read(t.Context())
	must(t, err)
	for _, entry := range found.Object().GetManagedFields() {
		if entry.Manager == "kick" && entry.Time != nil {
			return entry.Time.UTC()
		}
	}
	t.Fatalf("%s was not written by KICK", c)
	return time.Time{}
}

// A jump neither cuts a quiet period short nor lets it last for ever.
func TestTheClockJumpsWhileARequestWaitsForQuiet(t *testing.T) {
	const quiet = 20 * time.Second
	_, set := wronglyClocked(t)
	f := newFleet(t, 2)
	policy := everything(f.namespace)
	must(t, k8s.Patch(t.Context(), policy, client.RawPatch("application/merge-patch+json",
		fmt.Appendf(nil, `{"spec":{"restart":{"quietPeriod":%q,"maxQuiet":"10m"}}}`, quiet))))
	for _, offset := range clockOffsets {
		t.Run("by "+offset, func(t *testing.T) {
			set("0s")
			f.change(t, f.names...)
			for _, name := range f.names {
				eventually(t, func() error { return waiting(t.Context(), f.of[name], v1alpha1.ReasonQuietPeriod) })
			}
			written := map[string]time.Time{}
			for _, name := range f.names {
				source := f.of[name].sourceObject("")
				must(t, k8s.Get(t.Context(), client.ObjectKeyFromObject(source), source))
				written[name] = lastWrite(source)
			}
			set(offset)
			f.check(t)
			for _, name := range f.names {
				// Dates are in whole seconds.
				if at := stampedAt(t, f.of[name]); at.Sub(written[name]) < quiet-time.Second {
					t.Errorf("%s was changed at %s and stamped at %s, which is no quiet period of %s", f.of[name], written[name], at, quiet)
				}
			}
		})
	}
}

// nodeClockOffsets are errors of the clock of a node that are found in the field.
var nodeClockOffsets = []string{"2m", "-2m"}

// The kubelet dates the start of a container by the clock of its node. A change after the start, which that clock puts
// before it, is not lost; what a Pod does carry costs no restart either.
func TestTheClockOfANodeIsWrong(t *testing.T) {
	m := alone(t)
	for _, offset := range nodeClockOffsets {
		t.Run("by "+offset, func(t *testing.T) {
			namespace := newNamespace(t)
			f := startFleet(t, namespace, len(kindsOf), func(i int) consumer {
				c := mixed(namespace, i)
				c.clock = offset
				return c
			})
			for range 2 {
				nextSecond() // What comes within the second of a start may count as news.
				f.change(t, f.names...)
				f.check(t)
			}
			// With KICK away, what changed before a Pod was made is carried, and what changed after it is not.
			m.Stop()
			nextSecond()
			f.change(t, f.names...)
			must(t, m.Start())
			f.check(t)
			m.Stop()
			for _, name := range f.names {
				_, err := f.of[name].rewrite(t.Context(), "carried")
				must(t, err)
			}
			nextSecond()
			replacePods(t, f)
			must(t, m.Start())
			for _, name := range f.names {
				eventually(t, func() error { return f.of[name].settled(t.Context(), v1alpha1.PhaseNoLongerRequired) })
			}
			f.stampsAre(t)
		})
	}
}

// replacePods has new Pods made from the templates as they are.
func replacePods(t *testing.T, f *fleet) {
	t.Helper()
	for _, name := range f.names {
		old, err := f.of[name].pods(t.Context())
		must(t, err)
		for i := range old {
			must(t, k8s.Delete(t.Context(), &old[i]))
		}
	}
	for _, name := range f.names {
		eventually(t, func() error { return f.of[name].complete(t.Context()) })
	}
}
