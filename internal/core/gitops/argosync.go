package gitops

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kick-dev/kick/api/v1alpha1"
)

// active holds while the status of the Application means nothing: it is being deleted, or its reconciliation is
// switched off.
func (a *Application) active() *Hold {
	switch {
	case a.Deleting:
		return hold(v1alpha1.ReasonOwnerDeleting, a.String()+" is being deleted")
	case a.SkipReconcile:
		return hold(v1alpha1.ReasonOwnerSuspended, a.String()+" is not reconciled, as its annotation skip-reconcile asks")
	default:
		return nil
	}
}

// synced holds until the Application is in sync with what it was last compared with and no operation runs. The status of
// the comparison alone does not say that: Argo CD sets the operation before it stores that it found a difference. Health
// is no condition, since an unhealthy workload is often one that needs its restart; nor is the outcome of the last
// operation, since Argo CD does not repeat one that failed.
func (a *Application) synced(w Workload) *Hold {
	switch {
	case a.OperationRequested, a.Operation != nil && !final(a.Operation.Phase):
		return hold(v1alpha1.ReasonSyncInProgress, a.String()+" has an operation in progress"+a.progress())
	case a.RefreshRequested:
		return hold(v1alpha1.ReasonSyncInProgress, a.String()+" is about to be compared again")
	case a.Sync.Status == "":
		return hold(v1alpha1.ReasonSyncInProgress, a.String()+" has not been compared yet")
	case !a.Hydrated && !a.comparedToSpec():
		return hold(v1alpha1.ReasonSyncInProgress, a.String()+" has changed and has not been compared since")
	case a.Sync.Status != syncedStatus:
		return hold(v1alpha1.ReasonOutOfSync, a.String()+" is "+a.Sync.Status+a.difference(w))
	default:
		return nil
	}
}

// syncedStatus is the status of an Application in sync.
const syncedStatus = "Synced"

// final tells whether an operation in this phase has ended.
func final(phase string) bool {
	return slices.Contains([]string{"Succeeded", "Failed", "Error"}, phase)
}

// comparedToSpec tells whether the last comparison was of the present spec. Only the fields that choose what is compared
// count: the others are stored in another form than they are written.
func (a *Application) comparedToSpec() bool {
	return slices.Equal(a.Sync.ComparedSources, a.Sources) && a.Sync.ComparedDestination == a.Destination
}

// progress repeats those messages of Argo CD that name what an operation waits for. Others may quote manifests.
func (a *Application) progress() string {
	if a.Operation == nil || final(a.Operation.Phase) {
		return ""
	}
	message := a.Operation.Message
	if strings.HasPrefix(message, "waiting for ") || message == "Sync operation blocked by sync window" {
		return ": " + message
	}
	return ""
}

// difference explains a status that is not Synced.
func (a *Application) difference(w Workload) string {
	var text strings.Builder
	if len(a.ConditionTypes) > 0 {
		fmt.Fprintf(&text, " (%s)", strings.Join(a.ConditionTypes, ", "))
	}
	if a.Differing > 0 {
		fmt.Fprintf(&text, "; objects that differ: %d", a.Differing)
	}
	if listed := a.listed(w.ID()); listed != nil && listed.Status == syncedStatus {
		text.WriteString("; the workload itself is Synced")
	}
	if !a.AutoSync {
		text.WriteString("; automated sync is off, so somebody has to sync it")
	}
	return text.String()
}
