package webhooks

import (
	"context"
	"fmt"
	"regexp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/workload"
	"github.com/kick-dev/kick/internal/core/policy"
)

// +kubebuilder:webhook:path=/validate-kick-dev-v1alpha1-kickpolicy,mutating=false,failurePolicy=fail,sideEffects=None,groups=kick.dev,resources=kickpolicies,verbs=create;update,versions=v1alpha1,name=kickpolicy.kick.dev,admissionReviewVersions=v1,timeoutSeconds=5,matchPolicy=Equivalent

// kickPolicyPath is where the API server finds the validator of policies.
const kickPolicyPath = "/validate-kick-dev-v1alpha1-kickpolicy"

// kickPolicyValidator refuses policies that do not parse and warns of those that parse and are unwise.
type kickPolicyValidator struct {
	// cache reads policies, workloads reads workloads from the cache.
	cache     client.Reader
	workloads *workload.Client
	clock     Clock
	// namespace is KICK's own.
	namespace string
}

// ValidateCreate implements admission.Validator.
func (v *kickPolicyValidator) ValidateCreate(ctx context.Context, created *v1alpha1.KickPolicy) (admission.Warnings, error) {
	return v.advice(ctx, created), invalidPolicy(created, ValidateKickPolicy(created))
}

// ValidateUpdate implements admission.Validator.
func (v *kickPolicyValidator) ValidateUpdate(ctx context.Context, old, updated *v1alpha1.KickPolicy) (admission.Warnings, error) {
	return v.advice(ctx, updated), invalidPolicy(updated, ValidateKickPolicyUpdate(old, updated))
}

// ValidateDelete implements admission.Validator. Nothing stands in the way of a deletion.
func (*kickPolicyValidator) ValidateDelete(context.Context, *v1alpha1.KickPolicy) (admission.Warnings, error) {
	return nil, nil
}

// ValidateKickPolicy returns every fault of a policy, with the path of its field.
func ValidateKickPolicy(created *v1alpha1.KickPolicy) field.ErrorList {
	_, faults := policy.Parse(created)
	return faults
}

// ValidateKickPolicyUpdate returns the faults that an update brings in. One that was stored before, while the webhook
// was away, does not stand in the way of labels, finalizers or other corrections, wherever in its list it is now.
func ValidateKickPolicyUpdate(old, updated *v1alpha1.KickPolicy) field.ErrorList {
	known := map[string]int{}
	for _, fault := range ValidateKickPolicy(old) {
		known[wherever(fault)]++
	}
	var brought field.ErrorList
	for _, fault := range ValidateKickPolicy(updated) {
		if known[wherever(fault)]--; known[wherever(fault)] < 0 {
			brought = append(brought, fault)
		}
	}
	return brought
}

// index is the place of an item in a list, within the path of a field.
var index = regexp.MustCompile(`\[\d+\]`)

// wherever is a fault without the places of list items, which move when others are added or removed.
func wherever(fault *field.Error) string {
	unplaced := *fault
	unplaced.Field = index.ReplaceAllString(fault.Field, "[]")
	return unplaced.Error()
}

// advice collects the warnings about a policy. What cannot be read for them is no reason to refuse it.
func (v *kickPolicyValidator) advice(ctx context.Context, judged *v1alpha1.KickPolicy) admission.Warnings {
	parsed, faults := policy.Parse(judged)
	if len(faults) > 0 {
		return nil
	}
	surroundings, err := v.surroundings(ctx, judged)
	if err != nil {
		logf.FromContext(ctx).Error(err, "a policy is admitted without a look at its surroundings")
	}
	return advise(judged, parsed, surroundings)
}

func (v *kickPolicyValidator) surroundings(ctx context.Context, judged *v1alpha1.KickPolicy) (surroundings, error) {
	around := surroundings{now: v.clock.Now(), reserved: judged.Namespace == v.namespace}
	var policies v1alpha1.KickPolicyList
	if err := v.cache.List(ctx, &policies, client.InNamespace(judged.Namespace)); err != nil {
		return around, fmt.Errorf("list the policies of namespace %s: %w", judged.Namespace, err)
	}
	for i := range policies.Items {
		if other := &policies.Items[i]; other.Name != judged.Name {
			parsed, _ := policy.Parse(other) // One with a broken selector selects nothing.
			around.policies = append(around.policies, parsed)
		}
	}
	workloads, err := v.workloads.InNamespace(ctx, judged.Namespace)
	if err != nil {
		return around, err
	}
	for _, w := range workloads {
		around.workloads = append(around.workloads, neighbour{
			name: string(w.Key.Kind) + " " + w.Key.Name, labels: w.Labels(), annotations: w.Object().GetAnnotations(),
		})
	}
	return around, nil
}

func invalidPolicy(object *v1alpha1.KickPolicy, faults field.ErrorList) error {
	return invalid("KickPolicy", object.Name, faults)
}

// invalid is the error that names all faults of an object, nil if there are none.
func invalid(kind, name string, faults field.ErrorList) error {
	if len(faults) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: v1alpha1.GroupVersion.Group, Kind: kind}, name, faults)
}
