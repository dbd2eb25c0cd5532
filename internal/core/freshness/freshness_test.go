package freshness_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/deps"
	"github.com/kick-dev/kick/internal/core/freshness"
	"github.com/kick-dev/kick/internal/core/rollout"
)

var noon = time.Date(2026, 8, 6, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }

var (
	db  = deps.Source{Kind: v1alpha1.Secret, Name: "db"}
	cfg = deps.Source{Kind: v1alpha1.ConfigMap, Name: "cfg"}

	wish = deps.Source{Kind: v1alpha1.Manual, Name: "jane"}

	// The container app reads db from its environment and cfg from a volume; the container log reads neither.
	references = []deps.Reference{
		{Source: cfg, Readers: []deps.Reader{{Container: "app", Channel: deps.Volume}}},
		{Source: db, Readers: []deps.Reader{{Container: "app", Channel: deps.Environment}}},
	}
)

func pod(appStart float64) freshness.Pod {
	return freshness.Pod{StartedAt: at(0), References: references, Containers: []freshness.Container{
		{Name: "app", StartedAt: at(appStart)}, {Name: "log", StartedAt: at(0)},
	}}
}

func restartedPod(appStart float64) freshness.Pod {
	p := pod(appStart)
	p.Containers[0].Restarted = true
	return p
}

// evidence of a complete rollout: the workload made at 0 s, its revision at 10 s.
func evidence(change ...func(*freshness.Evidence)) freshness.Evidence {
	e := freshness.Evidence{
		CreatedAt:    at(0),
		Rollout:      rollout.State{Complete: true},
		Revision:     &rollout.Revision{Name: "web-1", CreatedAt: at(10)},
		RevisionRead: true,
		PodsRead:     true,
	}
	for _, c := range change {
		c(&e)
	}
	return e
}

func pods(p ...freshness.Pod) func(*freshness.Evidence) {
	return func(e *freshness.Evidence) { e.Pods = p }
}

func TestJudge(t *testing.T) {
	late := func(e *freshness.Evidence) { e.PodsLate = true }
	unread := func(e *freshness.Evidence) { e.RevisionRead, e.Revision, e.PodsRead = false, nil, false }
	carried := func(source deps.Source, seconds float64) func(*freshness.Evidence) {
		return func(e *freshness.Evidence) { e.Carried.Changes = freshness.Changes{source: at(seconds)} }
	}
	rolledOut := func(seconds float64) func(*freshness.Evidence) {
		return func(e *freshness.Evidence) { e.Rollout.RevisedBy = at(seconds) }
	}
	cases := map[string]struct {
		changes  freshness.Changes
		evidence freshness.Evidence
		want     freshness.Verdict
	}{
		"no change": {
			evidence: evidence(unread), want: freshness.Verdict{Outcome: freshness.Fresh},
		},
		"older than the workload": {
			changes: freshness.Changes{db: at(0)}, evidence: evidence(unread),
			want: freshness.Verdict{Outcome: freshness.Fresh},
		},
		"covered by KICK's own stamp, whatever the clocks say": {
			changes: freshness.Changes{db: at(500)}, evidence: evidence(unread, carried(db, 500)),
			want: freshness.Verdict{Outcome: freshness.Fresh},
		},
		"covered without being listed, because the list was cut": {
			changes:  freshness.Changes{db: at(400), cfg: at(300)},
			evidence: evidence(unread, carried(cfg, 500), func(e *freshness.Evidence) { e.Carried.Through = at(400) }),
			want:     freshness.Verdict{Outcome: freshness.Fresh},
		},
		"in the second of the revision, before the stamp that made it": {
			changes: freshness.Changes{db: at(10.3)},
			evidence: evidence(func(e *freshness.Evidence) {
				e.PodsRead, e.Stamp = false, at(10.4).Format(time.RFC3339Nano)
			}),
			want: freshness.Verdict{Outcome: freshness.Fresh},
		},
		"in the second of the revision, after the stamp that made it": {
			changes: freshness.Changes{db: at(10.5)},
			evidence: evidence(func(e *freshness.Evidence) {
				e.PodsRead, e.Stamp = false, at(10.4).Format(time.RFC3339Nano)
			}),
			want: freshness.Verdict{Outcome: freshness.NeedsPods},
		},
		"a stamp from the future does not make the revision younger": {
			changes: freshness.Changes{db: at(12)},
			evidence: evidence(func(e *freshness.Evidence) {
				e.PodsRead, e.Stamp = false, "2100-01-01T00:00:00Z"
			}),
			want: freshness.Verdict{Outcome: freshness.NeedsPods},
		},
		"newer than what the stamp covers": {
			changes:  freshness.Changes{db: at(500.000001)},
			evidence: evidence(carried(db, 500), pods(pod(20))),
			want:     freshness.Verdict{Outcome: freshness.Stale, Stale: freshness.Changes{db: at(500.000001)}},
		},
		"asks for the revision before the Pods": {
			changes: freshness.Changes{db: at(5)}, evidence: evidence(unread),
			want: freshness.Verdict{Outcome: freshness.NeedsRevision},
		},
		"does not ask for a revision that was rolled out before the change": {
			changes: freshness.Changes{db: at(12.5)}, evidence: evidence(unread, rolledOut(11)),
			want: freshness.Verdict{Outcome: freshness.NeedsPods},
		},
		"asks for a revision that was rolled out in the second before the change": {
			changes: freshness.Changes{db: at(12)}, evidence: evidence(unread, rolledOut(11)),
			want: freshness.Verdict{Outcome: freshness.NeedsRevision},
		},
		"asks for a revision that was rolled out between two changes": {
			changes: freshness.Changes{db: at(10), cfg: at(20)}, evidence: evidence(unread, rolledOut(11)),
			want: freshness.Verdict{Outcome: freshness.NeedsRevision},
		},
		"no newer than the revision": {
			changes: freshness.Changes{db: at(10)}, evidence: evidence(func(e *freshness.Evidence) { e.PodsRead = false }),
			want: freshness.Verdict{Outcome: freshness.Fresh},
		},
		"newer than the revision by less than a second": {
			changes: freshness.Changes{db: at(10.3)}, evidence: evidence(func(e *freshness.Evidence) { e.PodsRead = false }),
			want: freshness.Verdict{Outcome: freshness.NeedsPods},
		},
		"a partition makes the revision no evidence": {
			changes: freshness.Changes{db: at(5)},
			evidence: evidence(pods(pod(1)), func(e *freshness.Evidence) {
				e.Rollout.Partial = true
			}),
			want: freshness.Verdict{Outcome: freshness.Stale, Stale: freshness.Changes{db: at(5)}},
		},
		"OnDelete makes the revision no evidence": {
			changes: freshness.Changes{db: at(5)},
			evidence: evidence(pods(pod(1)), func(e *freshness.Evidence) {
				e.Rollout.Manual = true
			}),
			want: freshness.Verdict{Outcome: freshness.Stale, Stale: freshness.Changes{db: at(5)}},
		},
		"every Pod started after the change": {
			changes: freshness.Changes{db: at(20)}, evidence: evidence(pods(pod(20), pod(30))),
			want: freshness.Verdict{Outcome: freshness.Fresh},
		},
		"one Pod started before the change": {
			changes: freshness.Changes{db: at(25)}, evidence: evidence(pods(pod(20), pod(30))),
			want: freshness.Verdict{Outcome: freshness.Stale, Stale: freshness.Changes{db: at(25)}},
		},
		"a late list tells that one Pod is stale": {
			changes: freshness.Changes{db: at(25)}, evidence: evidence(pods(pod(20), pod(30)), late),
			want: freshness.Verdict{Outcome: freshness.Stale, Stale: freshness.Changes{db: at(25)}},
		},
		"a late list does not tell that all are fresh": {
			changes: freshness.Changes{db: at(20)}, evidence: evidence(pods(pod(20), pod(30)), late),
			want: freshness.Verdict{Outcome: freshness.NeedsPods},
		},
		"a Pod that started in the second of the change may have started before it": {
			changes: freshness.Changes{db: at(20.7)}, evidence: evidence(pods(pod(20))),
			want: freshness.Verdict{Outcome: freshness.Stale, Stale: freshness.Changes{db: at(20.7)}},
		},
		"only the stale sources are named": {
			changes: freshness.Changes{db: at(25), cfg: at(15)}, evidence: evidence(pods(pod(20))),
			want: freshness.Verdict{Outcome: freshness.Stale, Stale: freshness.Changes{db: at(25)}},
		},
		"a Pod of an older template reads what that one says": {
			changes: freshness.Changes{db: at(25)},
			evidence: evidence(pods(pod(30), freshness.Pod{
				References: []deps.Reference{{Source: db, Readers: []deps.Reader{{Container: "log", Channel: deps.Environment}}}},
				Containers: []freshness.Container{{Name: "app", StartedAt: at(30)}, {Name: "log", StartedAt: at(20)}},
			})),
			want: freshness.Verdict{Outcome: freshness.Stale, Stale: freshness.Changes{db: at(25)}},
		},
		"a Pod of an older template that does not read the source is no matter": {
			changes: freshness.Changes{db: at(25)},
			evidence: evidence(pods(pod(30), freshness.Pod{
				Containers: []freshness.Container{{Name: "app", StartedAt: at(20)}},
			})),
			want: freshness.Verdict{Outcome: freshness.Fresh},
		},
		"a person's wish concerns every container": {
			changes: freshness.Changes{wish: at(25)},
			evidence: evidence(pods(freshness.Pod{
				Containers: []freshness.Container{{Name: "app", StartedAt: at(30)}, {Name: "log", StartedAt: at(20)}},
			})),
			want: freshness.Verdict{Outcome: freshness.Stale, Stale: freshness.Changes{wish: at(25)}},
		},
		"no Pod runs, so none is stale": {
			changes: freshness.Changes{db: at(500)}, evidence: evidence(pods()),
			want: freshness.Verdict{Outcome: freshness.Fresh},
		},
		"a container that restarted has read its environment anew": {
			changes: freshness.Changes{db: at(200)}, evidence: evidence(pods(restartedPod(210))),
			want: freshness.Verdict{Outcome: freshness.Fresh},
		},
		"a container that restarted may find its volume not yet refreshed": {
			changes: freshness.Changes{cfg: at(200)}, evidence: evidence(pods(restartedPod(210))),
			want: freshness.Verdict{Outcome: freshness.Stale, Stale: freshness.Changes{cfg: at(200)}},
		},
		"a container that restarted long after finds its volume refreshed": {
			changes: freshness.Changes{cfg: at(200)}, evidence: evidence(pods(restartedPod(400))),
			want: freshness.Verdict{Outcome: freshness.Fresh},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := freshness.Judge(tc.changes, tc.evidence)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
		})
	}
}

func TestJudgeTemplateAsksWhetherAnotherRevisionWouldHelp(t *testing.T) {
	stuck := func(e *freshness.Evidence) { e.Rollout = rollout.State{}; e.PodsRead = false }
	for name, tc := range map[string]struct {
		change float64
		want   freshness.Outcome
	}{
		"a change the stuck revision was made after":  {change: 9, want: freshness.Fresh},
		"a change that came after the stuck revision": {change: 11, want: freshness.Stale},
	} {
		t.Run(name, func(t *testing.T) {
			got := freshness.JudgeTemplate(freshness.Changes{db: at(tc.change)}, evidence(stuck))
			if got.Outcome != tc.want {
				t.Errorf("outcome %v, want %v", got.Outcome, tc.want)
			}
		})
	}
}

func TestPodOf(t *testing.T) {
	start := metav1.NewTime(at(1))
	running := func(name string, seconds float64, restarts int32) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, RestartCount: restarts, State: corev1.ContainerState{
			Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(at(seconds))},
		}}
	}
	live := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", EnvFrom: []corev1.EnvFromSource{
		{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "db"}}},
	}}}}, Status: corev1.PodStatus{
		Phase: corev1.PodRunning, StartTime: &start,
		InitContainerStatuses: []corev1.ContainerStatus{
			{Name: "init", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				StartedAt: metav1.NewTime(at(2)), FinishedAt: metav1.NewTime(at(3)),
			}}},
			running("sidecar", 4, 0),
		},
		ContainerStatuses: []corev1.ContainerStatus{
			running("app", 9, 2),
			{Name: "waiting", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}},
			{Name: "exited", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: metav1.NewTime(at(5))}}},
		},
	}}
	got, runs := freshness.PodOf(live)
	want := freshness.Pod{StartedAt: at(1), Containers: []freshness.Container{
		{Name: "init", StartedAt: at(2)},
		{Name: "sidecar", StartedAt: at(4)},
		{Name: "app", StartedAt: at(9), Restarted: true},
	}, References: []deps.Reference{
		{Source: db, Readers: []deps.Reader{{Container: "app", Channel: deps.Environment}}, Whole: true, Required: true},
	}}
	if diff := cmp.Diff(want, got); diff != "" || !runs {
		t.Errorf("runs %v; evidence (-want +got):\n%s", runs, diff)
	}

	for name, change := range map[string]func(*corev1.Pod){
		"finished":      func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded },
		"failed":        func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed },
		"being deleted": func(p *corev1.Pod) { p.DeletionTimestamp = &start },
	} {
		gone := live.DeepCopy()
		change(gone)
		if _, runs := freshness.PodOf(gone); runs {
			t.Errorf("a Pod that is %s counts as running", name)
		}
	}
}

// The kubelet dates by the clock of its node, the API server creations and writes by its own.
func TestPodOfANodeWhoseClockIsWrong(t *testing.T) {
	status := func(written float64) []metav1.ManagedFieldsEntry {
		stamp := metav1.NewTime(at(written))
		return []metav1.ManagedFieldsEntry{{Manager: "kubelet", Subresource: "status", Time: &stamp}}
	}
	for name, tc := range map[string]struct {
		started float64
		ready   float64
		written []metav1.ManagedFieldsEntry
		want    float64
	}{
		"right":                                {started: 3, ready: 5, written: status(5), want: 3},
		"right, and not known when written":    {started: 3, ready: 5, want: 3},
		"right, and another one wrote later":   {started: 3, ready: 5, written: append(status(5), status(9)...), want: 3},
		"ahead":                                {started: 123, ready: 123, written: status(4), want: 1},
		"ahead, and it was ready late":         {started: 123, ready: 183, written: status(64), want: 1},
		"ahead, and it was written once again": {started: 123, ready: 125, written: append(status(4), status(6)...), want: 1},
		"ahead by a second":                    {started: 5, ready: 5, written: status(4), want: 1},
		"behind":                               {started: -117, ready: -115, written: status(5), want: 1},
		"behind by less than the Pod waited":   {started: 2, ready: 4, written: status(90), want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			taken := metav1.NewTime(at(tc.started))
			got, _ := freshness.PodOf(&corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(at(1)), ManagedFields: tc.written},
				Status: corev1.PodStatus{
					StartTime:         &taken,
					Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, LastTransitionTime: metav1.NewTime(at(tc.ready))}},
					ContainerStatuses: []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: taken}}}},
				},
			})
			if !got.StartedAt.Equal(at(tc.want)) || !got.Containers[0].StartedAt.Equal(at(tc.want)) {
				t.Errorf("the Pod started at %s and its container at %s, want %s", got.StartedAt, got.Containers[0].StartedAt, at(tc.want))
			}
		})
	}
}

func TestNewestOrdersChanges(t *testing.T) {
	changes := freshness.Changes{db: at(1), cfg: at(2), {Kind: v1alpha1.Secret, Name: "a"}: at(1)}
	want := []deps.Source{cfg, {Kind: v1alpha1.Secret, Name: "a"}, db}
	if diff := cmp.Diff(want, changes.Newest()); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if !changes.Latest().Equal(at(2)) {
		t.Errorf("latest %s, want %s", changes.Latest(), at(2))
	}
}
