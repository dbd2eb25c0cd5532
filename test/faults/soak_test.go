package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
)

// The environment of the soak: how long it lasts, without which it does not run, and the seed of what happens.
const (
	soakEnv     = "KICK_TEST_SOAK"
	soakSeedEnv = "KICK_TEST_SOAK_SEED"
)

// What the soak consists of.
const (
	soakNamespaces = 10
	soakWorkloads  = 20 // in each namespace
	// soakPause is how long an actor rests between two acts, on average.
	soakPause = 2 * time.Second
	// killsUntil is the part of the time in which the manager is killed now and then. In the rest one process lives, whose
	// goroutines and memory are looked at.
	killsUntil = 0.6
)

// TestSoak lets everything happen at random at the same time, for long, and looks at what is left: every change is carried
// by running Pods, nothing was restarted more often than its sources changed, and the manager has not grown.
func TestSoak(t *testing.T) {
	length, err := time.ParseDuration(os.Getenv(soakEnv))
	if os.Getenv(soakEnv) == "" {
		t.Skip("runs for as long as " + soakEnv + " says: `make soak`")
	}
	must(t, err)
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv(soakSeedEnv); text != "" {
		seed, err = strconv.ParseUint(text, 10, 64)
		must(t, err)
	}
	t.Logf("%s=%d %s=%s", soakSeedEnv, seed, soakEnv, length)
	m := alone(t)
	w := newWitness(t)
	actors := newActors(t, seed)
	end := time.Now().Add(length)
	ctx, cancel := context.WithDeadline(t.Context(), end)
	defer cancel()
	var acting sync.WaitGroup
	for _, a := range actors {
		acting.Go(func() { a.act(ctx) })
	}
	kills := killNowAndThen(ctx, t, m, rand.New(rand.NewPCG(seed, 0)), time.Duration(killsUntil*float64(length))) //nolint:gosec // a test
	samples := sample(ctx, t, m)
	acting.Wait()
	var sum tally
	for _, a := range actors {
		if a.failed != nil {
			t.Fatal(a.failed)
		}
		sum.add(a.did)
	}
	stamps, pods := settle(t, w, actors)
	t.Logf("did %+v and killed the manager %d times: %d stamps, %d Pods are proved to carry all of it", sum, kills, stamps, pods)
	samples.check(t)
	// One who starts on what is left has nothing to do but what is new.
	m.Kill()
	for _, a := range actors {
		c := a.consumers[0]
		a.permitted[c.name] = w.stamped(c) + 1
		must(t, a.edit(t.Context(), c))
	}
	must(t, m.Start())
	again, _ := settle(t, w, actors)
	if again != stamps+len(actors) {
		t.Errorf("a restart of the manager and %d changes make %d stamps", len(actors), again-stamps)
	}
	must(t, w.broken())
}

// tally counts what an actor did.
type tally struct{ edits, shared, scalings, rollouts, deletions, windows int }

func (s *tally) add(other tally) {
	s.edits += other.edits
	s.shared += other.shared
	s.scalings += other.scalings
	s.rollouts += other.rollouts
	s.deletions += other.deletions
	s.windows += other.windows
}

// sharedSource is the ConfigMap that all workloads of a namespace read.
const sharedSource = "shared"

// actor lets things happen in one namespace.
type actor struct {
	namespace string
	random    *rand.Rand
	consumers []consumer
	// value numbers the contents.
	value int
	// last is the last edit of each source; the shared one's is under its name.
	last map[string]edit
	// permitted is how many stamps each workload may have: one for each change of its sources, but one only for all of
	// those that were on record before the window opened.
	permitted map[string]int
	did       tally
	failed    error
}

// newActors makes the namespaces with workloads that run, and policies which have settled on them.
func newActors(t *testing.T, seed uint64) []*actor {
	t.Helper()
	var actors []*actor
	for i := range soakNamespaces {
		a := &actor{
			namespace: newNamespace(t), random: rand.New(rand.NewPCG(seed, uint64(i)+1)), //nolint:gosec // a test
			last: map[string]edit{}, permitted: map[string]int{},
		}
		must(t, create(t.Context(), configMap(a.namespace, sharedSource, "before")))
		for n := range soakWorkloads {
			c := mixed(a.namespace, n)
			a.consumers = append(a.consumers, c)
			must(t, create(t.Context(), c.sourceObject("before"), c.workload(sharedSource)))
		}
		actors = append(actors, a)
	}
	for i, a := range actors {
		for _, c := range a.consumers {
			eventually(t, func() error { return c.complete(t.Context()) })
		}
		policy := everything(a.namespace)
		if i%2 == 1 {
			policy.Spec.Restart.QuietPeriod = &metav1.Duration{Duration: 3 * time.Second}
		}
		must(t, create(t.Context(), policy))
	}
	for _, a := range actors {
		for _, c := range a.consumers {
			eventually(t, func() error { return c.settled(t.Context(), v1alpha1.PhaseNoLongerRequired) })
		}
	}
	return actors
}

// act does one thing after the other until the time is over, and leaves the window open.
func (a *actor) act(ctx context.Context) {
	for ctx.Err() == nil {
		// What has begun is finished, however late that is.
		if err := a.one(context.WithoutCancel(ctx)); err != nil {
			a.failed = fmt.Errorf("in %s: %w", a.namespace, err)
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(a.random.Int64N(int64(2 * soakPause)))):
		}
	}
}

func (a *actor) one(ctx context.Context) error {
	c := a.consumers[a.random.IntN(len(a.consumers))]
	switch dice := a.random.IntN(100); {
	case dice < 45:
		a.permitted[c.name]++
		return a.edit(ctx, c)
	case dice < 52: // in quick succession
		for range 3 {
			a.permitted[c.name]++
			if err := a.edit(ctx, c); err != nil {
				return err
			}
		}
		return nil
	case dice < 54:
		return a.editShared(ctx)
	case dice < 69:
		a.did.scalings++
		return a.scale(ctx, c)
	case dice < 84:
		a.did.rollouts++
		return a.patch(ctx, c.workload(), fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"release":"%d"}}}}}`, a.next()))
	case dice < 90:
		a.did.deletions++
		return a.deletePod(ctx, c)
	default:
		a.did.windows++
		return a.window(ctx)
	}
}

func (a *actor) next() int {
	a.value++
	return a.value
}

func (a *actor) patch(ctx context.Context, object client.Object, patch string) error {
	return poll(ctx, patience, func() error {
		return k8s.Patch(ctx, object, client.RawPatch("application/merge-patch+json", []byte(patch)))
	})
}

func (a *actor) edit(ctx context.Context, c consumer) error {
	a.did.edits++
	written, err := c.rewrite(ctx, fmt.Sprint("value ", a.next()))
	a.last[c.name] = edit{written.GetResourceVersion(), lastWrite(written)}
	return err
}

func (a *actor) editShared(ctx context.Context) error {
	a.did.shared++
	for _, c := range a.consumers {
		a.permitted[c.name]++
	}
	written := configMap(a.namespace, sharedSource, "")
	err := a.patch(ctx, written, fmt.Sprintf(`{"data":{"key":"value %d"}}`, a.next()))
	a.last[sharedSource] = edit{written.ResourceVersion, lastWrite(written)}
	return err
}

// scale sets the number of replicas; a DaemonSet has one for each Node whatever is wanted.
func (a *actor) scale(ctx context.Context, c consumer) error {
	if c.kind == v1alpha1.DaemonSet {
		return nil
	}
	return a.patch(ctx, c.workload(), fmt.Sprintf(`{"spec":{"replicas":%d}}`, a.random.IntN(4)))
}

func (a *actor) deletePod(ctx context.Context, c consumer) error {
	pods, err := c.pods(ctx)
	if err != nil || len(pods) == 0 {
		return err
	}
	return client.IgnoreNotFound(k8s.Delete(ctx, &pods[a.random.IntN(len(pods))]))
}

// window closes the schedule, changes some sources, several times the same, and opens it again once all of that is
// on record: for each workload this has to be one restart.
func (a *actor) window(ctx context.Context) error {
	if err := a.schedule(ctx, v1alpha1.Window{Kind: v1alpha1.WindowDeny, Cron: "* * * * *", Duration: "24h", TimeZone: "UTC"}); err != nil {
		return err
	}
	edited := map[consumer]bool{}
	some := a.random.Perm(len(a.consumers))[:4]
	for range 8 {
		c := a.consumers[some[a.random.IntN(len(some))]]
		edited[c] = true
		if err := a.edit(ctx, c); err != nil {
			return err
		}
	}
	for c := range edited {
		a.permitted[c.name]++
		if err := poll(ctx, patience, func() error { return c.delivered(ctx) }); err != nil {
			return err
		}
	}
	return a.schedule(ctx)
}

// schedule sets the windows and returns when KICK has taken note.
func (a *actor) schedule(ctx context.Context, windows ...v1alpha1.Window) error {
	policy := everything(a.namespace)
	err := poll(ctx, patience, func() error {
		if err := k8s.Get(ctx, client.ObjectKeyFromObject(policy), policy); err != nil {
			return err
		}
		policy.Spec.Schedule.Windows = windows
		return k8s.Update(ctx, policy)
	})
	if err != nil {
		return err
	}
	written := policy.Generation
	return poll(ctx, patience, func() error {
		if err := k8s.Get(ctx, client.ObjectKeyFromObject(policy), policy); err != nil {
			return err
		}
		if policy.Status.ObservedGeneration < written {
			return fmt.Errorf("the policy of %s is observed at generation %d, not %d", a.namespace, policy.Status.ObservedGeneration, written)
		}
		return nil
	})
}

// killNowAndThen kills the manager at random instants and at random requests, starts it again, and returns, when the time
// for that is over, how often it did so.
func killNowAndThen(ctx context.Context, t *testing.T, m *Manager, random *rand.Rand, length time.Duration) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	kills := 0
	for ctx.Err() == nil {
		var plan *Plan
		if random.IntN(2) == 0 {
			fault := []Fault{KillBefore, KillAfter}[random.IntN(2)]
			verb := []string{"patch", "create", "update", "list"}[random.IntN(4)]
			plan = m.Proxy.Arm(&Plan{At: Nth{Call: Call{Verb: verb}, N: 1 + random.IntN(20)}, Fault: fault})
		}
		select {
		case <-ctx.Done():
		case <-time.After(10*time.Second + time.Duration(random.Int64N(int64(30*time.Second)))):
		}
		if plan != nil {
			m.Proxy.Disarm(plan)
		} else {
			m.Kill()
		}
		if !m.Running() {
			kills++
		}
		must(t, m.Start())
	}
	return kills
}

// sizes are the manager's goroutines and memory over time.
type sizes struct{ goroutines, resident []float64 }

// sample looks at the manager until the context ends.
func sample(ctx context.Context, t *testing.T, m *Manager) *sizes {
	t.Helper()
	ready(t, m)
	eventually(t, func() error { // A manager is ready a moment before its metrics are served.
		connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", m.metrics)
		if err != nil {
			return err
		}
		return connection.Close()
	})
	s := &sizes{}
	for ctx.Err() == nil {
		text := scrape(t, m)
		s.goroutines = append(s.goroutines, value(t, text, "go_goroutines"))
		s.resident = append(s.resident, value(t, text, "process_resident_memory_bytes")/(1<<20))
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Second):
		}
	}
	return s
}

// value is that of a metric without labels.
func value(t *testing.T, metrics, name string) float64 {
	t.Helper()
	for line := range strings.Lines(metrics) {
		if rest, found := strings.CutPrefix(line, name+" "); found {
			parsed, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
			must(t, err)
			return parsed
		}
	}
	t.Fatal("the metrics lack", name)
	return 0
}

// check compares the end with the beginning. The first samples show a manager that still fills its caches.
func (s *sizes) check(t *testing.T) {
	t.Helper()
	for name, values := range map[string][]float64{"goroutines": s.goroutines, "MiB resident": s.resident} {
		if len(values) < 12 {
			t.Errorf("only %d samples of the manager's size: the soak is too short", len(values))
			return
		}
		quarter := len(values) / 4
		early, late := median(values[quarter:2*quarter]), median(values[len(values)-quarter:])
		t.Logf("%s: %.0f, later %.0f (%d samples)", name, early, late, len(values))
		if late > early*1.2+20 {
			t.Errorf("the manager has grown from %.0f to %.0f %s", early, late, name)
		}
	}
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// settle waits until KICK is at rest and judges what is left. It returns how many stamps there were and how many Pods
// were found to carry all changes.
func settle(t *testing.T, w *witness, actors []*actor) (stamps, proved int) {
	t.Helper()
	for _, a := range actors {
		for _, c := range a.consumers {
			if c.kind != v1alpha1.DaemonSet { // Nothing can be proved where nothing runs.
				must(t, a.patch(t.Context(), c.workload(), `{"spec":{"replicas":2}}`))
			}
		}
	}
	for _, a := range actors {
		shared := consumer{namespace: a.namespace, sourceKind: v1alpha1.ConfigMap, source: sharedSource}
		eventually(t, func() error { return shared.delivered(t.Context()) })
		for _, c := range a.consumers {
			eventually(t, func() error { return c.delivered(t.Context()) })
			eventually(t, func() error { return c.complete(t.Context()) })
			var pods []corev1.Pod
			eventually(t, func() (err error) {
				pods, err = c.pods(t.Context())
				if err == nil && len(pods) == 0 {
					return fmt.Errorf("%s has no Pods", c)
				}
				for i := range pods {
					for _, source := range []string{c.source, sharedSource} {
						if last, edited := a.last[source]; edited && err == nil {
							err = w.carries(&pods[i], last)
						}
					}
				}
				return err
			})
			eventually(t, func() error { return atRest(t.Context(), c) })
			proved += len(pods)
			got := w.stamped(c)
			stamps += got
			if got > a.permitted[c.name] {
				t.Errorf("%s has %d stamps for %d changes that could not be coalesced", c, got, a.permitted[c.name])
			}
		}
	}
	return stamps, proved
}

// atRest tells why KICK still has something to do for a workload, if so.
func atRest(ctx context.Context, c consumer) error {
	found, err := c.request(ctx)
	if err != nil {
		return err
	}
	if phase := found.Status.Phase; phase != v1alpha1.PhaseSucceeded && phase != v1alpha1.PhaseNoLongerRequired {
		return fmt.Errorf("request %s/%s is %q: %+v", c.namespace, found.Name, phase, found.Status.Conditions)
	}
	return nil
}
