package properties_test

import (
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/deps"
	"github.com/kick-dev/kick/internal/core/request"
)

// stamping is a stamp that is being written.
type stamping struct {
	m         *manager
	w         *workload
	stored    *v1alpha1.KickRequest
	judged    *snapshot
	facts     request.Facts
	value     string
	decidedAt time.Time
}

// kicks are the restarts of a workload by KICK.
type kicks struct {
	value   string
	at      time.Time
	by      *manager
	request types.UID
	dates   map[deps.Source]time.Time
	manual  time.Time
}

// stamps checks a stamp at the instant in which it is written.
func (j *judge) stamps(s stamping) {
	j.stamped++
	j.tell("manager %d: stamps %s with %s", s.m.number, s.w.key, s.value)
	v := s.m.view(s.judged)
	// A wish that a removed stamp had answered is open again.
	asked := s.facts.Manual != nil && (s.facts.Manual.RequestedAt.After(s.w.kicks.manual) || s.w.spec.id.stamp != s.w.kicks.value)
	j.permitted(s, v, asked)
	j.once(s, asked)
	if !asked {
		j.needed(s, v)
	}
	kicks := kicks{value: s.value, at: s.decidedAt, by: s.m, request: s.stored.UID, dates: map[deps.Source]time.Time{}}
	maps.Copy(kicks.dates, s.facts.Changes)
	if s.facts.Manual != nil {
		kicks.manual = s.facts.Manual.RequestedAt.Time
	}
	s.w.kicks = kicks
}

// permitted is I5: every link of the gate allows the stamp, as far as the manager knows.
func (j *judge) permitted(s stamping, v view, asked bool) {
	switch {
	case !v.rules.act():
		j.fail("I5: %s is stamped, and no policy that acts selects it", s.w.key)
	case !v.rules.open(s.decidedAt) && !(asked && s.facts.Manual.Override):
		j.fail("I5: %s is stamped outside its windows", s.w.key)
	case s.w.spec.paused:
		j.fail("I5: %s is stamped while it is paused", s.w.key)
	case s.w.spec.id.stamp == s.value:
		j.fail("%s is stamped with the value it carries", s.w.key)
	}
	for _, u := range shapes[s.judged.id.shape].uses {
		if s.m.sources[u.source] == nil && !u.optional {
			j.fail("I5: %s is stamped, and new Pods would not start without %s", s.w.key, u.source)
		}
	}
	j.restrained(s, v, asked)
	for _, p := range v.rules {
		limit := p.Spec.Restart.MaxConcurrent
		if limit != nil && len(s.m.restarting(p.Name, s.w.key)) >= int(*limit) {
			j.fail("I5: %s is stamped, and %d are restarting under policy %s", s.w.key, *limit, p.Name)
		}
	}
	age := j.c.now.Sub(s.w.changedAt)
	if !s.w.completed && !s.w.status.progressFailed && age < v.rules.deadline()-tolerance {
		revision := s.w.revisionOf(s.w.spec.id)
		if revision == nil || revision.createdAt.After(s.w.changedAt) {
			j.fail("%s is stamped %s into a rollout", s.w.key, age)
		}
		j.counts[intoRollback]++
	}
}

// clockDifference is how far ahead the clock that made a restart may have been for it to count.
const clockDifference = time.Minute

// restrained checks quiet period and minimum interval.
func (j *judge) restrained(s stamping, v view, asked bool) {
	if asked {
		return
	}
	still := s.w.spec.id.stamp == s.w.kicks.value && s.w.kicks.by == s.m
	interval := v.rules.longest(func(r v1alpha1.Restart) *metav1.Duration { return r.MinInterval })
	ahead := s.w.kicks.at.Sub(s.decidedAt)
	repeated := s.stored.Status.CurrentRollout.Attempts > 0 // A removed stamp, even one that has come back since.
	if still && !repeated && interval > 0 && ahead > tolerance-interval && ahead <= clockDifference {
		j.fail("I5: %s is stamped at %s after %s", s.w.key, s.decidedAt, s.w.kicks.at)
	}
	// A successor whose clock is a little behind carries out what was decided before it.
	decidedAt := s.decidedAt
	if at, err := time.Parse(time.RFC3339Nano, s.value); err == nil && at.After(decidedAt) {
		decidedAt = at
	}
	quiet := v.rules.longest(func(r v1alpha1.Restart) *metav1.Duration { return r.QuietPeriod })
	most := v.rules.longest(func(r v1alpha1.Restart) *metav1.Duration { return r.MaxQuiet })
	opened := decidedAt
	for _, condition := range s.stored.Status.Conditions {
		if condition.Type == v1alpha1.ConditionReady {
			opened = condition.LastTransitionTime.Time
		}
	}
	for name, at := range s.facts.Changes {
		covered := !at.After(s.w.kicks.dates[name])
		if quiet > 0 && !covered && decidedAt.Before(at.Add(min(quiet, most))) && decidedAt.Before(opened.Add(most)) {
			j.fail("I5: %s is stamped %s after a change of %s", s.w.key, decidedAt.Sub(at), name)
		}
	}
}

// once is I6: a stamp that is still on the template and whose request is still there is followed by another one only
// for a later change.
func (j *judge) once(s stamping, asked bool) {
	last := s.w.kicks
	if asked || last.value == "" || last.value != s.w.spec.id.stamp || last.request != s.stored.UID {
		return
	}
	for name, at := range s.facts.Changes {
		if at.After(last.dates[name]) {
			return
		}
	}
	j.fail("I6: %s is stamped again for changes that its stamp %s covers", s.w.key, last.value)
}

// needed is I1 and I6: some running container has not read the last change of a source, or cannot be told from one.
func (j *judge) needed(s stamping, v view) {
	cause := ""
	for _, o := range j.c.readings(s.w, v) {
		if o.behind() {
			return
		}
		date := s.facts.Changes[o.r.use.source]
		switch {
		case s.facts.Evidence.PodsLate && j.c.now.Sub(o.k.started) <= lateBy:
			cause = lateList
		case !o.bound().Before(date):
		case date.After(o.r.at):
			cause = datedLate
		case o.k.restarts > 0 && !o.r.use.environment():
			cause = volumeLag
		default:
			cause = sameSecond
		}
	}
	if cause == "" && !s.w.completed {
		cause = overtaking
	}
	if cause == "" {
		j.fail("I1, I6: %s is stamped, and every container carries every change", s.w.key)
	}
	j.counts[cause]++
}
