package rollout_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kick-dev/kick/internal/core/rollout"
)

// deployment is one that has rolled out three replicas.
func deployment(change func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web", UID: "web", Generation: 2, Annotations: map[string]string{"deployment.kubernetes.io/revision": "2"},
		},
		Spec: appsv1.DeploymentSpec{Replicas: new(int32(3))},
		Status: appsv1.DeploymentStatus{
			ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3, ReadyReplicas: 3,
		},
	}
	change(d)
	return d
}

var noon = time.Date(2026, 8, 6, 12, 0, 0, 0, time.UTC)

func progressing(reason string, updated time.Time) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Status.Conditions = append(d.Status.Conditions, appsv1.DeploymentCondition{
			Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: reason, LastUpdateTime: metav1.NewTime(updated),
		})
	}
}

func TestOfDeployment(t *testing.T) {
	cases := map[string]struct {
		change func(*appsv1.Deployment)
		want   rollout.State
	}{
		"rolled out": {func(*appsv1.Deployment) {}, rollout.State{Complete: true}},
		"rolled out, with the time of it": {
			progressing("NewReplicaSetAvailable", noon), rollout.State{Complete: true, RevisedBy: noon},
		},
		"rolled out, and its controller has still to say so": {
			progressing("ReplicaSetUpdated", noon), rollout.State{Complete: true},
		},
		"not yet observed": {
			func(d *appsv1.Deployment) { d.Generation = 3 },
			rollout.State{Message: "the Deployment controller has not seen the present spec yet"},
		},
		"updating": {
			func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 1 },
			rollout.State{Message: "1 of 3 replicas are updated"},
		},
		"old replicas left": {
			func(d *appsv1.Deployment) { d.Status.Replicas = 4 },
			rollout.State{Message: "1 old replicas are still running"},
		},
		"not available": {
			func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 2 },
			rollout.State{Message: "2 of 3 updated replicas are available"},
		},
		"scaled to zero": {
			func(d *appsv1.Deployment) {
				d.Spec.Replicas = new(int32(0))
				d.Status = appsv1.DeploymentStatus{ObservedGeneration: 2}
			},
			rollout.State{Complete: true},
		},
		"the default of one replica": {
			func(d *appsv1.Deployment) {
				d.Spec.Replicas = nil
				d.Status = appsv1.DeploymentStatus{ObservedGeneration: 2}
			},
			rollout.State{Message: "0 of 1 replicas are updated"},
		},
		"paused": {func(d *appsv1.Deployment) { d.Spec.Paused = true }, rollout.State{Complete: true, Paused: true}},
		"beyond the progress deadline": {
			func(d *appsv1.Deployment) {
				d.Status.UpdatedReplicas = 1
				d.Status.Conditions = []appsv1.DeploymentCondition{{
					Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded",
				}}
			},
			rollout.State{Failed: true, Message: "1 of 3 replicas are updated"},
		},
		"beyond the progress deadline of an earlier spec": {
			func(d *appsv1.Deployment) {
				d.Generation = 3
				d.Status.Conditions = []appsv1.DeploymentCondition{{
					Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded",
				}}
			},
			rollout.State{Message: "the Deployment controller has not seen the present spec yet"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, rollout.OfDeployment(deployment(tc.change))); diff != "" {
				t.Errorf("state (-want +got):\n%s", diff)
			}
			reduced := deployment(tc.change)
			rollout.ReduceDeployment(reduced)
			if diff := cmp.Diff(tc.want, rollout.OfDeployment(reduced)); diff != "" {
				t.Errorf("state of the reduced one (-want +got):\n%s", diff)
			}
		})
	}
}

func statefulSet(change func(*appsv1.StatefulSet)) *appsv1.StatefulSet {
	s := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "db", UID: "db", Generation: 2},
		Spec:       appsv1.StatefulSetSpec{Replicas: new(int32(3))},
		Status: appsv1.StatefulSetStatus{
			ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 3, CurrentRevision: "db-2", UpdateRevision: "db-2",
		},
	}
	change(s)
	return s
}

func partitioned(ordinal int32) appsv1.StatefulSetUpdateStrategy {
	return appsv1.StatefulSetUpdateStrategy{
		Type:          appsv1.RollingUpdateStatefulSetStrategyType,
		RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(ordinal)},
	}
}

// heldUp is what a person is told about a replica that is not ready.
const heldUp = "; a Pod that does not get ready holds up the others and its own update until somebody deletes it"

func TestOfStatefulSet(t *testing.T) {
	cases := map[string]struct {
		change func(*appsv1.StatefulSet)
		want   rollout.State
	}{
		"rolled out": {func(*appsv1.StatefulSet) {}, rollout.State{Complete: true}},
		"not yet observed": {
			func(s *appsv1.StatefulSet) { s.Generation = 3 },
			rollout.State{Message: "the StatefulSet controller has not seen the present spec yet"},
		},
		"updating": {
			func(s *appsv1.StatefulSet) { s.Status.UpdatedReplicas, s.Status.CurrentRevision = 1, "db-1" },
			rollout.State{Message: "1 of 3 replicas are updated"},
		},
		"the last replica is not ready": {
			func(s *appsv1.StatefulSet) { s.Status.ReadyReplicas = 2 },
			rollout.State{Message: "2 of 3 replicas are ready" + heldUp},
		},
		"an updated replica is not ready": {
			func(s *appsv1.StatefulSet) {
				s.Status.UpdatedReplicas, s.Status.ReadyReplicas, s.Status.CurrentRevision = 1, 2, "db-1"
			},
			rollout.State{Message: "1 of 3 replicas are updated" + heldUp},
		},
		"one of replicas that do not wait for each other is not ready": {
			func(s *appsv1.StatefulSet) {
				s.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
				s.Status.ReadyReplicas = 2
			},
			rollout.State{Message: "2 of 3 replicas are ready"},
		},
		"the revision is not settled": {
			func(s *appsv1.StatefulSet) { s.Status.CurrentRevision = "db-1" },
			rollout.State{Message: "the StatefulSet controller is finishing the revision db-2"},
		},
		"above the partition all are updated": {
			func(s *appsv1.StatefulSet) {
				s.Spec.UpdateStrategy = partitioned(2)
				s.Status.UpdatedReplicas, s.Status.CurrentRevision = 1, "db-1"
			},
			rollout.State{Complete: true, Partial: true},
		},
		"above the partition one is missing": {
			func(s *appsv1.StatefulSet) {
				s.Spec.UpdateStrategy = partitioned(1)
				s.Status.UpdatedReplicas, s.Status.CurrentRevision = 1, "db-1"
			},
			rollout.State{Partial: true, Message: "1 of 2 replicas are updated"},
		},
		"OnDelete waits for nobody": {
			func(s *appsv1.StatefulSet) {
				s.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
				s.Status.UpdatedReplicas, s.Status.CurrentRevision = 0, "db-1"
			},
			rollout.State{Complete: true, Manual: true},
		},
		"scaled to zero": {
			func(s *appsv1.StatefulSet) {
				s.Spec.Replicas = new(int32(0))
				s.Status.Replicas, s.Status.UpdatedReplicas, s.Status.ReadyReplicas = 0, 0, 0
			},
			rollout.State{Complete: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, rollout.OfStatefulSet(statefulSet(tc.change))); diff != "" {
				t.Errorf("state (-want +got):\n%s", diff)
			}
			reduced := statefulSet(tc.change)
			rollout.ReduceStatefulSet(reduced)
			if diff := cmp.Diff(tc.want, rollout.OfStatefulSet(reduced)); diff != "" {
				t.Errorf("state of the reduced one (-want +got):\n%s", diff)
			}
		})
	}
}

func daemonSet(change func(*appsv1.DaemonSet)) *appsv1.DaemonSet {
	s := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "log", UID: "log", Generation: 2},
		Status: appsv1.DaemonSetStatus{
			ObservedGeneration: 2, DesiredNumberScheduled: 3, UpdatedNumberScheduled: 3, NumberAvailable: 3,
		},
	}
	change(s)
	return s
}

func TestOfDaemonSet(t *testing.T) {
	cases := map[string]struct {
		change func(*appsv1.DaemonSet)
		want   rollout.State
	}{
		"rolled out": {func(*appsv1.DaemonSet) {}, rollout.State{Complete: true}},
		"not yet observed": {
			func(s *appsv1.DaemonSet) { s.Generation = 3 },
			rollout.State{Message: "the DaemonSet controller has not seen the present spec yet"},
		},
		"updating": {
			func(s *appsv1.DaemonSet) { s.Status.UpdatedNumberScheduled = 1 },
			rollout.State{Message: "1 of 3 Pods are updated"},
		},
		"not available": {
			func(s *appsv1.DaemonSet) { s.Status.NumberAvailable = 2 },
			rollout.State{Message: "2 of 3 Pods are available"},
		},
		"no node": {
			func(s *appsv1.DaemonSet) { s.Status = appsv1.DaemonSetStatus{ObservedGeneration: 2} },
			rollout.State{Complete: true},
		},
		"OnDelete waits for nobody": {
			func(s *appsv1.DaemonSet) {
				s.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
				s.Status.UpdatedNumberScheduled = 0
			},
			rollout.State{Complete: true, Manual: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, rollout.OfDaemonSet(daemonSet(tc.change))); diff != "" {
				t.Errorf("state (-want +got):\n%s", diff)
			}
			reduced := daemonSet(tc.change)
			rollout.ReduceDaemonSet(reduced)
			if diff := cmp.Diff(tc.want, rollout.OfDaemonSet(reduced)); diff != "" {
				t.Errorf("state of the reduced one (-want +got):\n%s", diff)
			}
		})
	}
}

var created = time.Date(2026, 8, 6, 12, 0, 0, 0, time.UTC)

func ownedBy(owner metav1.Object, kind string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{Kind: kind, Name: owner.GetName(), UID: owner.GetUID(), Controller: new(true)}}
}

func TestDeploymentRevisionIsTheOwnedReplicaSetOfTheSameNumber(t *testing.T) {
	d := deployment(func(*appsv1.Deployment) {})
	set := func(name, number string, owner metav1.Object) appsv1.ReplicaSet {
		return appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
			Name: name, CreationTimestamp: metav1.NewTime(created), OwnerReferences: ownedBy(owner, "Deployment"),
			Annotations: map[string]string{"deployment.kubernetes.io/revision": number},
		}}
	}
	stranger := deployment(func(o *appsv1.Deployment) { o.UID = "other" })
	sets := []appsv1.ReplicaSet{set("web-1", "1", d), set("foreign", "2", stranger), set("web-2", "2", d)}
	got, found := rollout.DeploymentRevision(d, sets)
	if want := (rollout.Revision{Name: "web-2", CreatedAt: created}); !found || got != want {
		t.Errorf("revision %+v (found %v), want %+v", got, found, want)
	}
	rollout.ReduceDeployment(d)
	if reduced, found := rollout.DeploymentRevision(d, sets); !found || reduced != got {
		t.Errorf("of the reduced one %+v (found %v), want %+v", reduced, found, got)
	}
	unseen := deployment(func(o *appsv1.Deployment) { o.Generation = 3 })
	if got, found := rollout.DeploymentRevision(unseen, sets); found {
		t.Errorf("found %+v for a spec the controller has not seen", got)
	}
}

func TestControllerRevisionOfTheSets(t *testing.T) {
	set, daemons := statefulSet(func(*appsv1.StatefulSet) {}), daemonSet(func(*appsv1.DaemonSet) {})
	revision := func(name string, number int64, owner metav1.Object) appsv1.ControllerRevision {
		return appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(created), OwnerReferences: ownedBy(owner, "X")},
			Revision:   number,
		}
	}
	revisions := []appsv1.ControllerRevision{
		revision("db-1", 1, set), revision("db-2", 2, set),
		revision("log-1", 3, daemons), revision("log-2", 2, daemons),
	}
	rollout.ReduceStatefulSet(set)
	rollout.ReduceDaemonSet(daemons)
	if got, found := rollout.StatefulSetRevision(set, revisions); !found || got.Name != "db-2" {
		t.Errorf("StatefulSet: %+v (found %v), want the update revision db-2", got, found)
	}
	if got, found := rollout.DaemonSetRevision(daemons, revisions); !found || got.Name != "log-1" {
		t.Errorf("DaemonSet: %+v (found %v), want log-1, which was renumbered by a rollback", got, found)
	}
}

func TestAReducedWorkloadKeepsItsSelectorAndTemplateAndNoDetails(t *testing.T) {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"a": "b"}}}
	d := deployment(func(d *appsv1.Deployment) {
		d.Spec.Selector, d.Spec.Template, d.Spec.Strategy.Type = selector, template, appsv1.RecreateDeploymentStrategyType
		d.Spec.ProgressDeadlineSeconds, d.Spec.RevisionHistoryLimit = new(int32(600)), new(int32(10))
		d.Status.Conditions = []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Message: "long"},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "r", Message: "long", LastUpdateTime: metav1.NewTime(noon)},
		}
	})
	want := deployment(func(d *appsv1.Deployment) {
		d.Spec.Selector, d.Spec.Template, d.Status.ReadyReplicas = selector, template, 0
		d.Status.Conditions = []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "r", LastUpdateTime: metav1.NewTime(noon)},
		}
	})
	if rollout.ReduceDeployment(d); !cmp.Equal(want, d) {
		t.Errorf("Deployment (-want +got):\n%s", cmp.Diff(want, d))
	}
	set := statefulSet(func(s *appsv1.StatefulSet) {
		s.Spec.Selector, s.Spec.Template, s.Spec.ServiceName = selector, template, "db"
		s.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{}}
		s.Status.Conditions = []appsv1.StatefulSetCondition{{Message: "long"}}
	})
	wantSet := statefulSet(func(s *appsv1.StatefulSet) { s.Spec.Selector, s.Spec.Template = selector, template })
	if rollout.ReduceStatefulSet(set); !cmp.Equal(wantSet, set) {
		t.Errorf("StatefulSet (-want +got):\n%s", cmp.Diff(wantSet, set))
	}
	daemons := daemonSet(func(s *appsv1.DaemonSet) {
		s.Spec.Selector, s.Spec.Template, s.Spec.UpdateStrategy.RollingUpdate = selector, template, &appsv1.RollingUpdateDaemonSet{}
		s.Status.Conditions = []appsv1.DaemonSetCondition{{Message: "long"}}
	})
	wantDaemons := daemonSet(func(s *appsv1.DaemonSet) { s.Spec.Selector, s.Spec.Template = selector, template })
	if rollout.ReduceDaemonSet(daemons); !cmp.Equal(wantDaemons, daemons) {
		t.Errorf("DaemonSet (-want +got):\n%s", cmp.Diff(wantDaemons, daemons))
	}
}
