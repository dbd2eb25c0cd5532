package chart

import (
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
)

// registered returns the guard as the chart registers it.
func registered(t *testing.T, all manifests) admissionv1.ValidatingWebhook {
	t.Helper()
	hooks := only(t, all, anyOf[*admissionv1.ValidatingWebhookConfiguration]).Webhooks
	i := slices.IndexFunc(hooks, func(hook admissionv1.ValidatingWebhook) bool { return hook.Name == "guard.kick.dev" })
	if i < 0 {
		t.Fatal("the guard is not registered")
	}
	return hooks[i]
}

func TestTheGuardKnowsTheAccountAndTheNamespaceOfTheRelease(t *testing.T) {
	eachRelease(t, func(t *testing.T, r release, all manifests) {
		pod := only(t, all, anyOf[*appsv1.Deployment]).Spec.Template.Spec
		guard := registered(t, all)
		namespace := only(t, all, anyOf[*appsv1.Deployment]).Namespace
		account := `"system:serviceaccount:` + namespace + `:` + pod.ServiceAccountName + `"`
		if !strings.Contains(guard.MatchConditions[0].Expression, account) {
			t.Errorf("the guard is called for KICK itself, %s: %s", account, guard.MatchConditions[0].Expression)
		}
		if exempt := guard.NamespaceSelector.MatchExpressions[0].Values; !slices.Contains(exempt, namespace) || !slices.Contains(exempt, "kube-system") {
			t.Errorf("the guard leaves %q alone, want %q and kube-system among them", exempt, namespace)
		}
	})
}

func TestTheValuesOfTheGuard(t *testing.T) {
	render := func(values string) manifests {
		return release{name: "kick", namespace: "kick-system", values: values}.mustRender(t)
	}
	if policy := registered(t, render("")).FailurePolicy; policy == nil || *policy != admissionv1.Fail {
		t.Errorf("failure policy %v, want Fail", policy)
	}
	open := render(`webhook: {guard: {failurePolicy: Ignore, exemptUsers: [alice, "system:admin"], exemptGroups: [on-call]}}`)
	if policy := registered(t, open).FailurePolicy; policy == nil || *policy != admissionv1.Ignore {
		t.Errorf("failure policy %v, want Ignore", policy)
	}
	arguments := only(t, open, anyOf[*appsv1.Deployment]).Spec.Template.Spec.Containers[0].Args
	for _, want := range []string{"--guard-exempt-users=alice,system:admin", "--guard-exempt-groups=on-call"} {
		if !slices.Contains(arguments, want) {
			t.Errorf("no %s in %q", want, arguments)
		}
	}
	for _, hook := range only(t, open, anyOf[*admissionv1.ValidatingWebhookConfiguration]).Webhooks {
		if hook.Name != "guard.kick.dev" && *hook.FailurePolicy != admissionv1.Fail {
			t.Errorf("%s may be skipped, too", hook.Name)
		}
	}
}

func TestAGuardThatCannotBeIsRefused(t *testing.T) {
	for values, want := range map[string]string{
		`webhook: {guard: {failurePolicy: Maybe}}`:       "/webhook/guard/failurePolicy",
		`webhook: {guard: {exemptUsers: ["a,b"]}}`:       "/webhook/guard/exemptUsers/0",
		`webhook: {guard: {exemptGroups: on-call}}`:      "/webhook/guard/exemptGroups",
		`webhook: {guard: {exemptServiceAccounts: [a]}}`: "exemptServiceAccounts",
	} {
		_, err := release{name: "kick", namespace: "kick-system", values: values}.render(t)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error is %v, want one that names %s", values, err, want)
		}
	}
}
