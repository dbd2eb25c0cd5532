package rollout

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OfStatefulSet returns the state of a StatefulSet's rollout.
func OfStatefulSet(set *appsv1.StatefulSet) State {
	state := State{
		Manual:  set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType,
		Partial: partition(set) > 0,
	}
	status := &set.Status
	desired := replicas(set.Spec.Replicas)
	due := max(0, desired-partition(set))
	switch {
	case status.ObservedGeneration < set.Generation:
		state.Message = "the StatefulSet controller has not seen the present spec yet"
	case status.Replicas < desired:
		state.Message = fmt.Sprintf("%d of %d replicas exist", status.Replicas, desired)
	case state.Manual:
		state.Complete = true
	case status.UpdatedReplicas < due:
		state.Message = fmt.Sprintf("%d of %d replicas are updated", status.UpdatedReplicas, due) + ordered(set)
	case status.ReadyReplicas < desired:
		state.Message = fmt.Sprintf("%d of %d replicas are ready", status.ReadyReplicas, desired) + ordered(set)
	case !state.Partial && status.UpdateRevision != status.CurrentRevision:
		state.Message = "the StatefulSet controller is finishing the revision " + status.UpdateRevision
	default:
		state.Complete = true
	}
	return state
}

// ordered adds what a person may have to do. The controller of a StatefulSet that takes its Pods one after the other waits
// for one that is not ready even when the template that made it so has been replaced (kubernetes/kubernetes#67250).
func ordered(set *appsv1.StatefulSet) string {
	if set.Spec.PodManagementPolicy == appsv1.ParallelPodManagement || set.Status.ReadyReplicas >= replicas(set.Spec.Replicas) {
		return ""
	}
	return "; a Pod that does not get ready holds up the others and its own update until somebody deletes it"
}

// partition is the ordinal below which Pods keep their older template.
func partition(set *appsv1.StatefulSet) int32 {
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	if rolling == nil || rolling.Partition == nil {
		return 0
	}
	return *rolling.Partition
}

// ReduceStatefulSet drops from spec and status of a StatefulSet what this package does not read. The selector and the Pod
// template are not its business and stay.
func ReduceStatefulSet(set *appsv1.StatefulSet) {
	spec, status := &set.Spec, &set.Status
	set.Spec = appsv1.StatefulSetSpec{
		Replicas: spec.Replicas, PodManagementPolicy: spec.PodManagementPolicy, UpdateStrategy: spec.UpdateStrategy,
		Selector: spec.Selector, Template: spec.Template,
	}
	set.Status = appsv1.StatefulSetStatus{
		ObservedGeneration: status.ObservedGeneration, Replicas: status.Replicas, ReadyReplicas: status.ReadyReplicas,
		UpdatedReplicas: status.UpdatedReplicas, CurrentRevision: status.CurrentRevision, UpdateRevision: status.UpdateRevision,
	}
}

// StatefulSetRevision finds the revision a StatefulSet is updating its Pods to.
func StatefulSetRevision(set *appsv1.StatefulSet, revisions []appsv1.ControllerRevision) (Revision, bool) {
	if set.Status.ObservedGeneration < set.Generation {
		return Revision{}, false
	}
	for i := range revisions {
		revision := &revisions[i]
		if metav1.IsControlledBy(revision, set) && revision.Name == set.Status.UpdateRevision {
			return Revision{Name: revision.Name, CreatedAt: revision.CreationTimestamp.Time}, true
		}
	}
	return Revision{}, false
}
