package doctor

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/config"
)

// webhookNames are those of the webhooks, with what is not checked without them.
var webhookNames = map[string]string{
	"kickpolicy.kick.dev":  "policies that make no sense are stored",
	"kickrequest.kick.dev": "nobody checks who asks for a restart, and whether past closed windows",
	"guard.kick.dev":       "restarts by others are not refused",
}

const webhookRemedy = "helm upgrade --install kick charts/kick, with the values of the installation, brings the registration back"

// registrations are the webhooks of KICK that the API server knows, by name.
func (p *Patient) registrations(ctx context.Context) (map[string]*admissionregistrationv1.ValidatingWebhook, error) {
	var list admissionregistrationv1.ValidatingWebhookConfigurationList
	if err := p.Client.List(ctx, &list); err != nil {
		return nil, err
	}
	found := map[string]*admissionregistrationv1.ValidatingWebhook{}
	for i := range list.Items {
		for j := range list.Items[i].Webhooks {
			webhook := &list.Items[i].Webhooks[j]
			service := webhook.ClientConfig.Service
			if _, ours := webhookNames[webhook.Name]; ours && service != nil && service.Namespace == p.Namespace {
				found[webhook.Name] = webhook
			}
		}
	}
	return found, nil
}

func (p *Patient) webhooks(ctx context.Context) {
	if p.arguments["webhook"] == "false" {
		p.found(Warning, "set webhook.enabled: true in the values of the chart, if that was not meant",
			"they are switched off: nothing is checked when policies and requests are written, and nothing is guarded")
		return
	}
	registered, err := p.registrations(ctx)
	if err != nil {
		p.failed(err, "the registration of the webhooks")
	} else {
		missing := 0
		for _, name := range []string{"kickpolicy.kick.dev", "kickrequest.kick.dev", "guard.kick.dev"} {
			if registered[name] == nil {
				missing++
				p.found(Problem, webhookRemedy, "%s is not registered with the API server, so %s", name, webhookNames[name])
			}
		}
		if missing == 0 {
			p.ok("all %d are registered", len(webhookNames))
		}
	}
	p.answers(ctx)
}

// answers has the API server ask the webhook about a policy that has to be refused, in a dry run.
func (p *Patient) answers(ctx context.Context) {
	probe := &v1alpha1.KickPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, GenerateName: "kick-doctor-"}}
	probe.Spec.Schedule.Windows = []v1alpha1.Window{{Kind: v1alpha1.WindowAllow, Cron: "no cron", Duration: "1h"}}
	err := p.Client.Create(ctx, probe, client.DryRunAll)
	switch {
	case err == nil:
		p.found(Problem, webhookRemedy, "the API server took a policy without sense, in a dry run: it asks no webhook")
	case strings.Contains(err.Error(), `"kickpolicy.kick.dev" denied the request`):
		p.ok("the API server asks them and gets answers (it refused a policy without sense, in a dry run)")
	case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
		p.found(Problem, crdRemedy, "there are no policies to ask about: %v", err)
	case apierrors.IsForbidden(err):
		p.found(Unseen, "run the doctor as somebody who may create policies in namespace "+p.Namespace,
			"whether they answer: you may not create policies, not even in a dry run")
	default:
		p.found(Problem, "see whether the replicas are ready, whether the API server reaches them, and whether it trusts the certificate",
			"the API server does not get an answer: %v", err)
	}
}

// soon is when a certificate that will expire becomes a warning: cert-manager renews a third of 90 days before.
const soon = 14 * 24 * time.Hour

func (p *Patient) certificate(ctx context.Context) {
	if p.arguments["webhook"] == "false" {
		return
	}
	registered, err := p.registrations(ctx)
	if err != nil {
		p.failed(err, "the CA that the API server trusts")
	} else {
		p.trust(registered)
	}
	p.issued(ctx)
}

// trust looks at the CA that the API server trusts.
func (p *Patient) trust(registered map[string]*admissionregistrationv1.ValidatingWebhook) {
	var end time.Time
	for _, name := range slices.Sorted(maps.Keys(registered)) {
		webhook := registered[name]
		roots := parseCertificates(webhook.ClientConfig.CABundle)
		if len(roots) == 0 {
			p.found(Problem, "with cert-manager, see whether its cainjector runs; with a Secret of your own, set webhook.caBundle",
				"the registration of %s holds no CA, so the API server trusts no answer", webhook.Name)
			return
		}
		if last := lastOf(roots); end.IsZero() || last.Before(end) {
			end = last
		}
	}
	if !end.IsZero() {
		p.validUntil("the CA that the API server trusts", end)
	}
}

// lastOf is when the last of some certificates expires.
func lastOf(certificates []*x509.Certificate) time.Time {
	var last time.Time
	for _, certificate := range certificates {
		if certificate.NotAfter.After(last) {
			last = certificate.NotAfter
		}
	}
	return last
}

func (p *Patient) validUntil(what string, end time.Time) {
	left := end.Sub(p.Now())
	shown := end.UTC().Format(time.DateOnly)
	switch {
	case left <= 0:
		p.found(Problem, "renew it: with cert-manager see why the Certificate is not renewed, with one of your own put a new one in place",
			"%s expired on %s", what, shown)
	case left < soon:
		p.found(Warning, "see why it has not been renewed", "%s is valid until %s only", what, shown)
	default:
		p.ok("%s is valid until %s", what, shown)
	}
}

func parseCertificates(bundle []byte) []*x509.Certificate {
	var certificates []*x509.Certificate
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil {
			certificates = append(certificates, certificate)
		}
	}
	return certificates
}

// issued looks at the Certificates of cert-manager.
func (p *Patient) issued(ctx context.Context) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: "CertificateList"})
	err := p.Client.List(ctx, list, client.InNamespace(p.Namespace))
	switch {
	case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
		p.ok("cert-manager is not installed, so the certificate is one of your own, whose end only its Secret tells")
		return
	case err != nil:
		p.failed(err, "the Certificates of cert-manager")
		return
	}
	for i := range list.Items {
		name := "the Certificate " + list.Items[i].GetName()
		conditions, _, _ := unstructured.NestedSlice(list.Items[i].Object, "status", "conditions")
		if message := notReady(conditions); message != "" {
			p.found(Problem, fmt.Sprintf("look at kubectl -n %s describe certificate %s", p.Namespace, list.Items[i].GetName()),
				"%s is not ready: %s", name, message)
			continue
		}
		text, _, _ := unstructured.NestedString(list.Items[i].Object, "status", "notAfter")
		if end, err := time.Parse(time.RFC3339, text); err == nil {
			p.validUntil(name, end)
		}
	}
}

func notReady(conditions []any) string {
	for _, item := range conditions {
		condition, _ := item.(map[string]any)
		if condition["type"] != "Ready" {
			continue
		}
		if condition["status"] == "True" {
			return ""
		}
		return fmt.Sprint(condition["message"])
	}
	return "it has no condition Ready"
}

// right is something that KICK has to be allowed.
type right struct {
	group, resource, subresource, name, verb string
	// own is true for what concerns KICK's own namespace alone.
	own bool
}

func (r right) String() string {
	resource := r.resource
	if r.subresource != "" {
		resource += "/" + r.subresource
	}
	if r.group != "" {
		resource += "." + r.group
	}
	return r.verb + " " + resource
}

// needed are the rights of the generated roles. What only some installations need is left out.
func needed() ([]right, error) {
	var rights []right
	decoder := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(string(config.Roles)), 4096)
	for {
		var role rbacv1.ClusterRole // A Role has the same shape.
		if err := decoder.Decode(&role); err != nil {
			break // The end.
		}
		for _, rule := range role.Rules {
			rights = append(rights, rightsOf(rule, role.Kind == "Role")...)
		}
	}
	if len(rights) == 0 {
		return nil, fmt.Errorf("the generated roles hold no rule")
	}
	return rights, nil
}

func rightsOf(rule rbacv1.PolicyRule, own bool) []right {
	if len(rule.ResourceNames) > 0 {
		return nil // Only for the readiness of installations of the whole cluster.
	}
	var rights []right
	for _, group := range rule.APIGroups {
		switch group {
		case "argoproj.io", "kustomize.toolkit.fluxcd.io", "helm.toolkit.fluxcd.io", "authentication.k8s.io", "authorization.k8s.io":
			continue // Only with GitOps, and for metrics and webhooks.
		}
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				name, sub, _ := strings.Cut(resource, "/")
				rights = append(rights, right{group: group, resource: name, subresource: sub, verb: verb, own: own})
			}
		}
	}
	return rights
}

// rights asks the API server whether KICK's own account may do what it has to.
func (p *Patient) rights(ctx context.Context) {
	if p.manager == nil {
		p.found(Unseen, "", "without its Deployment the account of KICK is not known")
		return
	}
	rights, err := needed()
	if err != nil {
		p.failed(err, "the rights KICK needs")
		return
	}
	account := fmt.Sprintf("system:serviceaccount:%s:%s", p.Namespace, p.manager.Spec.Template.Spec.ServiceAccountName)
	namespaces := []string{metav1.NamespaceAll}
	if watched := p.arguments["watch-namespaces"]; watched != "" {
		namespaces = strings.Split(watched, ",")
	}
	var missing []string
	for _, r := range rights {
		where := namespaces
		if r.own {
			where = []string{p.Namespace}
		}
		for _, namespace := range where {
			allowed, err := p.may(ctx, account, namespace, r)
			if err != nil {
				p.failed(err, "the rights of "+account)
				return
			}
			if !allowed {
				missing = append(missing, lacking(r, namespace))
			}
		}
	}
	if len(missing) > 0 {
		p.found(Problem, "helm upgrade --install kick charts/kick, with the values of the installation, brings the roles back; "+
			"see whether somebody removed a binding", "%s may not %s", account, strings.Join(missing, ", "))
		return
	}
	p.ok("%s has the %d rights it needs", account, len(rights))
}

func lacking(r right, namespace string) string {
	if namespace == metav1.NamespaceAll {
		return r.String()
	}
	return r.String() + " in " + namespace
}

func (p *Patient) may(ctx context.Context, account, namespace string, r right) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: account, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + p.Namespace, "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Group: r.group, Resource: r.resource, Subresource: r.subresource, Verb: r.verb, Name: r.name,
		},
	}}
	if err := p.Client.Create(ctx, review); err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}

// policies looks for policies that a person has to mend.
func (p *Patient) policies(ctx context.Context) {
	var list v1alpha1.KickPolicyList
	if err := p.Client.List(ctx, &list); err != nil {
		p.failed(err, "the policies of all namespaces")
		return
	}
	bad := 0
	for i := range list.Items {
		of := &list.Items[i]
		stalled := meta.FindStatusCondition(of.Status.Conditions, v1alpha1.ConditionStalled)
		if stalled != nil && stalled.Status == metav1.ConditionTrue {
			bad++
			p.found(Problem, "mend the policy; kubectl kick preview -f checks it before",
				"%s/%s, %s: %s", of.Namespace, of.Name, stalled.Reason, stalled.Message)
		}
	}
	switch {
	case len(list.Items) == 0:
		p.found(Warning, "make a KickPolicy: kubectl kick preview -f shows what it would do", "there are none, so KICK does nothing")
	case bad == 0:
		p.ok("in force: all of %d", len(list.Items))
	}
}

// requests looks for restarts that a person has to help.
func (p *Patient) requests(ctx context.Context) {
	var list v1alpha1.KickRequestList
	if err := p.Client.List(ctx, &list); err != nil {
		p.failed(err, "the requests of all namespaces")
		return
	}
	const most = 10
	bad, waiting := 0, 0
	for i := range list.Items {
		of := &list.Items[i]
		if of.Status.Phase.Waiting() {
			waiting++
		}
		stalled := meta.FindStatusCondition(of.Status.Conditions, v1alpha1.ConditionStalled)
		if stalled == nil || stalled.Status != metav1.ConditionTrue {
			continue
		}
		if bad++; bad <= most {
			target := strings.ToLower(string(of.Spec.TargetRef.Kind)) + "/" + of.Spec.TargetRef.Name
			p.found(Warning, fmt.Sprintf("kubectl kick explain %s -n %s", target, of.Namespace),
				"%s in namespace %s, %s: %s", target, of.Namespace, stalled.Reason, stalled.Message)
		}
	}
	if bad > most {
		p.found(Warning, "kubectl kick status -A", "%d more need somebody's help", bad-most)
	}
	if bad == 0 {
		p.ok("none needs help; waiting: %d", waiting)
	}
}
