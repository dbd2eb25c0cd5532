package doctor_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/kubectl/doctor"
	"github.com/kick-dev/kick/internal/kubectl/shape"
	"github.com/kick-dev/kick/internal/testing/golden"
)

var noon = time.Date(2026, 8, 6, 12, 0, 0, 0, time.UTC)

const home = "kick-system"

// hospital holds a cluster as the doctor finds it. Each case breaks something of one that is healthy.
type hospital struct {
	objects   []client.Object
	version   string
	resources []*metav1.APIResourceList
	// denied are the rights that KICK's account lacks, and hidden the kinds that the user may not see.
	denied map[string]bool
	hidden map[string]bool
	// answer of the API server to the probe.
	answer error
	// crd is changed before it is returned.
	crd func(*unstructured.Unstructured)
	// notAfter is the end of the Certificate of cert-manager, empty for none.
	notAfter string
}

func authority(t *testing.T, until time.Time) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: noon.AddDate(-1, 0, 0), NotAfter: until, IsCA: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func named[T client.Object](object T, namespace, name string) T {
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

func healthy(t *testing.T) *hospital {
	t.Helper()
	replicas := int32(2)
	manager := named(&appsv1.Deployment{}, home, "kick")
	manager.Labels = map[string]string{"app.kubernetes.io/name": "kick"}
	manager.Spec.Replicas = &replicas
	manager.Spec.Template.Spec.ServiceAccountName = "kick"
	manager.Spec.Template.Spec.Containers = []corev1.Container{{
		Name: "manager", Image: "ghcr.io/kick-dev/kick:1.2.3", Args: []string{"--leader-elect=true", "--webhook=true"},
	}}
	manager.Status.ReadyReplicas = 2
	holder, renewed := "kick-7d4b_uid", metav1.NewMicroTime(noon.Add(-2*time.Second))
	lease := named(&coordinationv1.Lease{}, home, "kick")
	lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &renewed}
	registration := named(&admissionregistrationv1.ValidatingWebhookConfiguration{}, "", "kick")
	bundle := authority(t, noon.AddDate(9, 0, 0))
	for _, name := range []string{"kickpolicy.kick.dev", "kickrequest.kick.dev", "guard.kick.dev"} {
		registration.Webhooks = append(registration.Webhooks, admissionregistrationv1.ValidatingWebhook{
			Name: name, ClientConfig: admissionregistrationv1.WebhookClientConfig{
				CABundle: bundle, Service: &admissionregistrationv1.ServiceReference{Namespace: home, Name: "kick-webhook"},
			},
		})
	}
	ledger := named(&v1alpha1.KickLedger{SourceNamespace: "shop"}, home, "shop")
	ledger.Records = []v1alpha1.SourceRecord{{Kind: v1alpha1.Secret, Name: "db", Fingerprint: []byte("secret-digest")}}
	return &hospital{
		objects: []client.Object{
			manager, lease, registration, ledger, named(&corev1.Secret{}, home, "kick-fingerprint-key"),
			named(&v1alpha1.KickPolicy{}, "shop", "web"),
		},
		version: "v1.37.2",
		resources: []*metav1.APIResourceList{{GroupVersion: "kick.dev/v1alpha1", APIResources: []metav1.APIResource{
			{Name: "kickpolicies"}, {Name: "kickrequests"}, {Name: "kickledgers"}, {Name: "kicknotifications"},
		}}},
		denied: map[string]bool{}, hidden: map[string]bool{},
		answer:   errors.New(`admission webhook "kickpolicy.kick.dev" denied the request: KickPolicy.kick.dev "" is invalid`),
		notAfter: "2026-10-01T00:00:00Z",
	}
}

// get finds an object to break.
func get[T client.Object](h *hospital) T {
	for _, object := range h.objects {
		if found, ok := object.(T); ok {
			return found
		}
	}
	panic("no such object")
}

func lose[T client.Object](h *hospital) {
	h.objects = slices.DeleteFunc(h.objects, func(object client.Object) bool { _, ok := object.(T); return ok })
}

func (h *hospital) patient(t *testing.T) *doctor.Patient {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(h.objects...).Build(), interceptor.Funcs{
		Create: h.create, Get: h.get, List: h.list,
	})
	discovery := &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{Resources: h.resources}, FakedServerVersion: &version.Info{GitVersion: h.version}}
	return &doctor.Patient{Client: c, Discovery: discovery, Namespace: home, Version: "v1.2.3", Now: func() time.Time { return noon }}
}

func (h *hospital) create(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.CreateOption) error {
	switch o := object.(type) {
	case *authorizationv1.SubjectAccessReview:
		a := o.Spec.ResourceAttributes
		o.Status.Allowed = !h.denied[a.Verb+" "+a.Resource]
		return nil
	default:
		return h.answer
	}
}

func (h *hospital) forbidden(kind string) error {
	if !h.hidden[kind] {
		return nil
	}
	return apierrors.NewForbidden(schema.GroupResource{Resource: kind}, "", errors.New("not for you"))
}

func (h *hospital) get(
	ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption,
) error {
	if err := h.forbidden(kindOf(object)); err != nil {
		return err
	}
	found, ok := object.(*unstructured.Unstructured)
	if !ok {
		return c.Get(ctx, key, object, options...)
	}
	crds, err := shape.CRDs()
	if err != nil {
		return err
	}
	for i := range crds {
		if crds[i].Name == key.Name {
			found.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(&crds[i])
			if h.crd != nil {
				h.crd(found)
			}
			return err
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (h *hospital) list(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
	if err := h.forbidden(kindOf(list)); err != nil {
		return err
	}
	found, ok := list.(*unstructured.UnstructuredList)
	if !ok {
		return c.List(ctx, list, options...)
	}
	if h.notAfter == "" {
		return &meta.NoKindMatchError{}
	}
	found.Items = []unstructured.Unstructured{{Object: map[string]any{
		"metadata": map[string]any{"name": "kick-webhook"},
		"status": map[string]any{
			"notAfter": h.notAfter, "conditions": []any{map[string]any{"type": "Ready", "status": "True"}},
		},
	}}}
	return nil
}

func kindOf(object runtime.Object) string {
	switch object.(type) {
	case *appsv1.DeploymentList:
		return "deployments"
	case *v1alpha1.KickLedgerList:
		return "kickledgers"
	case *admissionregistrationv1.ValidatingWebhookConfigurationList:
		return "webhooks"
	case *metav1.PartialObjectMetadata:
		return "secrets"
	case *unstructured.Unstructured:
		return "crds"
	default:
		return ""
	}
}

var cases = map[string]struct {
	breaks func(*testing.T, *hospital)
	sick   bool
	// says is what the text has to name, the remedy among it.
	says []string
}{
	"healthy":       {func(*testing.T, *hospital) {}, false, []string{"0 problems", "kick-7d4b leads"}},
	"an old server": {func(_ *testing.T, h *hospital) { h.version = "v1.29.4" }, true, []string{"older than 1.30", "upgrade the cluster"}},
	"no CRDs":       {func(_ *testing.T, h *hospital) { h.resources = nil }, true, []string{"does not serve kickrequests", "install the CRDs"}},
	"another schema": {func(_ *testing.T, h *hospital) {
		h.crd = func(crd *unstructured.Unstructured) {
			versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
			versions[0].(map[string]any)["schema"] = map[string]any{}
			_ = unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions")
		}
	}, false, []string{"another schema", "helm upgrade brings the CRDs along"}},
	"no manager":  {func(_ *testing.T, h *hospital) { lose[*appsv1.Deployment](h) }, true, []string{"there is no KICK", "helm install kick"}},
	"elsewhere":   {func(_ *testing.T, h *hospital) { get[*appsv1.Deployment](h).Namespace = "tools" }, true, []string{"one in namespace tools", "--kick-namespace"}},
	"no replica":  {func(_ *testing.T, h *hospital) { get[*appsv1.Deployment](h).Status.ReadyReplicas = 0 }, true, []string{"0 of 2 replicas", "describe pods"}},
	"one replica": {func(_ *testing.T, h *hospital) { get[*appsv1.Deployment](h).Status.ReadyReplicas = 1 }, false, []string{"1 of 2 replicas"}},
	"no leader":   {func(_ *testing.T, h *hospital) { lose[*coordinationv1.Lease](h) }, true, []string{"nobody has ever led", "logs"}},
	"a leader gone": {func(_ *testing.T, h *hospital) {
		get[*coordinationv1.Lease](h).Spec.RenewTime = &metav1.MicroTime{Time: noon.Add(-time.Minute)}
	}, true, []string{"nobody leads", "1m0s ago"}},
	"a right lost": {func(_ *testing.T, h *hospital) { h.denied["patch deployments"] = true }, true, []string{"may not patch deployments.apps", "brings the roles back"}},
	"no registration": {func(_ *testing.T, h *hospital) {
		lose[*admissionregistrationv1.ValidatingWebhookConfiguration](h)
		h.answer = nil
	}, true, []string{"guard.kick.dev is not registered", "asks no webhook", "brings the registration back"}},
	"no answer": {func(_ *testing.T, h *hospital) {
		h.answer = errors.New(`failed calling webhook "kickpolicy.kick.dev": x509: certificate signed by unknown authority`)
	}, true, []string{"does not get an answer", "trusts the certificate"}},
	"no CA": {func(_ *testing.T, h *hospital) {
		for i := range get[*admissionregistrationv1.ValidatingWebhookConfiguration](h).Webhooks {
			get[*admissionregistrationv1.ValidatingWebhookConfiguration](h).Webhooks[i].ClientConfig.CABundle = nil
		}
	}, true, []string{"holds no CA", "cainjector"}},
	"an expired CA": {func(t *testing.T, h *hospital) {
		for i := range get[*admissionregistrationv1.ValidatingWebhookConfiguration](h).Webhooks {
			get[*admissionregistrationv1.ValidatingWebhookConfiguration](h).Webhooks[i].ClientConfig.CABundle = authority(t, noon.AddDate(0, 0, -1))
		}
	}, true, []string{"expired on 2026-08-05", "renew it"}},
	"a certificate near its end": {func(_ *testing.T, h *hospital) { h.notAfter = "2026-08-10T00:00:00Z" }, false, []string{"until 2026-08-10 only"}},
	"an own certificate":         {func(_ *testing.T, h *hospital) { h.notAfter = "" }, false, []string{"one of your own"}},
	"no webhooks": {func(_ *testing.T, h *hospital) {
		get[*appsv1.Deployment](h).Spec.Template.Spec.Containers[0].Args = []string{"--webhook=false"}
	}, false, []string{"switched off", "webhook.enabled: true"}},
	"a tool that is not there": {func(_ *testing.T, h *hospital) {
		get[*v1alpha1.KickPolicy](h).Spec.GitOps.Provider = v1alpha1.ProviderFlux
	},
		true, []string{"does not serve the kinds of Flux", "shop/web", "provider of the policy to None"}},
	"neither tool": {func(_ *testing.T, h *hospital) {
		get[*v1alpha1.KickPolicy](h).Spec.GitOps.Provider = v1alpha1.ProviderAuto
	},
		true, []string{"neither Argo CD nor Flux"}},
	"a policy to mend": {func(_ *testing.T, h *hospital) {
		get[*v1alpha1.KickPolicy](h).Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: "ScheduleInvalid", Message: "bad cron"}}
	}, true, []string{"shop/web, ScheduleInvalid: bad cron", "kubectl kick preview"}},
	"no policy": {func(_ *testing.T, h *hospital) { lose[*v1alpha1.KickPolicy](h) }, false, []string{"KICK does nothing"}},
	"a request to help": {func(_ *testing.T, h *hospital) {
		request := named(&v1alpha1.KickRequest{}, "shop", "deployment-web")
		request.Spec.TargetRef = v1alpha1.TargetRef{Kind: v1alpha1.Deployment, Name: "web"}
		request.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: "MissingSource", Message: "no Secret tls"}}
		h.objects = append(h.objects, request)
	}, false, []string{"deployment/web in namespace shop, MissingSource", "kubectl kick explain deployment/web -n shop"}},
	"little to see": {func(_ *testing.T, h *hospital) {
		h.hidden = map[string]bool{"deployments": true, "kickledgers": true, "webhooks": true, "secrets": true, "crds": true}
	}, false, []string{"you may not look", "as an administrator"}},
}

func TestTheDoctor(t *testing.T) {
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := healthy(t)
			tc.breaks(t, h)
			findings := h.patient(t).Examine(t.Context())
			var out strings.Builder
			if err := doctor.WriteText(&out, findings); err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, strings.ReplaceAll(name, " ", "-"), out.String())
			if doctor.Sick(findings) != tc.sick {
				t.Errorf("sick: %v, want %v\n%s", doctor.Sick(findings), tc.sick, &out)
			}
			for _, text := range tc.says {
				if !strings.Contains(out.String(), text) {
					t.Errorf("does not say %q:\n%s", text, &out)
				}
			}
			for _, finding := range findings {
				if finding.Status == doctor.Problem && finding.Remedy == "" {
					t.Errorf("no remedy for %+v", finding)
				}
			}
			if strings.Contains(out.String(), "digest") {
				t.Error("a digest is shown")
			}
		})
	}
}
