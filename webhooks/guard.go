package webhooks

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/workload"
)

// +kubebuilder:webhook:path=/guard-restarts,mutating=false,failurePolicy=fail,sideEffects=None,groups=apps,resources=deployments;statefulsets;daemonsets,verbs=update,versions=v1,name=guard.kick.dev,admissionReviewVersions=v1,timeoutSeconds=2,matchPolicy=Equivalent

// guardPath is where the API server finds the guard.
const guardPath = "/guard-restarts"

// The audit annotations of the guard; the API server puts the name of the webhook in front.
const (
	auditRule   = "rule"
	auditPolicy = "policy"
)

// guard keeps restarts of managed workloads to KICK: it gathers what judge asks for and answers with its verdict.
type guard struct {
	decoder admission.Decoder
	// policies reads KickPolicies from the cache.
	policies client.Reader
	// workloads reads revisions from the API server.
	workloads *workload.Client
	clock     Clock
	// namespace is KICK's own, which is never managed.
	namespace string
	// account is the user name of KICK's own service account.
	account string
	exempt  Exemptions
}

// Exemptions names who may restart managed workloads.
type Exemptions struct {
	// Users by their exact names, and members of Groups.
	Users, Groups []string
}

func (e Exemptions) cover(user authenticationv1.UserInfo) bool {
	return slices.Contains(e.Users, user.Username) ||
		slices.ContainsFunc(user.Groups, func(group string) bool { return slices.Contains(e.Groups, group) })
}

// Handle implements admission.Handler.
func (g *guard) Handle(ctx context.Context, request admission.Request) admission.Response {
	if request.Operation != admissionv1.Update || request.SubResource != "" {
		return admission.Allowed("")
	}
	old, err := g.decode(request, request.OldObject)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decode the old object: %w", err))
	}
	updated, err := g.decode(request, request.Object)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decode the object: %w", err))
	}
	facts, err := g.gather(ctx, request, old, updated)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	decision := judge(facts)
	if decision.effect == readHistory {
		if facts.history, err = g.workloads.Inspect(old).Stamps(ctx); err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		facts.historyRead = true
		decision = judge(facts)
	}
	return answer(decision, old, request.UserInfo.Username)
}

func (g *guard) decode(request admission.Request, raw runtime.RawExtension) (*workload.Workload, error) {
	object, known := workload.NewObject(v1alpha1.WorkloadKind(request.Kind.Kind))
	if !known {
		return nil, fmt.Errorf("kind %q is no workload KICK knows", request.Kind.Kind)
	}
	if err := g.decoder.DecodeRaw(raw, object); err != nil {
		return nil, err
	}
	object.SetNamespace(request.Namespace)
	decoded, _ := workload.Of(object)
	return decoded, nil
}

// gather takes the facts that cost no request.
func (g *guard) gather(ctx context.Context, request admission.Request, old, updated *workload.Workload) (write, error) {
	facts := write{
		old:     annotation(old),
		updated: annotation(updated),
		own:     g.account != "" && request.UserInfo.Username == g.account,
		exempt:  g.exempt.cover(request.UserInfo),

		momentary: momentary(annotation(updated), g.clock.Now()),
	}
	if request.Namespace == g.namespace {
		return facts, nil
	}
	var policies v1alpha1.KickPolicyList
	if err := g.policies.List(ctx, &policies, client.InNamespace(request.Namespace)); err != nil {
		return write{}, fmt.Errorf("list the policies of namespace %s: %w", request.Namespace, err)
	}
	facts.guards = guardsOf(policies.Items, old.Labels(), updated.Labels())
	return facts, nil
}

func annotation(of *workload.Workload) *string {
	if value, present := of.StampAnnotation(); present {
		return &value
	}
	return nil
}

// answer puts a verdict into the words of admission.
func answer(decision verdict, old *workload.Workload, user string) admission.Response {
	response := admission.Allowed("")
	if decision.effect != allow {
		command, err := askCommand(old.Key.Namespace, old.TargetRef(), user)
		if err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		paragraphs := objection(decision, old.TargetRef(), command)
		if decision.effect == deny {
			response = admission.Denied(strings.Join(paragraphs, "\n\n"))
		} else { // A warning has one line.
			response = response.WithWarnings(strings.Join(paragraphs, "  "))
		}
	}
	response.AuditAnnotations = map[string]string{auditRule: string(decision.rule)}
	if decision.policy != "" {
		response.AuditAnnotations[auditPolicy] = decision.policy
	}
	return response
}
