package properties_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kick-dev/kick/api/v1alpha1"
)

// brisk is a pace at which everything happens within two seconds.
var brisk = pace{
	controller: 20 * time.Millisecond, pull: 50 * time.Millisecond, boot: time.Second, refresh: time.Minute,
}

var everyKind = []v1alpha1.WorkloadKind{v1alpha1.Deployment, v1alpha1.StatefulSet, v1alpha1.DaemonSet}

// scene is a workload of three replicas that reads the Secret db, made at noon, under a policy without restraint.
type scene struct {
	*testing.T
	c *cluster
	j *judge
	w *workload
}

func newScene(t *testing.T, kind v1alpha1.WorkloadKind) *scene {
	j := newJudge(t)
	s := &scene{T: t, c: newCluster(j), j: j}
	s.c.write(db, map[string]string{"a": contentMark + "-1"})
	s.c.pass(time.Minute)
	s.w = s.c.create(workloadKey{kind, "web"}, workloadSpec{replicas: 3}, brisk)
	s.c.pass(time.Minute)
	s.c.putPolicy(&v1alpha1.KickPolicy{ObjectMeta: metav1.ObjectMeta{Name: "all"}})
	return s
}

// inEveryKind runs a scene once for each kind of workload.
func inEveryKind(t *testing.T, play func(*scene)) {
	for _, kind := range everyKind {
		t.Run(string(kind), func(t *testing.T) { play(newScene(t, kind)) })
	}
}

func (s *scene) lead() *manager { return s.c.startManager(0, 0) }

// rotate gives the Secret another value, half way through a second.
func (s *scene) rotate(value string) {
	s.c.pass(1500 * time.Millisecond)
	s.c.write(db, map[string]string{"a": contentMark + "-" + value})
}

func (s *scene) expectRestarts(want int) {
	s.Helper()
	if s.j.stamped != want {
		s.Errorf("%d restarts, want %d\n%s", s.j.stamped, want, strings.Join(s.j.tale, "\n"))
	}
}

func (s *scene) expectPhase(want v1alpha1.Phase) {
	s.Helper()
	if r := s.c.requests[requestName(s.w.key)]; r == nil || r.Status.Phase != want {
		s.Errorf("the request is %+v, want phase %s", r, want)
	}
}

// expectCurrent: every Pod carries what the sources hold.
func (s *scene) expectCurrent() {
	s.Helper()
	for _, o := range s.c.readings(s.w, s.c.truth(s.w)) {
		if s.c.lacking(o) {
			s.Errorf("container %s of Pod %s reads change %d of %s", o.k.name, o.p.name, o.r.version, o.r.use.source)
		}
	}
}

func (s *scene) policy(change func(*v1alpha1.KickPolicySpec)) {
	p := s.c.policies["all"].DeepCopy()
	change(&p.Spec)
	s.c.putPolicy(p)
}

// I1: what was written before the Pods started restarts nothing at first sight, however late that is.
func TestFirstSightOfWhatThePodsCarryRestartsNothing(t *testing.T) {
	inEveryKind(t, func(s *scene) {
		s.c.pass(time.Hour)
		s.lead()
		s.c.pass(time.Hour)
		s.expectRestarts(0)
		s.expectPhase(v1alpha1.PhaseNoLongerRequired)
	})
}

// I1, the converse: what was written after the Pods had started restarts them once, though nobody saw it being written.
func TestFirstSightOfWhatThePodsLackRestartsOnce(t *testing.T) {
	inEveryKind(t, func(s *scene) {
		s.rotate("2")
		s.c.pass(time.Hour)
		s.lead()
		s.c.pass(time.Hour)
		s.expectRestarts(1)
		s.expectCurrent()
	})
}

// I2: every change is acted on in the end: also one that comes during a rollout, after a request has ended, while the gate
// is closed, while nobody leads, or right before the manager dies.
func TestEveryChangeIsActedOnInTheEnd(t *testing.T) {
	cases := map[string]func(*scene, *manager){
		"after a request has ended": func(s *scene, _ *manager) {
			s.rotate("2")
			s.c.pass(time.Minute)
			s.rotate("3")
		},
		"during the rollout": func(s *scene, _ *manager) {
			s.rotate("2")
			s.c.pass(300 * time.Millisecond)
			s.rotate("3")
		},
		"while the gate is closed": func(s *scene, _ *manager) {
			s.policy(func(p *v1alpha1.KickPolicySpec) { p.Suspend = true })
			s.rotate("2")
			s.c.pass(time.Hour)
			s.policy(func(p *v1alpha1.KickPolicySpec) { p.Suspend = false })
		},
		"until a window opens": func(s *scene, _ *manager) {
			s.policy(func(p *v1alpha1.KickPolicySpec) { p.Schedule = denyFive.schedule() })
			s.rotate("2")
		},
		"while nobody leads": func(s *scene, m *manager) {
			m.stop()
			s.rotate("2")
			s.c.pass(time.Hour)
			s.lead()
		},
		"by a removed key, which the server does not date": func(s *scene, _ *manager) {
			s.c.write(db, map[string]string{})
		},
		"within a second of another one": func(s *scene, _ *manager) {
			s.rotate("2")
			s.c.write(db, map[string]string{"a": contentMark + "-3"})
		},
		"while its source comes into scope": func(s *scene, _ *manager) {
			s.c.relabel(db, map[string]string{"kick.dev/ignore": "true"})
			s.rotate("2")
			s.c.pass(time.Minute)
			s.c.relabel(db, nil)
		},
		"seen by a clock that is late": func(s *scene, m *manager) {
			m.skew = -1700 * time.Millisecond
			s.c.pass(time.Minute)
			s.w.live()[0].crash(s.w.live()[0].containers[0])
			s.c.pass(700 * time.Millisecond)
			s.c.write(db, map[string]string{"a": contentMark + "-2"})
		},
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			inEveryKind(t, func(s *scene) {
				m := s.lead()
				s.c.pass(time.Minute)
				change(s, m)
				s.c.pass(2 * time.Hour)
				if s.j.stamped == 0 {
					s.Error("nothing was restarted")
				}
				s.expectPhase(v1alpha1.PhaseSucceeded)
				s.expectCurrent()
			})
		})
	}
}

// I2, I6: a manager may die before any of its writes. The next one takes up where it stopped, and restarts once in all.
func TestAKillBeforeAnyWriteNeitherLosesNorRepeatsARestart(t *testing.T) {
	inEveryKind(t, func(s *scene) {
		for writes := 1; writes <= 7; writes++ {
			m := s.lead()
			s.c.pass(time.Minute)
			before := s.j.stamped
			between(m, writes, func() { m.dead = true })
			s.rotate("kill" + strings.Repeat("!", writes))
			s.c.pass(time.Minute)
			m.stop()
			successor := s.lead()
			s.c.pass(time.Hour)
			successor.stop()
			if n := s.j.stamped - before; n != 1 {
				s.Errorf("killed before write %d: %d restarts\n%s", writes, n, strings.Join(s.j.tale, "\n"))
			}
			s.expectCurrent()
		}
	})
}

// I3: one change restarts a workload of any kind once, and each kind is told complete by its own rule.
func TestAChangeRestartsEveryKindOnce(t *testing.T) {
	inEveryKind(t, func(s *scene) {
		s.lead()
		s.c.pass(time.Minute)
		s.rotate("2")
		s.c.pass(time.Hour)
		s.expectRestarts(1)
		s.expectPhase(v1alpha1.PhaseSucceeded)
		s.expectCurrent()
	})
}

// I4: two leaders, two sources and two references make one request.
func TestTwoLeadersMakeOneRequest(t *testing.T) {
	inEveryKind(t, func(s *scene) {
		s.w.respec(func(spec *workloadSpec) { spec.id.shape = 5 })
		s.c.write(mail, map[string]string{"b": contentMark + "-1"})
		s.c.pass(time.Minute)
		s.lead()
		s.c.startManager(40*time.Millisecond, 0)
		s.c.pass(time.Minute)
		s.rotate("2")
		s.c.write(mail, map[string]string{"b": contentMark + "-2"})
		s.c.pass(time.Hour)
		s.expectRestarts(1)
		if len(s.c.requests) != 1 {
			s.Errorf("%d requests", len(s.c.requests))
		}
	})
}

// I5: no closed gate is passed, whichever it is, until it opens.
func TestNoStampPassesAClosedGate(t *testing.T) {
	policy := func(change func(*v1alpha1.KickPolicySpec)) func(*scene) {
		return func(s *scene) { s.policy(change) }
	}
	gates := map[string]func(*scene){
		"suspended": policy(func(p *v1alpha1.KickPolicySpec) { p.Suspend = true }),
		"dry run":   policy(func(p *v1alpha1.KickPolicySpec) { p.DryRun = true }),
		"closed windows": policy(func(p *v1alpha1.KickPolicySpec) {
			p.Schedule.Windows = []v1alpha1.Window{{Kind: v1alpha1.WindowAllow, Cron: "0 3 * * *", Duration: "1h"}}
		}),
		"unreadable windows": policy(func(p *v1alpha1.KickPolicySpec) { p.Schedule = unreadable.schedule() }),
		"paused":             func(s *scene) { s.w.respec(func(spec *workloadSpec) { spec.paused = true }) },
		"missing source": func(s *scene) {
			s.w.respec(func(spec *workloadSpec) { spec.id.shape = 4 })
			s.c.remove(mail)
		},
		"quiet period": policy(func(p *v1alpha1.KickPolicySpec) {
			day := &metav1.Duration{Duration: 24 * time.Hour}
			p.Restart = v1alpha1.Restart{QuietPeriod: day, MaxQuiet: day}
		}),
	}
	for name, closes := range gates {
		t.Run(name, func(t *testing.T) {
			inEveryKind(t, func(s *scene) {
				if name == "paused" && s.w.key.kind != v1alpha1.Deployment {
					s.Skip("only Deployments are paused")
				}
				s.c.write(mail, map[string]string{"a": contentMark + "-1"})
				s.lead()
				s.c.pass(time.Minute)
				closes(s)
				s.c.pass(time.Minute)
				s.rotate("2")
				s.c.pass(2 * time.Hour)
				s.expectRestarts(0)
				if r := s.c.requests[requestName(s.w.key)]; r.Status.Phase.Terminal() {
					s.Errorf("%s/%s while the gate is closed", r.Status.Phase, reasonOf(&r.Status))
				}
			})
		})
	}
}

// I6: one change, one restart: however often it is delivered, whatever is written beside it, with the request gone or not.
func TestOneChangeIsOneRestart(t *testing.T) {
	noise := map[string]func(*scene){
		"annotations":            func(s *scene) { s.c.annotate(db, true) },
		"the same content again": func(s *scene) { s.c.remove(db); s.c.write(db, map[string]string{"a": contentMark + "-2"}) },
		"another leader":         func(s *scene) { s.c.managers[0].stop(); s.lead() },
		"the request is deleted": func(s *scene) { s.c.deleteRequest(requestName(s.w.key)) },
		"the ledger is lost": func(s *scene) {
			s.c.managers[0].stop()
			s.c.ledger = newCluster(newJudge(s.T)).ledger
			s.j.c = s.c
			s.lead()
		},
		"scaling":                   func(s *scene) { s.w.respec(func(spec *workloadSpec) { spec.replicas = 5 }); s.w.resync() },
		"a Pod is lost":             func(s *scene) { s.w.deletePod(s.w.live()[0]); s.w.resync() },
		"a new policy selects it":   func(s *scene) { s.c.putPolicy(&v1alpha1.KickPolicy{ObjectMeta: metav1.ObjectMeta{Name: "more"}}) },
		"somebody else restarts it": func(s *scene) { s.w.respec(func(spec *workloadSpec) { spec.id.stamp = "2100-01-01T00:00:00Z" }) },
	}
	for name, makes := range noise {
		t.Run(name, func(t *testing.T) {
			inEveryKind(t, func(s *scene) {
				s.lead()
				s.c.pass(time.Minute)
				s.rotate("2")
				s.c.pass(time.Minute)
				makes(s)
				s.c.pass(12 * time.Hour)
				s.expectRestarts(1)
				s.expectCurrent()
			})
		})
	}
}

// I7: nothing of a workload changes but the annotation, and no status tells a value, nor what it could be guessed from.
func TestOnlyTheAnnotationIsWrittenAndNoValueIsTold(t *testing.T) {
	inEveryKind(t, func(s *scene) {
		before := s.w.spec.id.template()
		s.lead()
		s.c.pass(time.Minute)
		s.rotate("2")
		s.c.pass(time.Minute)
		s.expectRestarts(1)
		after := s.w.spec.id.template()
		if after.Annotations[v1alpha1.RestartedAtAnnotation] == "" {
			s.Error("not stamped")
		}
		after.Annotations = nil
		if !reflect.DeepEqual(before, after) {
			s.Errorf("the template was %+v and is %+v", before, after)
		}
		encoded, err := json.Marshal(s.c.requests[requestName(s.w.key)])
		if err != nil || strings.Contains(string(encoded), contentMark) {
			s.Errorf("the request tells a value: %s %v", encoded, err)
		}
		key, known := s.c.ledger.records[db].Keys.Of("a")
		if !known {
			s.Error("the key is not on record")
		}
		for _, secret := range [][]byte{s.c.ledger.records[db].Fingerprint, key.Digest} {
			if told, _ := json.Marshal(secret); strings.Contains(string(encoded), strings.Trim(string(told), `"`)) {
				s.Errorf("the request tells a digest: %s", encoded)
			}
		}
	})
}

// I8: a workload that comes after all its sources were observed has no request, until one of them changes.
func TestAWorkloadAfterItsSourcesHasNoRequest(t *testing.T) {
	inEveryKind(t, func(s *scene) {
		s.lead()
		s.c.pass(time.Minute)
		s.c.destroy(s.w)
		s.c.pass(time.Minute)
		s.w = s.c.create(workloadKey{s.w.key.kind, "later"}, workloadSpec{replicas: 2}, brisk)
		s.c.pass(time.Hour)
		if len(s.c.requests) != 0 {
			s.Errorf("%d requests", len(s.c.requests))
		}
		s.rotate("2")
		s.c.pass(time.Hour)
		s.expectPhase(v1alpha1.PhaseSucceeded)
		s.expectRestarts(1)
	})
}
