package properties_test

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/deps"
	"github.com/kick-dev/kick/internal/core/request"
)

// Bounds of a status.
const (
	maxMessage = 1024
	maxStatus  = 16 << 10
)

// decision is a step of a request that is about to be carried out.
type decision struct {
	m       *manager
	present *v1alpha1.KickRequest
	w       *snapshot
	facts   request.Facts
	step    request.Step
	now     time.Time
}

// decided checks a decision before it is carried out.
func (j *judge) decided(d decision) {
	if d.step.Delete {
		if !d.present.Status.Phase.Terminal() {
			j.fail("a request that is %s is deleted", d.present.Status.Phase)
		}
		return
	}
	if before, after := d.present.Status, d.step.Status; before.Phase != after.Phase || reasonOf(&before) != reasonOf(&after) {
		j.tell("manager %d: %s is %s/%s", d.m.number, d.w.key, after.Phase, reasonOf(&after))
	}
	j.repeatable(d)
	j.explained(d)
	j.wellFormed(&d.step.Status)
	if status := d.step.Status; status.Phase.Terminal() && status.Phase != d.present.Status.Phase {
		j.ended(d)
	}
}

// repeatable: a step that was stored decides the same again.
func (j *judge) repeatable(d decision) {
	again := request.Next(d.step.Status, d.facts, d.m.settings, d.now)
	overtakes := d.present.Status.Phase == v1alpha1.PhaseExecuting && !d.facts.Evidence.Rollout.Complete && !d.step.Status.Phase.Terminal()
	sameInstant := d.step.Stamp != "" && d.facts.Denied.Stamp == d.step.Stamp
	if again.Need != request.NeedNothing || overtakes || sameInstant {
		return // Over a rollout that is stuck the start of KICK's own counts first, and the age of the revision afterwards.
	}
	if !equality.Semantic.DeepEqual(d.step.Status, again.Status) {
		j.fail("a repeated step of %s decides otherwise (-first +second):\n%s", d.w.key, cmp.Diff(d.step.Status, again.Status))
	}
	if d.step.Stamp != "" && again.Stamp != d.step.Stamp {
		j.fail("I6: a repeated step stamps %s after %s", again.Stamp, d.step.Stamp)
	}
}

// wellFormed checks what holds for every status.
func (j *judge) wellFormed(s *v1alpha1.KickRequestStatus) {
	trio, all := 0, map[string]metav1.ConditionStatus{}
	for _, condition := range s.Conditions {
		all[condition.Type] = condition.Status
		if condition.Type != v1alpha1.ConditionRestarted && condition.Status == metav1.ConditionTrue {
			trio++
		}
		if len(condition.Message) > maxMessage || condition.Reason == "" {
			j.fail("condition %s: reason %q, %d bytes of message", condition.Type, condition.Reason, len(condition.Message))
		}
	}
	if trio != 1 || len(all) != 4 {
		j.fail("of Ready, Reconciling and Stalled %d are True: %v", trio, all)
	}
	if (all[v1alpha1.ConditionReady] == metav1.ConditionTrue) != (s.Phase == v1alpha1.PhaseSucceeded || s.Phase == v1alpha1.PhaseNoLongerRequired) {
		j.fail("Ready is %s in %s", all[v1alpha1.ConditionReady], s.Phase)
	}
	if s.Phase.Terminal() != (s.CompletedAt != nil) {
		j.fail("%s, completed at %v", s.Phase, s.CompletedAt)
	}
	encoded, err := json.Marshal(s)
	if err != nil || len(encoded) > maxStatus {
		j.fail("a status of %d bytes: %v", len(encoded), err)
	}
	if strings.Contains(string(encoded), contentMark) {
		j.fail("I7: content of a source in the status: %s", encoded)
	}
}

// ended checks that the end of a request is true.
func (j *judge) ended(d decision) {
	w := j.c.workloads[d.w.key]
	if w == nil || w.uid != d.w.uid {
		return
	}
	status, reason := d.step.Status, reasonOf(&d.step.Status)
	switch {
	case reason == v1alpha1.ReasonNotManaged:
		if v := d.m.view(d.w); slices.ContainsFunc(shapes[d.w.id.shape].sources(), func(name deps.Source) bool {
			labels, exists := v.labels(name)
			return exists && v.rules.admits(labels)
		}) && len(d.facts.Changes) > 0 {
			j.fail("%s is managed and ends in %s", d.w.key, reason)
		}
	case reason == v1alpha1.ReasonStampRemoved:
		if d.w.id.stamp == w.kicks.value {
			j.fail("%s carries its stamp and ends in %s", d.w.key, reason)
		}
	case status.Phase == v1alpha1.PhaseFailed:
		if d.w.rollout().Complete {
			j.fail("the rollout of %s is complete and ends in %s", d.w.key, reason)
		}
	default:
		j.carries(w, d.m.view(d.w), d.m.ledger, status.Phase)
	}
}

// carries checks that all Pods carry what they should, but for the documented limits.
func (j *judge) carries(w *workload, v view, l ledger, end v1alpha1.Phase) {
	for _, o := range j.c.readings(w, v) {
		if !j.c.lacking(o) {
			continue
		}
		excuse := j.c.excuse(o, v.partition, l.records[o.r.use.source])
		if excuse == "" {
			j.fail("I2: %s: %s, and container %s of Pod %s, started at %s, reads change %d of %s, not %d of %s (on record as of %s)",
				w.key, end, o.k.name, o.p.name, o.k.started, o.r.version, o.r.use.source, o.change,
				j.c.history[o.r.use.source][o.change].at, l.records[o.r.use.source].ChangedAt)
		}
		j.counts[excuse]++
	}
}
