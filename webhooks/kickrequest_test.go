package webhooks

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/workload"
)

// requestHandler validates requests, at noon, in a cluster with the Deployment shop/web. The right to override belongs
// to whom may names.
func requestHandler(t testing.TB, may func(authorizationv1.SubjectAccessReviewSpec) bool, get error) admission.Handler {
	t.Helper()
	scheme := testScheme(t)
	c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(stamped(nil)).Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, o ...client.GetOption) error {
			if get != nil {
				return get
			}
			return c.Get(ctx, key, object, o...)
		},
		Create: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.CreateOption) error {
			review, ok := object.(*authorizationv1.LocalSubjectAccessReview)
			if !ok {
				return errors.New("the webhook writes an object")
			}
			review.Status.Allowed = may(review.Spec)
			return nil
		},
	})
	return admission.WithValidator(scheme, &kickRequestValidator{
		workloads: &workload.Client{Live: c}, reviews: c, clock: testingclock.NewFakePassiveClock(noon),
		account: "system:serviceaccount:kick-system:kick",
	}).Handler
}

func nobody(authorizationv1.SubjectAccessReviewSpec) bool { return false }

func asked(edit func(*v1alpha1.KickRequest)) *v1alpha1.KickRequest {
	r := &v1alpha1.KickRequest{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "KickRequest"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "deployment-web"},
		Spec: v1alpha1.KickRequestSpec{
			TargetRef: target, Manual: &v1alpha1.ManualRestart{RequestedAt: micro(noon), RequestedBy: "alice", Reason: "rotated"},
		},
	}
	if edit != nil {
		edit(r)
	}
	return r
}

// written is the write of a request by alice; old is nil for a creation.
func written(t testing.TB, old, updated *v1alpha1.KickRequest) admission.Request {
	t.Helper()
	r := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Create, Namespace: "shop", Name: "deployment-web",
		Kind:     metav1.GroupVersionKind{Group: "kick.dev", Version: "v1alpha1", Kind: "KickRequest"},
		UserInfo: authenticationv1.UserInfo{Username: "alice"},
		Object:   encode(t, updated),
	}}
	if old != nil {
		r.Operation, r.OldObject = admissionv1.Update, encode(t, old)
	}
	return r
}

func TestRequestsFitTheirWorkloadAndClaimNothingFalse(t *testing.T) {
	override := func(r *v1alpha1.KickRequest) { r.Spec.Manual.Override = true }
	long := func(r *v1alpha1.KickRequest) { r.Spec.Manual.RequestedAt = micro(noon.AddDate(-1, 0, 0)) }
	kick := func(r *admission.Request) { r.UserInfo.Username = "system:serviceaccount:kick-system:kick" }
	for name, tc := range map[string]struct {
		old, updated *v1alpha1.KickRequest
		edit         func(*admission.Request)
		want         []string // fields of the faults
	}{
		"a wish":                          {nil, asked(nil), nil, nil},
		"a request without a wish":        {nil, asked(func(r *v1alpha1.KickRequest) { r.Spec.Manual = nil }), nil, nil},
		"of another name":                 {nil, asked(func(r *v1alpha1.KickRequest) { r.Name = "web" }), nil, []string{"metadata.name"}},
		"of a workload that is gone":      {nil, asked(func(r *v1alpha1.KickRequest) { r.Spec.TargetRef.Name, r.Name = "db", "deployment-db" }), nil, []string{"spec.targetRef.name"}},
		"of an earlier workload":          {nil, asked(func(r *v1alpha1.KickRequest) { r.Spec.TargetRef.UID = "u-0" }), nil, []string{"spec.targetRef.uid"}},
		"of a kind that is no workload":   {nil, asked(func(r *v1alpha1.KickRequest) { r.Spec.TargetRef.Kind, r.Name = "Job", "job-web" }), nil, []string{"spec.targetRef.kind"}},
		"in another's name":               {nil, asked(func(r *v1alpha1.KickRequest) { r.Spec.Manual.RequestedBy = "bob" }), nil, []string{"spec.manual.requestedBy"}},
		"of last year":                    {nil, asked(long), nil, []string{"spec.manual.requestedAt"}},
		"with an override":                {nil, asked(override), nil, []string{"spec.manual.override"}},
		"with several faults":             {nil, asked(func(r *v1alpha1.KickRequest) { r.Name = "x"; r.Spec.TargetRef.UID = "u-0"; long(r); override(r) }), nil, []string{"metadata.name", "spec.targetRef.uid", "spec.manual.requestedAt", "spec.manual.override"}},
		"in another's name, by KICK":      {nil, asked(func(r *v1alpha1.KickRequest) { r.Spec.Manual.RequestedBy = "bob" }), kick, nil},
		"of an earlier workload, by KICK": {nil, asked(func(r *v1alpha1.KickRequest) { r.Spec.TargetRef.UID = "u-0" }), kick, []string{"spec.targetRef.uid"}},
		"labelled, with a wish of another": {asked(func(r *v1alpha1.KickRequest) { r.Spec.Manual.RequestedBy = "bob"; override(r) }), asked(func(r *v1alpha1.KickRequest) {
			r.Labels = map[string]string{"a": "b"}
			r.Spec.Manual.RequestedBy = "bob"
			override(r)
		}), nil, nil},
		"labelled, of a workload that is gone":      {asked(func(r *v1alpha1.KickRequest) { r.Spec.TargetRef.UID = "u-0" }), asked(func(r *v1alpha1.KickRequest) { r.Spec.TargetRef.UID = "u-0"; r.Finalizers = []string{"example.com/x"} }), nil, nil},
		"the wish withdrawn":                        {asked(func(r *v1alpha1.KickRequest) { r.Spec.Manual.RequestedBy = "bob" }), asked(func(r *v1alpha1.KickRequest) { r.Spec.Manual = nil }), nil, nil},
		"a wish added":                              {asked(func(r *v1alpha1.KickRequest) { r.Spec.Manual = nil }), asked(nil), nil, nil},
		"a wish added for an earlier workload":      {asked(func(r *v1alpha1.KickRequest) { r.Spec.Manual, r.Spec.TargetRef.UID = nil, "u-0" }), asked(func(r *v1alpha1.KickRequest) { r.Spec.TargetRef.UID = "u-0" }), nil, []string{"spec.targetRef.uid"}},
		"the reason of another's wish changed":      {asked(func(r *v1alpha1.KickRequest) { r.Spec.Manual.RequestedBy = "bob" }), asked(func(r *v1alpha1.KickRequest) { r.Spec.Manual.RequestedBy = "bob"; r.Spec.Manual.Reason = "x" }), nil, []string{"spec.manual.requestedBy"}},
		"an override switched on":                   {asked(nil), asked(override), nil, []string{"spec.manual.override"}},
		"back in time":                              {asked(func(r *v1alpha1.KickRequest) { r.Spec.Manual.RequestedAt = micro(noon.Add(1e9)) }), asked(nil), nil, []string{"spec.manual.requestedAt"}},
		"another target":                            {asked(nil), asked(func(r *v1alpha1.KickRequest) { r.Spec.TargetRef.UID = "u-9" }), nil, []string{"spec.targetRef"}},
		"another target and another's wish at once": {asked(nil), asked(func(r *v1alpha1.KickRequest) { r.Spec.TargetRef.UID = "u-9"; r.Spec.Manual.RequestedBy = "bob" }), nil, []string{"spec.targetRef", "spec.targetRef.uid", "spec.manual.requestedBy"}},
	} {
		t.Run(name, func(t *testing.T) {
			request := written(t, tc.old, tc.updated)
			if tc.edit != nil {
				tc.edit(&request)
			}
			response := requestHandler(t, nobody, nil).Handle(t.Context(), request)
			var fields []string
			if response.Result.Details != nil {
				for _, cause := range response.Result.Details.Causes {
					fields = append(fields, cause.Field)
				}
			}
			if diff := cmp.Diff(tc.want, fields); diff != "" || response.Allowed != (len(tc.want) == 0) {
				t.Errorf("allowed %v, %s: faults (-want +got)\n%s", response.Allowed, response.Result.Message, diff)
			}
		})
	}
}

// The question to the API server holds all that an authorizer may look at.
func TestAnOverrideIsAskedForWithTheWholeIdentity(t *testing.T) {
	var got authorizationv1.SubjectAccessReviewSpec
	request := written(t, nil, asked(func(r *v1alpha1.KickRequest) { r.Spec.Manual.Override = true }))
	request.UserInfo = authenticationv1.UserInfo{
		Username: "alice", UID: "7", Groups: []string{"on-call"}, Extra: map[string]authenticationv1.ExtraValue{"scope": {"a", "b"}},
	}
	response := requestHandler(t, func(spec authorizationv1.SubjectAccessReviewSpec) bool { got = spec; return true }, nil).Handle(t.Context(), request)
	if !response.Allowed {
		t.Errorf("refused: %v", response.Result)
	}
	want := authorizationv1.SubjectAccessReviewSpec{
		User: "alice", UID: "7", Groups: []string{"on-call"}, Extra: map[string]authorizationv1.ExtraValue{"scope": {"a", "b"}},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: "kick.dev", Version: "v1alpha1", Resource: "kickrequests", Verb: "override", Namespace: "shop", Name: "deployment-web",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestNoRightIsAskedForWithoutAnOverride(t *testing.T) {
	requestHandler(t, func(authorizationv1.SubjectAccessReviewSpec) bool { t.Error("asked"); return true }, nil).
		Handle(t.Context(), written(t, nil, asked(nil)))
}

func TestARequestThatCannotBeJudgedIsRefused(t *testing.T) {
	response := requestHandler(t, nobody, errors.New("no API server")).Handle(t.Context(), written(t, nil, asked(nil)))
	if response.Allowed || isRefusal(response.Result.Code) {
		t.Errorf("allowed %v, %v", response.Allowed, response.Result)
	}
	for name, text := range malformed {
		t.Run(name, func(t *testing.T) {
			request := written(t, nil, asked(nil))
			request.Object = runtime.RawExtension{Raw: []byte(text)}
			response := requestHandler(t, nobody, nil).Handle(t.Context(), request)
			if response.Allowed || response.Result.Code != http.StatusBadRequest {
				t.Errorf("allowed %v, %v", response.Allowed, response.Result)
			}
		})
	}
}
