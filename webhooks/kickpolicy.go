// Package webhooks holds the admission webhooks: thin skins over the parsers that the core itself uses, so that what is
// admitted is what is understood.
package webhooks

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/policy"
)

// +kubebuilder:webhook:path=/validate-kick-dev-v1alpha1-kickpolicy,mutating=false,failurePolicy=fail,sideEffects=None,groups=kick.dev,resources=kickpolicies,verbs=create;update,versions=v1alpha1,name=kickpolicy.kick.dev,admissionReviewVersions=v1,timeoutSeconds=5,matchPolicy=Equivalent

// SetupWithManager adds the webhooks to the manager's webhook server.
func SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &v1alpha1.KickPolicy{}).WithValidator(kickPolicyValidator{}).Complete()
}

// kickPolicyValidator refuses policies that do not parse.
type kickPolicyValidator struct{}

// ValidateCreate implements admission.Validator.
func (kickPolicyValidator) ValidateCreate(_ context.Context, created *v1alpha1.KickPolicy) (admission.Warnings, error) {
	return nil, invalid(created, ValidateKickPolicy(created))
}

// ValidateUpdate implements admission.Validator.
func (kickPolicyValidator) ValidateUpdate(_ context.Context, old, updated *v1alpha1.KickPolicy) (admission.Warnings, error) {
	return nil, invalid(updated, ValidateKickPolicyUpdate(old, updated))
}

// ValidateDelete implements admission.Validator. Nothing stands in the way of a deletion.
func (kickPolicyValidator) ValidateDelete(context.Context, *v1alpha1.KickPolicy) (admission.Warnings, error) {
	return nil, nil
}

// ValidateKickPolicy returns every fault of a policy, with the path of its field.
func ValidateKickPolicy(created *v1alpha1.KickPolicy) field.ErrorList {
	_, faults := policy.Parse(created)
	return faults
}

// ValidateKickPolicyUpdate returns the faults that an update brings in. One that was stored before, while the webhook
// was away, does not stand in the way of labels, finalizers or other corrections.
func ValidateKickPolicyUpdate(old, updated *v1alpha1.KickPolicy) field.ErrorList {
	known := map[string]bool{}
	for _, fault := range ValidateKickPolicy(old) {
		known[fault.Error()] = true
	}
	var brought field.ErrorList
	for _, fault := range ValidateKickPolicy(updated) {
		if !known[fault.Error()] {
			brought = append(brought, fault)
		}
	}
	return brought
}

func invalid(object *v1alpha1.KickPolicy, faults field.ErrorList) error {
	if len(faults) == 0 {
		return nil
	}
	kind := schema.GroupKind{Group: v1alpha1.GroupVersion.Group, Kind: "KickPolicy"}
	return apierrors.NewInvalid(kind, object.Name, faults)
}
