package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/request"
)

// adopt makes a namespace with a Deployment that runs and a policy, which has settled on it.
func adopt(ctx context.Context, namespace string) error {
	w := deployment(namespace, "web", "db")
	if err := create(ctx, secret(namespace, "db", "before"), w, everything(namespace)); err != nil {
		return err
	}
	return poll(ctx, patience, func() error { return settled(ctx, namespace, "web", "db", v1alpha1.PhaseNoLongerRequired) })
}

func adoptOnce(ctx context.Context, namespace string, round int) error {
	if round > 1 {
		return nil
	}
	return adopt(ctx, namespace)
}

func changeSource(ctx context.Context, namespace string, round int) error {
	return rewrite(ctx, namespace, "db", fmt.Sprint("value ", round))
}

func webSucceeded(ctx context.Context, namespace string) error {
	return settled(ctx, namespace, "web", "db", v1alpha1.PhaseSucceeded)
}

func TestCrashMatrixOfAChange(t *testing.T) {
	runMatrix(t, scenario{
		workloads: []string{"web"}, prepare: adoptOnce, trigger: changeSource, settled: webSucceeded,
	})
}

func TestCrashMatrixOfAnAdoption(t *testing.T) {
	runMatrix(t, scenario{
		workloads: []string{"web"}, fresh: true,
		prepare: func(ctx context.Context, namespace string, _ int) error {
			w := deployment(namespace, "web", "db")
			if err := create(ctx, secret(namespace, "db", "before"), w); err != nil {
				return err
			}
			if err := poll(ctx, patience, func() error { return rolledOut(ctx, w) }); err != nil {
				return err
			}
			nextSecond()
			return rewrite(ctx, namespace, "db", "after")
		},
		trigger: func(ctx context.Context, namespace string, _ int) error {
			return create(ctx, everything(namespace))
		},
		settled: webSucceeded,
	})
}

func TestCrashMatrixOfAPolicyEdit(t *testing.T) {
	suspend := func(ctx context.Context, namespace string, suspended bool) error {
		patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"suspend":%t}}`, suspended))
		return k8s.Patch(ctx, everything(namespace), patch)
	}
	runMatrix(t, scenario{
		workloads: []string{"web"},
		prepare: func(ctx context.Context, namespace string, round int) error {
			if err := adoptOnce(ctx, namespace, round); err != nil {
				return err
			}
			if err := suspend(ctx, namespace, true); err != nil {
				return err
			}
			if err := changeSource(ctx, namespace, round); err != nil {
				return err
			}
			return poll(ctx, patience, func() error { return waiting(ctx, reading(namespace, "web", "db"), v1alpha1.ReasonPolicySuspended) })
		},
		trigger: func(ctx context.Context, namespace string, _ int) error { return suspend(ctx, namespace, false) },
		settled: webSucceeded,
	})
}

// waiting tells why the change of a source does not wait at the gate for one of the given reasons, with all about it
// written, if so.
func waiting(ctx context.Context, c consumer, reasons ...string) error {
	found, err := c.request(ctx)
	if err != nil {
		return err
	}
	ready := meta.FindStatusCondition(found.Status.Conditions, v1alpha1.ConditionReady)
	if found.Status.Phase != v1alpha1.PhaseWaitingForGate || ready == nil || !slices.Contains(reasons, ready.Reason) {
		return fmt.Errorf("request %s/%s is %q: %+v", c.namespace, found.Name, found.Status.Phase, ready)
	}
	return c.delivered(ctx)
}

func TestCrashMatrixOfARequestThatIsDeletedAfterItsTime(t *testing.T) {
	runMatrix(t, scenario{
		arguments: []string{"--request-ttl=2s"}, workloads: []string{"web"},
		prepare: func(ctx context.Context, namespace string, round int) error {
			if round > 1 {
				return nil
			}
			if err := create(ctx, secret(namespace, "db", "before"), deployment(namespace, "web", "db"), everything(namespace)); err != nil {
				return err
			}
			return poll(ctx, patience, func() error { return deleted(ctx, namespace) })
		},
		trigger: changeSource, settled: deleted,
	})
}

// deleted tells why the request of a workload is not gone for good after its restart, if so.
func deleted(ctx context.Context, namespace string) error {
	_, err := requestOf(ctx, namespace, "web")
	if err == nil {
		return errors.New("the request is still there")
	}
	if !apierrors.IsNotFound(err) {
		return err
	}
	record, err := recordOf(ctx, namespace, "db")
	if err != nil || record.Pending {
		return errors.Join(err, errors.New("the change is still pending in the ledger"))
	}
	d := deployment(namespace, "web", "db")
	if err := rolledOut(ctx, d); err != nil {
		return err
	}
	return reading(namespace, "web", "db").running(ctx, d.Spec.Template.Annotations[v1alpha1.RestartedAtAnnotation])
}

// refusing is an admission policy that lets nobody create the request of one workload.
func refusing(namespace, name string) []client.Object {
	fail := admissionv1.Fail
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule: admissionv1.Rule{
						APIGroups: []string{v1alpha1.GroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{"kickrequests"},
					},
				}}},
			},
			Validations: []admissionv1.Validation{{
				Expression: fmt.Sprintf("object.metadata.name != %q", request.Name(v1alpha1.Deployment, name)), Message: "not this one",
			}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: namespace, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
	return []client.Object{policy, binding}
}

// refused tells whether the request of a workload cannot be created yet.
func refused(ctx context.Context, namespace, name string) error {
	try := &v1alpha1.KickRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: request.Name(v1alpha1.Deployment, name)},
		Spec: v1alpha1.KickRequestSpec{TargetRef: v1alpha1.TargetRef{
			APIVersion: "apps/v1", Kind: v1alpha1.Deployment, Name: name, UID: "u",
		}},
	}
	if err := k8s.Create(ctx, try, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "not this one") {
		return fmt.Errorf("the admission policy is not enforced yet: %w", err)
	}
	return nil
}

func TestCrashMatrixOfABurstInWhichOneRequestCanNeverBeCreated(t *testing.T) {
	const never = "never"
	var others []string
	for i := range 19 {
		others = append(others, fmt.Sprint("w", i))
	}
	all := func(ctx context.Context, namespace string, phase v1alpha1.Phase) error {
		for _, name := range others {
			if err := ended(ctx, namespace, name, "db", phase); err != nil {
				return err
			}
		}
		if version, err := generationOf(ctx, namespace, never); err != nil || version != 1 {
			return fmt.Errorf("the workload that can have no request was restarted (%w)", err)
		}
		return nil
	}
	runMatrix(t, scenario{
		workloads: others, alike: true, trigger: changeSource,
		prepare: func(ctx context.Context, namespace string, round int) error {
			if round > 1 {
				return nil
			}
			objects := append(refusing(namespace, never), secret(namespace, "db", "before"))
			for _, name := range append(others, never) {
				objects = append(objects, deployment(namespace, name, "db"))
			}
			if err := create(ctx, objects...); err != nil {
				return err
			}
			if err := poll(ctx, patience, func() error { return refused(ctx, namespace, never) }); err != nil {
				return err
			}
			if err := create(ctx, everything(namespace)); err != nil {
				return err
			}
			return poll(ctx, patience, func() error { return all(ctx, namespace, v1alpha1.PhaseNoLongerRequired) })
		},
		settled: func(ctx context.Context, namespace string) error { return all(ctx, namespace, v1alpha1.PhaseSucceeded) },
	})
}
