package webhooks

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/workload"
)

// +kubebuilder:webhook:path=/validate-kick-dev-v1alpha1-kickrequest,mutating=false,failurePolicy=fail,sideEffects=None,groups=kick.dev,resources=kickrequests,verbs=create;update,versions=v1alpha1,name=kickrequest.kick.dev,admissionReviewVersions=v1,timeoutSeconds=5,matchPolicy=Equivalent

// Whether a user may override is asked in the namespace of the request, which takes no right in the whole cluster.
//
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=localsubjectaccessreviews,verbs=create

// kickRequestPath is where the API server finds the validator of requests.
const kickRequestPath = "/validate-kick-dev-v1alpha1-kickrequest"

// verbOverride is the right, on kickrequests, to let a restart pass closed windows and GitOps.
const verbOverride = "override"

// kickRequestValidator refuses requests that do not fit their workload or that claim what is not so.
type kickRequestValidator struct {
	// workloads reads workloads from the API server: one that was made a moment ago may be restarted, too.
	workloads *workload.Client
	// reviews asks the API server about rights.
	reviews client.Writer
	clock   Clock
	// account is the user name of KICK's own service account.
	account string
}

// ValidateCreate implements admission.Validator.
func (v *kickRequestValidator) ValidateCreate(ctx context.Context, created *v1alpha1.KickRequest) (admission.Warnings, error) {
	faults := validateName(created)
	misfit, err := v.validateTarget(ctx, created)
	if err != nil {
		return nil, apierrors.NewInternalError(err) // anything else would count as a verdict
	}
	faults = append(faults, misfit...)
	claimed, err := v.validateManual(ctx, nil, created)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return nil, invalid("KickRequest", created.Name, append(faults, claimed...))
}

// ValidateUpdate implements admission.Validator. It looks at what the update changes and at nothing else.
func (v *kickRequestValidator) ValidateUpdate(ctx context.Context, old, updated *v1alpha1.KickRequest) (admission.Warnings, error) {
	var faults field.ErrorList
	if updated.Spec.TargetRef != old.Spec.TargetRef {
		faults = append(faults, field.Forbidden(targetPath,
			"is immutable: there is one request per workload, and another workload has another request"))
	}
	asks := updated.Spec.Manual != nil && !equality.Semantic.DeepEqual(old.Spec.Manual, updated.Spec.Manual)
	if asks {
		misfit, err := v.validateTarget(ctx, updated)
		if err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		claimed, err := v.validateManual(ctx, old.Spec.Manual, updated)
		if err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		faults = append(append(faults, misfit...), claimed...)
	}
	return nil, invalid("KickRequest", updated.Name, faults)
}

// ValidateDelete implements admission.Validator. Nothing stands in the way of a deletion.
func (*kickRequestValidator) ValidateDelete(context.Context, *v1alpha1.KickRequest) (admission.Warnings, error) {
	return nil, nil
}

// validateTarget finds out what workload bears the name of the target, and compares.
func (v *kickRequestValidator) validateTarget(ctx context.Context, judged *v1alpha1.KickRequest) (field.ErrorList, error) {
	target := judged.Spec.TargetRef
	key := workload.Key{Namespace: judged.Namespace, Kind: target.Kind, Name: target.Name}
	if _, known := workload.NewObject(target.Kind); !known {
		return unknownKind(target), nil
	}
	found, err := v.workloads.Read(ctx, key)
	if err != nil {
		return nil, err
	}
	if found == nil {
		return validateTargetUID(target, ""), nil
	}
	return validateTargetUID(target, found.UID()), nil
}

// validateManual checks a wish that is new or changed.
func (v *kickRequestValidator) validateManual(
	ctx context.Context, old *v1alpha1.ManualRestart, judged *v1alpha1.KickRequest,
) (field.ErrorList, error) {
	asked := judged.Spec.Manual
	request, err := admission.RequestFromContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("find out who writes: %w", err)
	}
	writer := request.UserInfo
	if asked == nil || v.account != "" && writer.Username == v.account {
		return nil, nil
	}
	may := true
	if asked.Override {
		if may, err = v.mayOverride(ctx, writer, judged); err != nil {
			return nil, err
		}
	}
	return validateManual(wished{
		old: old, asked: *asked, writer: writer.Username, mayOverride: may, now: v.clock.Now(),
	}), nil
}

// mayOverride asks the API server whether the writer has the right to override this request.
func (v *kickRequestValidator) mayOverride(
	ctx context.Context, writer authenticationv1.UserInfo, judged *v1alpha1.KickRequest,
) (bool, error) {
	extra := make(map[string]authorizationv1.ExtraValue, len(writer.Extra))
	for key, values := range writer.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	review := &authorizationv1.LocalSubjectAccessReview{
		ObjectMeta: metav1.ObjectMeta{Namespace: judged.Namespace},
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User:   writer.Username,
			UID:    writer.UID,
			Groups: writer.Groups,
			Extra:  extra,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version, Resource: "kickrequests",
				Verb: verbOverride, Namespace: judged.Namespace, Name: judged.Name,
			},
		},
	}
	if err := v.reviews.Create(ctx, review); err != nil {
		return false, fmt.Errorf("ask whether %s may override request %s: %w", writer.Username, client.ObjectKeyFromObject(judged), err)
	}
	return review.Status.Allowed, nil
}
