package rollout

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// revisionAnnotation numbers the ReplicaSets of a Deployment; the Deployment carries the number of its current one.
const revisionAnnotation = "deployment.kubernetes.io/revision"

// progressDeadlineExceeded is the reason of a Progressing condition on a rollout the Deployment controller gave up.
const progressDeadlineExceeded = "ProgressDeadlineExceeded"

// OfDeployment returns the state of a Deployment's rollout.
func OfDeployment(deployment *appsv1.Deployment) State {
	state := State{Paused: deployment.Spec.Paused}
	status := &deployment.Status
	desired := replicas(deployment.Spec.Replicas)
	if status.ObservedGeneration < deployment.Generation {
		state.Message = "the Deployment controller has not seen the present spec yet"
		return state
	}
	state.Failed = progressFailed(status.Conditions)
	switch {
	case status.UpdatedReplicas < desired:
		state.Message = fmt.Sprintf("%d of %d replicas are updated", status.UpdatedReplicas, desired)
	case status.Replicas > status.UpdatedReplicas:
		state.Message = fmt.Sprintf("%d old replicas are still running", status.Replicas-status.UpdatedReplicas)
	case status.AvailableReplicas < status.UpdatedReplicas:
		state.Message = fmt.Sprintf("%d of %d updated replicas are available", status.AvailableReplicas, status.UpdatedReplicas)
	default:
		state.Complete = true
		state.RevisedBy = progressedBy(status.Conditions)
	}
	return state
}

// newReplicaSetAvailable is the reason of a Progressing condition that was last written when the rollout had ended.
const newReplicaSetAvailable = "NewReplicaSetAvailable"

func progressedBy(conditions []appsv1.DeploymentCondition) time.Time {
	for i := range conditions {
		if conditions[i].Type == appsv1.DeploymentProgressing && conditions[i].Reason == newReplicaSetAvailable {
			return conditions[i].LastUpdateTime.Time
		}
	}
	return time.Time{}
}

func progressFailed(conditions []appsv1.DeploymentCondition) bool {
	for i := range conditions {
		if conditions[i].Type == appsv1.DeploymentProgressing {
			return conditions[i].Status == corev1.ConditionFalse && conditions[i].Reason == progressDeadlineExceeded
		}
	}
	return false
}

// ReduceDeployment drops from spec and status of a Deployment what this package does not read. The selector and the Pod
// template are not its business and stay.
func ReduceDeployment(deployment *appsv1.Deployment) {
	spec, status := &deployment.Spec, &deployment.Status
	deployment.Spec = appsv1.DeploymentSpec{Replicas: spec.Replicas, Paused: spec.Paused, Selector: spec.Selector, Template: spec.Template}
	var progress []appsv1.DeploymentCondition
	for i := range status.Conditions {
		if condition := &status.Conditions[i]; condition.Type == appsv1.DeploymentProgressing {
			progress = []appsv1.DeploymentCondition{{
				Type: condition.Type, Status: condition.Status, Reason: condition.Reason, LastUpdateTime: condition.LastUpdateTime,
			}}
			break
		}
	}
	deployment.Status = appsv1.DeploymentStatus{
		ObservedGeneration: status.ObservedGeneration, Replicas: status.Replicas, UpdatedReplicas: status.UpdatedReplicas,
		AvailableReplicas: status.AvailableReplicas, Conditions: progress,
	}
}

// DeploymentRevision finds the current ReplicaSet of a Deployment among those given: rs*(w) of the model. There is
// none while the controller has not seen the present spec.
func DeploymentRevision(deployment *appsv1.Deployment, replicaSets []appsv1.ReplicaSet) (Revision, bool) {
	number := deployment.Annotations[revisionAnnotation]
	if number == "" || deployment.Status.ObservedGeneration < deployment.Generation {
		return Revision{}, false
	}
	for i := range replicaSets {
		set := &replicaSets[i]
		if metav1.IsControlledBy(set, deployment) && set.Annotations[revisionAnnotation] == number {
			return Revision{Name: set.Name, CreatedAt: set.CreationTimestamp.Time}, true
		}
	}
	return Revision{}, false
}

// replicas resolves the API's default of one replica.
func replicas(value *int32) int32 {
	if value == nil {
		return 1
	}
	return *value
}
