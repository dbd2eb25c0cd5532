package integration

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/request"
)

// state is a phase of a request with a reason for being in it.
type state struct {
	phase  v1alpha1.Phase
	reason string
}

// requestStates lists every state of a request with what kstatus has to make of it: Current for an end that needs no
// attention, InProgress for what goes on by itself, Failed for what a person has to look at.
var requestStates = map[state]status.Status{
	{v1alpha1.PhasePending, v1alpha1.ReasonProgressing}: status.InProgressStatus,

	{v1alpha1.PhaseWaitingForGate, v1alpha1.ReasonPolicySuspended}:  status.InProgressStatus,
	{v1alpha1.PhaseWaitingForGate, v1alpha1.ReasonDryRun}:           status.InProgressStatus,
	{v1alpha1.PhaseWaitingForGate, v1alpha1.ReasonOutsideSchedule}:  status.InProgressStatus,
	{v1alpha1.PhaseWaitingForGate, v1alpha1.ReasonQuietPeriod}:      status.InProgressStatus,
	{v1alpha1.PhaseWaitingForGate, v1alpha1.ReasonMinInterval}:      status.InProgressStatus,
	{v1alpha1.PhaseWaitingForGate, v1alpha1.ReasonConcurrencyLimit}: status.InProgressStatus,
	{v1alpha1.PhaseWaitingForGate, v1alpha1.ReasonMissingSource}:    status.FailedStatus,
	{v1alpha1.PhaseWaitingForGate, v1alpha1.ReasonScheduleInvalid}:  status.FailedStatus,
	{v1alpha1.PhaseWaitingForGate, v1alpha1.ReasonNeverOpens}:       status.FailedStatus,

	{v1alpha1.PhaseWaitingForGate, v1alpha1.ReasonConfigurationError}: status.FailedStatus,

	{v1alpha1.PhaseWaitingForOwner, v1alpha1.ReasonOwnerUnknown}:        status.FailedStatus,
	{v1alpha1.PhaseWaitingForOwner, v1alpha1.ReasonMultipleOwners}:      status.FailedStatus,
	{v1alpha1.PhaseWaitingForOwner, v1alpha1.ReasonProviderUnavailable}: status.FailedStatus,
	{v1alpha1.PhaseWaitingForOwner, v1alpha1.ReasonProjectUnknown}:      status.FailedStatus,

	{v1alpha1.PhaseWaitingForApplicationSync, v1alpha1.ReasonOwnerDeleting}:  status.InProgressStatus,
	{v1alpha1.PhaseWaitingForApplicationSync, v1alpha1.ReasonOwnerSuspended}: status.InProgressStatus,
	{v1alpha1.PhaseWaitingForApplicationSync, v1alpha1.ReasonSyncInProgress}: status.InProgressStatus,
	{v1alpha1.PhaseWaitingForApplicationSync, v1alpha1.ReasonOutOfSync}:      status.InProgressStatus,

	{v1alpha1.PhaseWaitingForRollout, v1alpha1.ReasonRolloutInProgress}: status.InProgressStatus,
	{v1alpha1.PhaseWaitingForRollout, v1alpha1.ReasonPaused}:            status.InProgressStatus,

	{v1alpha1.PhaseExecuting, v1alpha1.ReasonStamping}:                  status.InProgressStatus,
	{v1alpha1.PhaseExecuting, v1alpha1.ReasonRollingOut}:                status.InProgressStatus,
	{v1alpha1.PhaseExecuting, v1alpha1.ReasonPaused}:                    status.InProgressStatus,
	{v1alpha1.PhaseExecuting, v1alpha1.ReasonAwaitingManualReplacement}: status.InProgressStatus,
	{v1alpha1.PhaseExecuting, v1alpha1.ReasonRestartDenied}:             status.FailedStatus,

	{v1alpha1.PhaseSucceeded, v1alpha1.ReasonSucceeded}: status.CurrentStatus,

	{v1alpha1.PhaseNoLongerRequired, v1alpha1.ReasonAlreadyFresh}: status.CurrentStatus,
	{v1alpha1.PhaseNoLongerRequired, v1alpha1.ReasonNotManaged}:   status.CurrentStatus,

	{v1alpha1.PhaseFailed, v1alpha1.ReasonRolloutFailed}:           status.FailedStatus,
	{v1alpha1.PhaseFailed, v1alpha1.ReasonRolloutDeadlineExceeded}: status.FailedStatus,
	{v1alpha1.PhaseFailed, v1alpha1.ReasonStampRemoved}:            status.FailedStatus,
}

// otherReasons are those that no request ever has: of policies, of notifications, and of conditions that kstatus does not look at.
var otherReasons = []string{
	v1alpha1.ReasonSuspended, v1alpha1.ReasonSelectorInvalid, v1alpha1.ReasonReservedNamespace,
	v1alpha1.ReasonSharedWorkloads, v1alpha1.ReasonNoOverlap,
	v1alpha1.ReasonSecretMissing, v1alpha1.ReasonSecretNotPermitted, v1alpha1.ReasonSecretInvalid,
	v1alpha1.ReasonHostNotPermitted, v1alpha1.ReasonDeliveryFailing,
}

func TestKstatusReadsEveryStateOfARequest(t *testing.T) {
	for state, want := range requestStates {
		t.Run(string(state.phase)+" "+state.reason, func(t *testing.T) {
			object := &v1alpha1.KickRequest{
				ObjectMeta: metav1.ObjectMeta{Name: "deployment-web", Namespace: "shop", Generation: 1},
				Status: v1alpha1.KickRequestStatus{
					ObservedGeneration: 1,
					Phase:              state.phase,
					Conditions:         request.Conditions(state.phase, state.reason),
				},
			}
			if got := kstatus(t, object); got != want {
				t.Errorf("%s, want %s", got, want)
			}
			conditions := object.Status.Conditions
			for _, condition := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled} {
				if found := meta.FindStatusCondition(conditions, condition); found == nil || found.Status == metav1.ConditionUnknown {
					t.Errorf("condition %s is not told: %+v", condition, found)
				}
			}
			if ready := meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionReady); ready != (want == status.CurrentStatus) {
				t.Errorf("Ready %v, and kstatus says %s", ready, want)
			}
		})
	}
}

func TestTheTableOfStatesIsComplete(t *testing.T) {
	phases, reasons := map[string]bool{}, map[string]bool{}
	for state := range requestStates {
		phases[string(state.phase)], reasons[state.reason] = true, true
	}
	for _, reason := range otherReasons {
		reasons[reason] = true
	}
	for name, value := range constants(t, "../../api/v1alpha1/conditions.go", "Reason") {
		if !reasons[value] {
			t.Errorf("%s is missing: say what kstatus makes of it", name)
		}
	}
	for name, value := range constants(t, "../../api/v1alpha1/kickrequest_types.go", "Phase") {
		if !phases[value] {
			t.Errorf("%s is missing: say what kstatus makes of it", name)
		}
	}
}

// constants reads the string constants of a Go file whose names begin with the prefix.
func constants(t *testing.T, path, prefix string) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || len(spec.Names) != 1 || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, prefix) {
			return true
		}
		if literal, ok := spec.Values[0].(*ast.BasicLit); ok && literal.Kind == token.STRING {
			found[spec.Names[0].Name], _ = strconv.Unquote(literal.Value)
		}
		return true
	})
	if len(found) == 0 {
		t.Fatalf("%s declares no constant %s…", path, prefix)
	}
	return found
}

// kstatus is what tools that wait for objects make of one.
func kstatus(t interface {
	Helper()
	Fatalf(format string, arguments ...any)
}, object client.Object,
) status.Status {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatalf("convert %s: %v", object.GetName(), err)
	}
	result, err := status.Compute(&unstructured.Unstructured{Object: content})
	if err != nil {
		t.Fatalf("compute the status of %s: %v", object.GetName(), err)
	}
	return result.Status
}

var _ = Describe("The status of a policy", func() {
	It("reads well to tools that wait for objects, also if admission could not refuse the policy", Serial, func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		unguarded(ctx, namespace)
		policy := func(name string, edit func(*v1alpha1.KickPolicy)) *v1alpha1.KickPolicy {
			p := everything(namespace)
			p.Name = name
			edit(p)
			return p
		}
		reserved := policy("reserved", func(p *v1alpha1.KickPolicy) { p.Namespace = kickNamespace })
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(k8s.Delete(ctx, reserved))).To(Succeed()) })
		wrongWindow := windows(v1alpha1.Window{Kind: v1alpha1.WindowAllow, Cron: "noon", Duration: "1h"})
		rows := map[*v1alpha1.KickPolicy]struct {
			reason string
			want   status.Status
		}{
			policy("in-force", func(*v1alpha1.KickPolicy) {}):                                     {v1alpha1.ReasonSucceeded, status.CurrentStatus},
			policy("suspended", func(p *v1alpha1.KickPolicy) { p.Spec.Suspend = true }):           {v1alpha1.ReasonSuspended, status.CurrentStatus},
			policy("no-schedule", func(p *v1alpha1.KickPolicy) { p.Spec.Schedule = wrongWindow }): {v1alpha1.ReasonScheduleInvalid, status.FailedStatus},
			policy("no-selector", func(p *v1alpha1.KickPolicy) {
				p.Spec.Discovery.WorkloadSelector = expression("app", "Foo", "x")
			}): {v1alpha1.ReasonSelectorInvalid, status.FailedStatus},
			reserved: {v1alpha1.ReasonReservedNamespace, status.FailedStatus},
		}
		for p := range rows {
			create(ctx, p)
		}
		for p, row := range rows {
			Eventually(func(g Gomega) {
				refresh(ctx, p)
				ready := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady)
				g.Expect(ready).NotTo(BeNil())
				g.Expect(ready.Reason).To(Equal(row.reason))
			}).WithContext(ctx).Should(Succeed())
			Expect(kstatus(GinkgoT(), p)).To(Equal(row.want), "%s: %+v", p.Name, p.Status.Conditions)
		}
	}, NodeTimeout(patience*2))
})

// unguarded lets policies into a namespace that KICK's webhook would refuse, as when it was switched off for a while.
func unguarded(ctx SpecContext, namespace string) {
	GinkgoHelper()
	exclude := func(ctx SpecContext, configuration *admissionv1.ValidatingWebhookConfiguration, values ...string) {
		GinkgoHelper()
		change(ctx, configuration, func(c *admissionv1.ValidatingWebhookConfiguration) {
			for i := range c.Webhooks {
				if c.Webhooks[i].Name != "kickpolicy.kick.dev" {
					continue
				}
				c.Webhooks[i].NamespaceSelector = &metav1.LabelSelector{}
				if len(values) > 0 {
					c.Webhooks[i].NamespaceSelector.MatchExpressions = []metav1.LabelSelectorRequirement{
						{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: values},
					}
				}
			}
		})
	}
	configuration := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "kick"}}
	exclude(ctx, configuration, namespace, kickNamespace)
	DeferCleanup(func(ctx SpecContext) { exclude(ctx, configuration) })
	Eventually(func() error { // the API server takes a moment to see it
		p := everything(namespace)
		p.Spec.Discovery.WorkloadSelector = expression("app", "Foo", "x")
		return k8s.Create(ctx, p, client.DryRunAll)
	}).WithContext(ctx).Should(Succeed())
}
