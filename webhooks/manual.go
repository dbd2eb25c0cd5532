package webhooks

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/request"
)

// askingTolerance is how far from now, either way, the instant of a manual restart may lie: enough for clocks that
// disagree, too little to ask for the past or the future.
const askingTolerance = 5 * time.Minute

var (
	targetPath = field.NewPath("spec", "targetRef")
	manualPath = field.NewPath("spec", "manual")
)

// wished is a manual restart with all that its check looks at.
type wished struct {
	// old is the wish that is replaced, nil if there is none.
	old   *v1alpha1.ManualRestart
	asked v1alpha1.ManualRestart
	// writer is the user name of who writes it, mayOverride whether that user has the right to.
	writer      string
	mayOverride bool
	now         time.Time
}

// validateManual checks that a person asks in their own name, now, and for no more than they may have.
func validateManual(w wished) field.ErrorList {
	var faults field.ErrorList
	if w.asked.RequestedBy != w.writer {
		faults = append(faults, field.Invalid(manualPath.Child("requestedBy"), w.asked.RequestedBy,
			fmt.Sprintf("must be the user name of who asks: write %q", w.writer)))
	}
	at, atPath := w.asked.RequestedAt, manualPath.Child("requestedAt")
	shown := at.UTC().Format(metav1.RFC3339Micro)
	switch {
	case at.Sub(w.now).Abs() > askingTolerance:
		faults = append(faults, field.Invalid(atPath, shown, fmt.Sprintf("must be within 5 minutes of now, which is %s",
			w.now.UTC().Format(metav1.RFC3339Micro))))
	case w.old != nil && at.Before(&w.old.RequestedAt):
		faults = append(faults, field.Invalid(atPath, shown, fmt.Sprintf("must not be before the restart asked for at %s",
			w.old.RequestedAt.UTC().Format(metav1.RFC3339Micro))))
	}
	if w.asked.Override && !w.mayOverride {
		faults = append(faults, field.Forbidden(manualPath.Child("override"), fmt.Sprintf(
			"user %q has no right to %s kickrequests.%s in this namespace; without override the restart waits for windows and GitOps",
			w.writer, verbOverride, v1alpha1.GroupVersion.Group)))
	}
	return faults
}

// validateName checks that a request bears the one name that a request of its workload has.
func validateName(judged *v1alpha1.KickRequest) field.ErrorList {
	want := request.Name(judged.Spec.TargetRef.Kind, judged.Spec.TargetRef.Name)
	if judged.Name == want {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), judged.Name,
		fmt.Sprintf("the request of this target is called %q", want))}
}

// validateTargetUID checks that the target is the workload that bears its name, whose UID is empty if there is none.
func validateTargetUID(target v1alpha1.TargetRef, uid types.UID) field.ErrorList {
	switch {
	case uid == "":
		return field.ErrorList{field.Invalid(targetPath.Child("name"), target.Name,
			fmt.Sprintf("there is no %s of this name in the namespace", target.Kind))}
	case uid != target.UID:
		return field.ErrorList{field.Invalid(targetPath.Child("uid"), target.UID,
			fmt.Sprintf("%s %s has another UID: write %q", target.Kind, target.Name, uid))}
	default:
		return nil
	}
}

func unknownKind(target v1alpha1.TargetRef) field.ErrorList {
	return field.ErrorList{field.NotSupported(targetPath.Child("kind"), target.Kind,
		[]v1alpha1.WorkloadKind{v1alpha1.Deployment, v1alpha1.StatefulSet, v1alpha1.DaemonSet})}
}
