package properties_test

import (
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/deps"
	"github.com/kick-dev/kick/internal/core/request"
)

// action draws what is to happen and returns it, to be done now or between two writes of the manager.
type action func(*rapid.T) func()

func requestName(key workloadKey) string { return request.Name(key.kind, key.name) }

// actions are all that may happen.
func (m *machine) actions() map[string]action {
	all := map[string]action{
		"wait": m.wait, "kill": m.kill, "interpose": m.interpose, "second leader": m.secondLeader, "clock": m.clock,
		"policy": m.policy, "remove policy": m.removePolicy, "deny": m.deny, "forget request": m.forgetRequest, "ask": m.ask, "rush": m.rush,
		"replace workload": m.replaceWorkload, "relabel workload": m.relabelWorkload, "strategy": m.strategy, "pace": m.pace,
	}
	maps.Copy(all, m.events())
	return all
}

// events are those that may also come between two writes.
func (m *machine) events() map[string]action {
	return map[string]action{
		"edit": m.edit, "edit again": m.edit, "annotate": m.annotate, "remove source": m.removeSource, "relabel source": m.relabelSource,
		"native rollout": m.nativeRollout, "rollback": m.rollback, "scale": m.scale, "lose Pod": m.losePod, "crash": m.crash,
		"pause or resume": m.pauseOrResume, "strip stamp": m.stripStamp, "foreign stamp": m.foreignStamp,
	}
}

func (m *machine) workload(t *rapid.T) *workload {
	all := m.c.sortedWorkloads()
	return all[rapid.IntRange(0, len(all)-1).Draw(t, "workload")]
}

func (m *machine) wait(t *rapid.T) func() {
	seconds := rapid.SampledFrom([]int{1, 10, 65, 130, 900, 4000}).Draw(t, "seconds")
	return func() { m.c.pass(time.Duration(seconds) * time.Second) }
}

// edit changes the content of a source: a key anew, a key less, or all as it was before.
func (m *machine) edit(t *rapid.T) func() {
	name := rapid.SampledFrom(allSources).Draw(t, "source")
	key := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key")
	how := rapid.SampledFrom([]string{"set", "set", "set", "remove", "back"}).Draw(t, "how")
	return func() {
		history := m.c.history[name]
		data := maps.Clone(history[len(history)-1].data)
		switch how {
		case "set":
			maps.Copy(data, m.fresh(key))
		case "remove":
			delete(data, key)
		case "back":
			data = history[max(0, len(history)-2)].data
		}
		m.c.write(name, data)
	}
}

func (m *machine) annotate(t *rapid.T) func() {
	name, byOwner := rapid.SampledFrom(allSources).Draw(t, "source"), rapid.Bool().Draw(t, "by the owner")
	return func() {
		if m.c.sources[name] != nil {
			m.c.annotate(name, byOwner)
		}
	}
}

// removeSource deletes a source, or creates it again as it was.
func (m *machine) removeSource(t *rapid.T) func() {
	name, again := rapid.SampledFrom(allSources).Draw(t, "source"), rapid.Bool().Draw(t, "at once again")
	return func() {
		if m.c.sources[name] != nil {
			m.c.remove(name)
			if !again {
				return
			}
		}
		history := m.c.history[name]
		m.c.write(name, history[len(history)-1].data)
	}
}

func (m *machine) relabelSource(t *rapid.T) func() {
	name := rapid.SampledFrom(allSources).Draw(t, "source")
	labels := rapid.SampledFrom([]map[string]string{{"tier": "db"}, {"tier": "db"}, {}, {"kick.dev/ignore": "true"}}).Draw(t, "labels")
	return func() {
		if m.c.sources[name] != nil {
			m.c.relabel(name, labels)
		}
	}
}

func (m *machine) nativeRollout(t *rapid.T) func() {
	w := m.workload(t)
	shape := rapid.IntRange(-len(shapes), len(shapes)-1).Draw(t, "shape")
	return func() {
		w.bornFresh = false
		w.respec(func(s *workloadSpec) {
			s.id.image++
			if shape >= 0 {
				s.id.shape = shape
			}
		})
	}
}

func (m *machine) rollback(t *rapid.T) func() {
	w, back := m.workload(t), rapid.IntRange(1, 3).Draw(t, "revisions")
	return func() {
		if len(w.revisions) < back {
			return
		}
		w.bornFresh = false
		w.respec(func(s *workloadSpec) { s.id = w.revisions[len(w.revisions)-back].id })
	}
}

func (m *machine) scale(t *rapid.T) func() {
	w, replicas := m.workload(t), int32(rapid.IntRange(0, 3).Draw(t, "replicas"))
	return func() { w.respec(func(s *workloadSpec) { s.replicas = replicas }); w.resync() }
}

func (m *machine) losePod(t *rapid.T) func() {
	w, i := m.workload(t), rapid.IntRange(0, 2).Draw(t, "Pod")
	return func() {
		if live := w.live(); i < len(live) {
			w.deletePod(live[i])
			w.resync()
		}
	}
}

func (m *machine) crash(t *rapid.T) func() {
	w, i, j := m.workload(t), rapid.IntRange(0, 2).Draw(t, "Pod"), rapid.IntRange(0, 1).Draw(t, "container")
	return func() {
		if live := w.live(); i < len(live) && j < len(live[i].containers) {
			live[i].crash(live[i].containers[j])
		}
	}
}

func (m *machine) pauseOrResume(t *rapid.T) func() {
	w := m.workload(t)
	return func() {
		w.respec(func(s *workloadSpec) {
			s.paused = !s.paused && w.key.kind == v1alpha1.Deployment && len(w.revisions) > 0
		})
	}
}

func (m *machine) strategy(t *rapid.T) func() {
	w := m.workload(t)
	spec := m.drawSpec(t, w.key.kind)
	return func() {
		w.respec(func(s *workloadSpec) { s.onDelete, s.partition = spec.onDelete, spec.partition })
	}
}

func (m *machine) pace(t *rapid.T) func() {
	w := m.workload(t)
	pace := m.drawPace(t)
	return func() { w.pace = pace }
}

func (m *machine) stripStamp(t *rapid.T) func() {
	w := m.workload(t)
	return func() {
		w.bornFresh = false
		w.respec(func(s *workloadSpec) { s.id.stamp = "" })
	}
}

func (m *machine) foreignStamp(t *rapid.T) func() {
	w := m.workload(t)
	how := rapid.SampledFrom([]string{"kubectl", "2100-01-01T00:00:00Z", "yesterday"}).Draw(t, "stamp")
	return func() {
		stamp := how
		if how == "kubectl" {
			stamp = m.c.second().Format(time.RFC3339)
		}
		w.bornFresh = false
		w.respec(func(s *workloadSpec) { s.id.stamp = stamp })
	}
}

func (m *machine) policy(t *rapid.T) func() {
	p := m.drawPolicy(t, rapid.SampledFrom([]string{"first", "first", "second"}).Draw(t, "name"))
	return func() { m.c.putPolicy(p) }
}

func (m *machine) removePolicy(t *rapid.T) func() {
	name := rapid.SampledFrom([]string{"first", "second", "second"}).Draw(t, "name")
	return func() { m.c.deletePolicy(name) }
}

func (m *machine) relabelWorkload(t *rapid.T) func() {
	w := m.workload(t)
	labels := map[string]string{"app": rapid.SampledFrom([]string{"web", "web", "other"}).Draw(t, "app")}
	return func() {
		w.labels, w.bornFresh = labels, false
		w.moved()
	}
}

func (m *machine) replaceWorkload(t *rapid.T) func() {
	w := m.workload(t)
	spec, pace := m.drawSpec(t, w.key.kind), m.drawPace(t)
	return func() {
		m.c.destroy(w)
		m.c.create(w.key, spec, pace)
	}
}

func (m *machine) deny(t *rapid.T) func() {
	denies := rapid.IntRange(0, 3).Draw(t, "deny") == 0
	return func() { m.c.denies = denies }
}

// forgetRequest is somebody who deletes a request.
func (m *machine) forgetRequest(t *rapid.T) func() {
	name := requestName(m.workload(t).key)
	return func() {
		if m.c.requests[name] != nil {
			m.c.deleteRequest(name)
		}
	}
}

// ask is a person who asks for a restart.
func (m *machine) ask(t *rapid.T) func() {
	w, override := m.workload(t), rapid.Bool().Draw(t, "override")
	return func() {
		name := requestName(w.key)
		wish := &v1alpha1.KickRequest{}
		if present := m.c.requests[name]; present != nil {
			wish = present.DeepCopy()
		} else {
			wish.Name, wish.UID = name, types.UID(m.c.id())
			wish.Spec.TargetRef = v1alpha1.TargetRef{APIVersion: "apps/v1", Kind: w.key.kind, Name: w.key.name, UID: w.uid}
		}
		wish.Generation++
		wish.Spec.Manual = &v1alpha1.ManualRestart{
			RequestedAt: metav1.NewMicroTime(m.c.now), RequestedBy: "alice", Override: override,
		}
		w.bornFresh = false
		m.c.storeRequest(wish)
	}
}

// between arms something to happen before one of the next writes of a manager.
func between(leader *manager, writes int, do func()) {
	leader.beforeWrite = func(string) {
		if writes--; writes == 0 {
			leader.beforeWrite = nil
			do()
		}
	}
}

// interpose lets something happen between two writes of the manager.
func (m *machine) interpose(t *rapid.T) func() {
	events := m.events()
	name := rapid.SampledFrom(slices.Sorted(maps.Keys(events))).Draw(t, "event")
	writes := rapid.IntRange(1, 4).Draw(t, "writes")
	event := events[name](t)
	return func() {
		for _, leader := range m.c.managers {
			between(leader, writes, event)
		}
	}
}

// kill lets a manager die at one of its next writes, or now; another one follows. The ledger may be lost on the way.
func (m *machine) kill(t *rapid.T) func() {
	writes := rapid.IntRange(0, 5).Draw(t, "writes")
	down := time.Duration(rapid.SampledFrom([]int{0, 3, 45, 1200}).Draw(t, "down")) * time.Second
	latency, skew := m.drawLatency(t), m.drawSkew(t)
	loss := rapid.IntRange(0, 9).Draw(t, "ledger is lost") == 0
	return func() {
		if len(m.c.managers) == 0 {
			return
		}
		victim := m.c.managers[0]
		die := func() {
			victim.dead = true
			m.c.agenda.add(m.c.now.Add(down), func() {
				if loss && len(m.c.managers) == 0 {
					m.c.ledger = ledger{version: m.c.nextVersion(), records: map[deps.Source]remembered{}}
					m.judge.scopeChanged()
				}
				m.c.startManager(latency, skew)
			})
		}
		if writes > 0 {
			between(victim, writes, die)
			return
		}
		die()
		victim.stop()
	}
}

// secondLeader starts another manager that believes to lead, or ends all but one.
func (m *machine) secondLeader(t *rapid.T) func() {
	latency, skew := m.drawLatency(t), m.drawSkew(t)
	return func() {
		switch {
		case len(m.c.managers) == 1:
			m.c.startManager(latency, skew)
		case len(m.c.managers) > 1:
			m.c.managers[0].stop()
		}
	}
}

// clock sets the local clock of a manager, and how late its watches are.
func (m *machine) clock(t *rapid.T) func() {
	latency, skew := m.drawLatency(t), m.drawSkew(t)
	return func() {
		for _, leader := range m.c.managers {
			leader.latency, leader.skew = latency, skew
		}
	}
}
