package rollout

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OfDaemonSet returns the state of a DaemonSet's rollout. One that matches no node is complete.
func OfDaemonSet(set *appsv1.DaemonSet) State {
	state := State{Manual: set.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType}
	status := &set.Status
	desired := status.DesiredNumberScheduled
	switch {
	case status.ObservedGeneration < set.Generation:
		state.Message = "the DaemonSet controller has not seen the present spec yet"
	case state.Manual:
		state.Complete = true
	case status.UpdatedNumberScheduled < desired:
		state.Message = fmt.Sprintf("%d of %d Pods are updated", status.UpdatedNumberScheduled, desired)
	case status.NumberAvailable < desired:
		state.Message = fmt.Sprintf("%d of %d Pods are available", status.NumberAvailable, desired)
	default:
		state.Complete = true
	}
	return state
}

// ReduceDaemonSet drops from spec and status of a DaemonSet what this package does not read. The selector and the Pod
// template are not its business and stay.
func ReduceDaemonSet(set *appsv1.DaemonSet) {
	spec, status := &set.Spec, &set.Status
	set.Spec = appsv1.DaemonSetSpec{
		UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: spec.UpdateStrategy.Type}, Selector: spec.Selector, Template: spec.Template,
	}
	set.Status = appsv1.DaemonSetStatus{
		ObservedGeneration: status.ObservedGeneration, DesiredNumberScheduled: status.DesiredNumberScheduled,
		UpdatedNumberScheduled: status.UpdatedNumberScheduled, NumberAvailable: status.NumberAvailable,
	}
}

// DaemonSetRevision finds the current revision of a DaemonSet: the newest, since the controller renumbers an older one
// that it goes back to.
func DaemonSetRevision(set *appsv1.DaemonSet, revisions []appsv1.ControllerRevision) (Revision, bool) {
	if set.Status.ObservedGeneration < set.Generation {
		return Revision{}, false
	}
	var newest *appsv1.ControllerRevision
	for i := range revisions {
		revision := &revisions[i]
		if metav1.IsControlledBy(revision, set) && (newest == nil || revision.Revision > newest.Revision) {
			newest = revision
		}
	}
	if newest == nil {
		return Revision{}, false
	}
	return Revision{Name: newest.Name, CreatedAt: newest.CreationTimestamp.Time}, true
}
