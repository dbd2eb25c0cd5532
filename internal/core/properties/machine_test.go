package properties_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/kick-dev/kick/api/v1alpha1"
)

// defaults of rapid's flags for this package: some 20,000 steps, the same ones each time, so that a run that fails says
// something about what was changed. The soak draws new ones.
var defaults = map[string]string{
	"rapid.checks": "120", "rapid.steps": "180", "rapid.seed": "1", "rapid.nofailfile": "true",
}

func TestMain(m *testing.M) {
	flag.Parse()
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range defaults {
		if !given[name] {
			if err := flag.Set(name, value); err != nil {
				panic(err)
			}
		}
	}
	os.Exit(m.Run())
}

// Whatever happens, the promises are kept at every step; and once everything is permitted and holds still, every request
// ends and all Pods carry what their sources hold, with nothing but timers and watches to get there.
func TestRandomHistories(t *testing.T) {
	steps, stamps := 0, 0
	counts := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t)
		actions := map[string]func(*rapid.T){"": func(*rapid.T) { m.check() }}
		for name, action := range m.actions() {
			actions[name] = func(t *rapid.T) {
				steps++
				action(t)()
				m.c.pass(m.pause(t))
			}
		}
		t.Repeat(actions)
		m.settle()
		stamps += m.judge.stamped
		for name, n := range m.judge.counts {
			counts[name] += n
		}
	})
	t.Logf("%d steps, %d restarts", steps, stamps)
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%6d %s", counts[name], name)
	}
}

// contentMark is in every value of every source.
const contentMark = "hidden"

// machine acts on a cluster at random.
type machine struct {
	c     *cluster
	judge *judge
	// values numbers the contents.
	values int
}

func newMachine(t *rapid.T) *machine {
	judge := newJudge(t)
	m := &machine{judge: judge, c: newCluster(judge)}
	m.c.now = noon.Add(time.Duration(rapid.IntRange(0, 999).Draw(t, "start")) * time.Millisecond)
	for _, name := range allSources {
		m.c.write(name, m.fresh("a", "b"))
		m.c.pass(time.Duration(rapid.SampledFrom([]int{0, 300, 2000, 60000}).Draw(t, "apart")) * time.Millisecond)
	}
	kinds := []v1alpha1.WorkloadKind{v1alpha1.Deployment, v1alpha1.StatefulSet, v1alpha1.DaemonSet}
	for i := range rapid.IntRange(1, 3).Draw(t, "workloads") {
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		m.c.create(workloadKey{kind, fmt.Sprintf("web%d", i)}, m.drawSpec(t, kind), m.drawPace(t))
	}
	m.c.putPolicy(m.drawPolicy(t, "first"))
	m.c.pass(time.Duration(rapid.SampledFrom([]int{0, 500, 5000, 3600000}).Draw(t, "before")) * time.Millisecond)
	m.c.startManager(m.drawLatency(t), m.drawSkew(t))
	return m
}

// fresh is a content that was never there before.
func (m *machine) fresh(keys ...string) map[string]string {
	data := map[string]string{}
	for _, key := range keys {
		m.values++
		data[key] = fmt.Sprintf("%s-%d", contentMark, m.values)
	}
	return data
}

func (m *machine) drawSpec(t *rapid.T, kind v1alpha1.WorkloadKind) workloadSpec {
	spec := workloadSpec{replicas: int32(rapid.IntRange(0, 3).Draw(t, "replicas"))}
	spec.id.shape = rapid.IntRange(0, len(shapes)-1).Draw(t, "shape")
	if kind != v1alpha1.Deployment {
		spec.onDelete = rapid.IntRange(0, 7).Draw(t, "on delete") == 0
	}
	if kind == v1alpha1.StatefulSet && !spec.onDelete {
		spec.partition = int32(max(0, rapid.IntRange(-6, 1).Draw(t, "partition")))
	}
	return spec
}

func (m *machine) drawPace(t *rapid.T) pace {
	ms := func(label string, choices ...int) time.Duration {
		return time.Duration(rapid.SampledFrom(choices).Draw(t, label)) * time.Millisecond
	}
	return pace{
		controller: ms("controller", 10, 10, 40, 700, 5000), pull: ms("pull", 20, 100, 600, 3000, 30000),
		boot: ms("boot", 100, 1000, 8000, 120000), refresh: ms("refresh", 1000, 59000, 115000),
		stuck: rapid.IntRange(0, 9).Draw(t, "stuck") == 0,
	}
}

func (m *machine) drawLatency(t *rapid.T) time.Duration {
	return time.Duration(rapid.SampledFrom([]int{0, 1, 40, 900, 4000, 70000}).Draw(t, "latency")) * time.Millisecond
}

func (m *machine) drawSkew(t *rapid.T) time.Duration {
	return time.Duration(rapid.SampledFrom([]int{0, 0, 0, 0, 301, -301, 1703, -1703, 2707, -2707, 3600123, -3600123, 86400123}).
		Draw(t, "skew")) * time.Millisecond
}

func (m *machine) drawPolicy(t *rapid.T, name string) *v1alpha1.KickPolicy {
	p := &v1alpha1.KickPolicy{}
	p.Name = name
	often := func(label string, n int) bool { return rapid.IntRange(0, n).Draw(t, label) == 0 }
	p.Spec.Suspend, p.Spec.DryRun = often("suspend", 9), often("dry run", 9)
	if often("select", 3) {
		p.Spec.Discovery.WorkloadSelector.MatchLabels = map[string]string{"app": "web"}
	}
	if often("depend", 3) {
		p.Spec.Discovery.DependencySelector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "db"}}
	}
	if often("by key", 3) {
		p.Spec.Discovery.Granularity = v1alpha1.GranularityKey
	}
	p.Spec.Schedule = rapid.SampledFrom([]windows{noWindows, noWindows, noWindows, allowFour, denyFive, allowAndDeny, unreadable}).
		Draw(t, "windows").schedule()
	seconds := func(label string, choices ...int) *metav1.Duration {
		return &metav1.Duration{Duration: time.Duration(rapid.SampledFrom(choices).Draw(t, label)) * time.Second}
	}
	p.Spec.Restart = v1alpha1.Restart{
		QuietPeriod: seconds("quiet", 0, 0, 5), MaxQuiet: seconds("max quiet", 60, 20), MinInterval: seconds("interval", 0, 0, 30),
		RolloutDeadline: seconds("deadline", 900, 120),
	}
	if often("limit", 3) {
		one := int32(1)
		p.Spec.Restart.MaxConcurrent = &one
	}
	return p
}

// pause is the time between two actions.
func (m *machine) pause(t *rapid.T) time.Duration {
	return time.Duration(rapid.SampledFrom([]int{0, 7, 90, 450, 800, 1300, 2500, 7000, 45000}).Draw(t, "pause")) * time.Millisecond
}

// check holds after every action.
func (m *machine) check() {
	for _, w := range m.c.sortedWorkloads() {
		if !w.bornFresh {
			continue
		}
		for _, r := range m.c.requests {
			if r.Spec.TargetRef.UID == w.uid {
				m.judge.fail("I8: %s came after all its sources were observed and has a request", w.key)
			}
		}
	}
	if len(m.c.requests) > len(m.c.workloads) {
		m.judge.fail("I4: %d requests for %d workloads", len(m.c.requests), len(m.c.workloads))
	}
}

// settle lets everything hold still, permits everything, and waits.
func (m *machine) settle() {
	c := m.c
	m.permit()
	for i := 0; i < 24 && (i < 2 || m.open() != ""); i++ {
		c.pass(30 * time.Minute)
		m.replaceByHand()
	}
	if open := m.open(); open != "" {
		m.judge.fail("I2: still open after twelve hours: %s", open)
	}
	leader := c.managers[0]
	for _, w := range c.sortedWorkloads() {
		if r := leader.getRequest(requestName(w.key)); r != nil && r.Status.Phase == v1alpha1.PhaseFailed {
			m.judge.counts[givenUp]++
			continue
		}
		m.judge.carries(w, c.truth(w), leader.ledger, "settled")
	}
	m.idle(leader)
}

// permit ends all that hinders a restart.
func (m *machine) permit() {
	c := m.c
	for len(c.managers) > 1 {
		c.managers[1].stop()
	}
	c.pass(time.Hour) // for those that are down
	for len(c.managers) > 1 {
		c.managers[1].stop()
	}
	c.denies = false
	c.managers[0].beforeWrite, c.managers[0].settings.TTL = nil, 48*time.Hour
	for _, name := range slices.Sorted(maps.Keys(c.policies)) {
		p := c.policies[name].DeepCopy()
		p.Spec.Suspend, p.Spec.DryRun = false, false
		if len(p.Spec.Schedule.Windows) == 1 && p.Spec.Schedule.Windows[0].Cron == "always" {
			p.Spec.Schedule = v1alpha1.Schedule{}
		}
		c.putPolicy(p)
	}
	for _, name := range allSources {
		data := m.fresh("a", "b", "c")
		if present := c.sources[name]; present != nil {
			maps.Copy(data, present.data)
		}
		c.write(name, data)
	}
	for _, w := range c.sortedWorkloads() {
		w.pace.stuck = false
		w.respec(func(s *workloadSpec) { s.paused, s.partition = false, 0 })
	}
}

// open names what has not come to an end.
func (m *machine) open() string {
	var open []string
	for _, name := range slices.Sorted(maps.Keys(m.c.requests)) {
		if r := m.c.requests[name]; !r.Status.Phase.Terminal() {
			open = append(open, fmt.Sprintf("%s %s/%s", name, r.Status.Phase, reasonOf(&r.Status)))
		}
	}
	for _, w := range m.c.sortedWorkloads() {
		if !w.completed {
			open = append(open, w.key.String())
		}
	}
	return strings.Join(open, ", ")
}

// replaceByHand is what somebody does with Pods that are only replaced when they are deleted.
func (m *machine) replaceByHand() {
	for _, w := range m.c.sortedWorkloads() {
		for _, p := range w.live() {
			waits := m.c.requests[requestName(w.key)] != nil && !m.c.requests[requestName(w.key)].Status.Phase.Terminal()
			if w.spec.onDelete && (p.revision.id != w.spec.id || waits) {
				w.deletePod(p)
			}
		}
	}
}

// idle: when nothing happens nothing is written, however often KICK looks.
func (m *machine) idle(leader *manager) {
	leader.settings.TTL = settings.TTL
	leader.wakeEverything()
	leader.later(0, leader.work)
	m.c.pass(6 * time.Hour)
	before := m.judge.writes
	for range 5 {
		leader.wakeEverything()
		leader.later(0, leader.work)
		m.c.pass(time.Minute)
	}
	if n := m.judge.writes - before; n > 0 {
		m.judge.fail("%d writes, and nothing has happened", n)
	}
}
