package controllers

import (
	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/intern"
)

// SlimRequest is a cache transform: a request says what it said, without managedFields. It only shares with the other
// requests, and within itself, what is said more than once, which is most of it.
func SlimRequest(object any) (any, error) {
	request, ok := object.(*v1alpha1.KickRequest)
	if !ok {
		return object, nil
	}
	share(&request.Kind, &request.APIVersion, &request.Namespace)
	request.ManagedFields = nil
	request.Labels = intern.Map(request.Labels)
	target := &request.Spec.TargetRef
	share(&target.APIVersion)
	share(&target.Kind)
	for i := range request.OwnerReferences {
		owner := &request.OwnerReferences[i]
		share(&owner.APIVersion, &owner.Kind)
		same(&owner.Name, target.Name)
		same(&owner.UID, target.UID)
	}
	slimStatus(&request.Status)
	return request, nil
}

func slimStatus(status *v1alpha1.KickRequestStatus) {
	share(&status.Phase)
	for i := range status.Conditions {
		condition := &status.Conditions[i]
		share(&condition.Type, &condition.Reason, &condition.Message)
		share(&condition.Status)
	}
	if gate := status.Gate; gate != nil {
		share(&gate.Reason, &gate.Message, &gate.RequeueAt)
	}
	if owner := status.Owner; owner != nil {
		share(&owner.Provider)
		share(&owner.Kind, &owner.Namespace, &owner.Name, &owner.Project)
	}
	for i := range status.Causes {
		share(&status.Causes[i].Kind)
	}
	if rollout := status.CurrentRollout; rollout != nil {
		slimCovers(rollout.Covers, status.Causes)
	}
}

// slimCovers shares the names of the sources with the causes, which are mostly the same sources.
func slimCovers(covers, causes []v1alpha1.SourceChange) {
	for i := range covers {
		share(&covers[i].Kind)
		for j := range causes {
			same(&covers[i].Name, causes[j].Name)
		}
	}
}

// share replaces texts by the copy that all hold.
func share[T ~string](texts ...*T) {
	for _, text := range texts {
		*text = T(intern.String(string(*text)))
	}
}

// same replaces a text by another copy of it.
func same[T ~string](text *T, other T) {
	if *text == other {
		*text = other
	}
}
