package request_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/deps"
	"github.com/kick-dev/kick/internal/core/freshness"
	"github.com/kick-dev/kick/internal/core/policy"
	"github.com/kick-dev/kick/internal/core/request"
	"github.com/kick-dev/kick/internal/core/rollout"
)

var (
	noon     = time.Date(2026, 8, 6, 12, 0, 0, 0, time.UTC)
	settings = request.Settings{TTL: time.Hour, RolloutDeadline: 15 * time.Minute}
	db       = deps.Source{Kind: v1alpha1.Secret, Name: "db"}
)

func at(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }

// world is a small model of a workload that a request is driven against: it plays the controller around Next.
type world struct {
	t      *testing.T
	now    time.Time
	facts  request.Facts
	status v1alpha1.KickRequestStatus

	// revision is that of the template, without a name while the workload controller has not made it.
	revision rollout.Revision
	// references are what the Pods consume.
	references []deps.Reference
	pods       []freshness.Pod
	settings   request.Settings
	// full is the limit on concurrent restarts that is reached.
	full   string
	steps  []string
	stamps []string
}

// newWorld is a managed workload, rolled out at noon, whose source db changed a minute later.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, now: at(61), settings: settings, revision: rollout.Revision{Name: "web-1", CreatedAt: at(0)}}
	w.references = []deps.Reference{{Source: db, Readers: []deps.Reader{{Container: "app"}}}}
	w.facts.Changes = freshness.Changes{db: at(60)}
	w.facts.Evidence.CreatedAt = at(-60)
	w.facts.Evidence.Rollout.Complete = true
	w.startPods(1)
	w.manage(false)
	return w
}

func (w *world) manage(suspended bool, restart ...v1alpha1.Restart) {
	spec := v1alpha1.KickPolicySpec{Suspend: suspended}
	for _, r := range restart {
		spec.Restart = r
	}
	parsed, _ := policy.Parse(&v1alpha1.KickPolicy{ObjectMeta: metav1.ObjectMeta{Name: "all"}, Spec: spec})
	w.facts.Scope = policy.ScopeOf([]policy.Policy{parsed}, labels.Set{})
}

func (w *world) startPods(seconds float64) {
	w.pods = []freshness.Pod{{StartedAt: at(seconds), Containers: []freshness.Container{{Name: "app", StartedAt: at(seconds)}}}}
}

func (w *world) readRevision() *rollout.Revision {
	if w.revision.Name == "" {
		return nil
	}
	return &w.revision
}

// readPods returns the Pods, which are of the present template.
func (w *world) readPods() []freshness.Pod {
	pods := slices.Clone(w.pods)
	for i := range pods {
		pods[i].References = w.references
	}
	return pods
}

// decide runs Next until it needs nothing more, and stores its status.
func (w *world) decide() request.Step {
	w.t.Helper()
	facts := w.facts
	for range 6 {
		step := request.Next(w.status, facts, w.settings, w.now)
		switch step.Need {
		case request.NeedLive:
			facts.Live = true
		case request.NeedRoom:
			facts.Room = request.Room{Asked: true, Full: w.full}
		case request.NeedRevision:
			facts.Evidence.Revision, facts.Evidence.RevisionRead = w.readRevision(), true
		case request.NeedPods:
			facts.Evidence.Pods, facts.Evidence.PodsRead = w.readPods(), true
		case request.NeedNothing:
			w.checkRepeatable(facts, step)
			w.status = step.Status
			w.steps = append(w.steps, string(w.status.Phase)+"/"+w.reason())
			return step
		}
	}
	w.t.Fatal("Next keeps asking for facts")
	return request.Step{}
}

// checkRepeatable: with the same facts, a step that was stored decides the same again.
func (w *world) checkRepeatable(facts request.Facts, step request.Step) {
	w.t.Helper()
	if step.Delete {
		return
	}
	again := request.Next(step.Status, facts, w.settings, w.now)
	if diff := cmp.Diff(step.Status, again.Status); again.Need == request.NeedNothing && diff != "" {
		w.t.Errorf("a repeated step decides otherwise (-first +second):\n%s", diff)
	}
	if step.Stamp != "" && again.Need == request.NeedNothing && again.Stamp != step.Stamp {
		w.t.Errorf("a repeated step stamps %q after %q", again.Stamp, step.Stamp)
	}
}

// kick decides, and issues the stamp that is due.
func (w *world) kick() {
	w.t.Helper()
	step := w.decide()
	if step.Stamp == "" {
		w.t.Fatalf("no stamp in %s", w.steps[len(w.steps)-1])
	}
	w.issue(step.Stamp)
}

func (w *world) issue(stamp string) {
	w.stamps = append(w.stamps, stamp)
	w.facts.Stamp, w.facts.Issued = stamp, stamp
	w.facts.Evidence.Rollout = rollout.State{Message: "rolling"}
	w.revision = rollout.Revision{Name: "web-2", CreatedAt: w.now.Truncate(time.Second)}
}

// complete ends the rollout, with Pods that start now.
func (w *world) complete() {
	w.facts.Evidence.Rollout = rollout.State{Complete: true}
	w.startPods(w.now.Sub(noon).Truncate(time.Second).Seconds())
}

func (w *world) pass(seconds float64) {
	w.now = w.now.Add(time.Duration(seconds * float64(time.Second)))
}

func (w *world) reason() string {
	return meta.FindStatusCondition(w.status.Conditions, v1alpha1.ConditionReady).Reason
}

func (w *world) expect(steps ...string) {
	w.t.Helper()
	if diff := cmp.Diff(steps, w.steps); diff != "" {
		w.t.Errorf("steps (-want +got):\n%s", diff)
	}
}

// I6: what a stamp covers is fresh, also when a clock says otherwise and the change lies in the second of the stamp.
// A list that had to be cut covers what it has no room for: neither a StatefulSet whose partition keeps old Pods running
// nor changes dated alike are restarted or opened again and again.
