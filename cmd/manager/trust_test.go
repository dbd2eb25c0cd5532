package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// registration is one that calls a Service of KICK's own namespace.
func registration(bundle string) *admissionv1.ValidatingWebhookConfiguration {
	return &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "kick"},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "kickpolicy.kick.dev",
			ClientConfig: admissionv1.WebhookClientConfig{
				Service:  &admissionv1.ServiceReference{Namespace: "kick-system", Name: "kick-webhook"},
				CABundle: []byte(bundle),
			},
		}},
	}
}

func TestAReplicaIsReadyOnceItsCertificateIsTrusted(t *testing.T) {
	ours := issue(t, "kick-webhook.kick-system.svc")
	elsewhere := issue(t, "kick-webhook.default.svc")
	for name, tc := range map[string]struct {
		serving    issued
		registered *admissionv1.ValidatingWebhookConfiguration
		want       string // in the error; empty for ready
	}{
		"its CA":                  {ours, registration(ours.authority), ""},
		"no CA yet":               {ours, registration(""), "it holds no CA yet"},
		"the CA of another":       {ours, registration(elsewhere.authority), "unknown authority"},
		"a name that is not ours": {elsewhere, registration(elsewhere.authority), "not kick-webhook.kick-system.svc"},
		"no registration":         {ours, nil, "not found"},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{}
			if tc.registered != nil {
				objects = append(objects, tc.registered)
			}
			check := &trust{
				live:          fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(objects...).Build(),
				configuration: "kick",
				address:       tc.serving.serve(t),
			}
			err := check.check(httptest.NewRequest(http.MethodGet, "/readyz", nil))
			if tc.want == "" && err != nil {
				t.Errorf("error %v", err)
			}
			if tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

func TestAReplicaOnceReadyStaysSoWithoutAskingAgain(t *testing.T) {
	ours := issue(t, "kick-webhook.kick-system.svc")
	live := fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(registration(ours.authority)).Build()
	check := &trust{live: live, configuration: "kick", address: ours.serve(t)}
	probe := httptest.NewRequest(http.MethodGet, "/readyz", nil)
	if err := check.check(probe); err != nil {
		t.Fatal(err)
	}
	if err := live.Delete(t.Context(), registration("")); err != nil {
		t.Fatal(err)
	}
	if err := check.check(probe); err != nil {
		t.Errorf("error %v after the registration is gone", err)
	}
}
