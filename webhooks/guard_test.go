package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/workload"
)

func testScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// newGuard is a guard of a cluster that holds the objects.
func newGuard(t testing.TB, funcs interceptor.Funcs, objects ...client.Object) *guard {
	t.Helper()
	scheme := testScheme(t)
	c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(), funcs)
	return &guard{
		decoder: admission.NewDecoder(scheme), policies: c, workloads: &workload.Client{Live: c}, clock: testingclock.NewFakePassiveClock(noon),
		namespace: "kick-system", account: "system:serviceaccount:kick-system:kick",
		exempt: Exemptions{Users: []string{"root"}, Groups: []string{"on-call"}},
	}
}

var selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}

// stamped is a Deployment shop/web, with a stamp if one is given.
func stamped(stamp *string) *appsv1.Deployment {
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: workloadMeta(),
		Spec:       appsv1.DeploymentSpec{Selector: selector, Template: templateWith(stamp)},
	}
}

func workloadMeta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u-1", Labels: map[string]string{"app": "web"}}
}

func templateWith(stamp *string) corev1.PodTemplateSpec {
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}}
	if stamp != nil {
		template.Annotations = map[string]string{v1alpha1.RestartedAtAnnotation: *stamp}
	}
	return template
}

func statefulSetWith(stamp *string) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
		ObjectMeta: workloadMeta(),
		Spec:       appsv1.StatefulSetSpec{Selector: selector, Template: templateWith(stamp)},
	}
}

func daemonSetWith(stamp *string) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"},
		ObjectMeta: workloadMeta(),
		Spec:       appsv1.DaemonSetSpec{Selector: selector, Template: templateWith(stamp)},
	}
}

// managing is the policy of shop that manages web.
func managing() *v1alpha1.KickPolicy {
	policy := selecting("nightly", *selector)
	policy.Namespace = "shop"
	return policy
}

func encode(t testing.TB, object any) runtime.RawExtension {
	t.Helper()
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return runtime.RawExtension{Raw: raw}
}

// update is a request to write a workload, by alice.
func update(t testing.TB, old, updated client.Object) admission.Request {
	t.Helper()
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "r", Operation: admissionv1.Update, Namespace: "shop", Name: "web",
		Kind:     metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: old.GetObjectKind().GroupVersionKind().Kind},
		UserInfo: authenticationv1.UserInfo{Username: "alice", Groups: []string{"system:authenticated"}},
		Object:   encode(t, updated), OldObject: encode(t, old),
	}}
}

func restart(t testing.TB) admission.Request {
	t.Helper()
	return update(t, stamped(nil), stamped(new("now")))
}

func TestTheGuardAnswersForeignRestarts(t *testing.T) {
	g := newGuard(t, interceptor.Funcs{}, managing())
	for name, tc := range map[string]struct {
		edit    func(*admission.Request)
		allowed bool
		rule    rule
	}{
		"alice restarts":                {func(*admission.Request) {}, false, ruleForeignRestart},
		"as a dry run":                  {func(r *admission.Request) { r.DryRun = new(true) }, false, ruleForeignRestart},
		"KICK stamps":                   {func(r *admission.Request) { r.UserInfo.Username = "system:serviceaccount:kick-system:kick" }, true, ruleOwnAccount},
		"a namesake of KICK restarts":   {func(r *admission.Request) { r.UserInfo.Username = "system:serviceaccount:other:kick" }, false, ruleForeignRestart},
		"an exempt user restarts":       {func(r *admission.Request) { r.UserInfo.Username = "root" }, true, ruleExempt},
		"one of an exempt group does":   {func(r *admission.Request) { r.UserInfo.Groups = []string{"a", "on-call"} }, true, ruleExempt},
		"a user called like that group": {func(r *admission.Request) { r.UserInfo.Username = "on-call" }, false, ruleForeignRestart},
		"in another namespace":          {func(r *admission.Request) { r.Namespace = "other" }, true, ruleNotGuarded},
		"the label goes in the same write": {func(r *admission.Request) {
			bare := stamped(new("now"))
			bare.Labels = nil
			r.Object = encode(t, bare)
		}, false, ruleForeignRestart},
		"the label comes in the same write": {func(r *admission.Request) {
			bare := stamped(nil)
			bare.Labels = nil
			r.OldObject = encode(t, bare)
		}, false, ruleForeignRestart},
		"nothing changes": {func(r *admission.Request) { r.Object = r.OldObject }, true, ruleUnchanged},
		"a creation":      {func(r *admission.Request) { r.Operation = admissionv1.Create }, true, ""},
		"a subresource":   {func(r *admission.Request) { r.SubResource = "scale" }, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			request := restart(t)
			tc.edit(&request)
			response := g.Handle(t.Context(), request)
			if response.Allowed != tc.allowed || response.AuditAnnotations["rule"] != string(tc.rule) {
				t.Errorf("allowed %v by %q, want %v by %q: %v", response.Allowed, response.AuditAnnotations["rule"], tc.allowed, tc.rule, response.Result)
			}
			if !response.Allowed && (response.AuditAnnotations["policy"] != "nightly" || !strings.Contains(response.Result.Message, "KickPolicy nightly")) {
				t.Errorf("the policy is not named: %v, %v", response.AuditAnnotations, response.Result)
			}
		})
	}
}

func TestTheGuardLeavesKICKsOwnNamespaceAlone(t *testing.T) {
	policy := managing()
	policy.Namespace = "kick-system"
	request := restart(t)
	request.Namespace = "kick-system"
	if response := newGuard(t, interceptor.Funcs{}, policy).Handle(t.Context(), request); !response.Allowed {
		t.Errorf("refused: %v", response.Result)
	}
}

func TestTheGuardWarnsInOneLine(t *testing.T) {
	policy := managing()
	policy.Spec.Guard = v1alpha1.GuardWarn
	response := newGuard(t, interceptor.Funcs{}, policy).Handle(t.Context(), restart(t))
	if !response.Allowed || len(response.Warnings) != 1 || strings.Contains(response.Warnings[0], "\n") {
		t.Errorf("allowed %v with %q", response.Allowed, response.Warnings)
	}
}

// owned is what controllers set on a revision.
func owned(name string, uid types.UID) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: "shop", Name: name, Labels: map[string]string{"app": "web"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: uid, Controller: new(true)}},
	}
}

func replicaSet(name string, uid types.UID, stamp string) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{ObjectMeta: owned(name, uid), Spec: appsv1.ReplicaSetSpec{Selector: selector, Template: templateWith(&stamp)}}
}

func controllerRevision(name string, uid types.UID, data string) *appsv1.ControllerRevision {
	return &appsv1.ControllerRevision{ObjectMeta: owned(name, uid), Data: runtime.RawExtension{Raw: []byte(data)}}
}

func patchOf(stamp string) string {
	return `{"spec": {"template": {"$patch": "replace", "metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "` + stamp + `"}}}}}`
}

func TestAWorkloadMayGoBackToItsOwnRevisionsOnly(t *testing.T) {
	g := newGuard(t, interceptor.Funcs{}, managing(),
		replicaSet("web-1", "u-1", "mine"), replicaSet("web-2", "u-2", "another's"),
		controllerRevision("web-a", "u-1", patchOf("mine")), controllerRevision("web-b", "u-2", patchOf("another's")),
		controllerRevision("web-c", "u-1", `{"spec": {"template": 7}}`), controllerRevision("web-d", "u-1", `{"metadata": null}`),
	)
	builders := map[string]func(*string) client.Object{
		"Deployment":  func(stamp *string) client.Object { return stamped(stamp) },
		"StatefulSet": func(stamp *string) client.Object { return statefulSetWith(stamp) },
		"DaemonSet":   func(stamp *string) client.Object { return daemonSetWith(stamp) },
	}
	for kind, build := range builders {
		for value, allowed := range map[string]bool{"mine": true, "another's": false, "nobody's": false} {
			t.Run(kind+", "+value, func(t *testing.T) {
				response := g.Handle(t.Context(), update(t, build(new("now")), build(&value)))
				if response.Allowed != allowed {
					t.Errorf("allowed %v: %v", response.Allowed, response.Result)
				}
			})
		}
	}
}

// Nothing is asked of the API server where the verdict does not depend on it.
func TestHistoryIsReadOnlyWhenTheVerdictDependsOnIt(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*admission.Request)
		want int
	}{
		"a foreign restart": {func(*admission.Request) {}, 1},
		"an exempt restart": {func(r *admission.Request) { r.UserInfo.Username = "root" }, 0},
		"an unmanaged one":  {func(r *admission.Request) { r.Namespace = "other" }, 0},
		"a removal":         {func(r *admission.Request) { r.Object, r.OldObject = r.OldObject, r.Object }, 0},
		"anything else":     {func(r *admission.Request) { r.Object = r.OldObject }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			reads := 0
			g := newGuard(t, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
				if _, policies := list.(*v1alpha1.KickPolicyList); !policies {
					reads++
				}
				return c.List(ctx, list, o...)
			}}, managing())
			request := restart(t)
			tc.edit(&request)
			if g.Handle(t.Context(), request); reads != tc.want {
				t.Errorf("%d reads, want %d", reads, tc.want)
			}
		})
	}
}

// What cannot be judged is refused, and said to be no verdict.
func TestTheGuardRefusesWhatItCannotJudge(t *testing.T) {
	broken := errors.New("no API server")
	for name, fails := range map[string]func(client.ObjectList) bool{
		"policies cannot be read":  func(list client.ObjectList) bool { _, is := list.(*v1alpha1.KickPolicyList); return is },
		"revisions cannot be read": func(list client.ObjectList) bool { _, is := list.(*appsv1.ReplicaSetList); return is },
	} {
		t.Run(name, func(t *testing.T) {
			g := newGuard(t, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
				if fails(list) {
					return broken
				}
				return c.List(ctx, list, o...)
			}}, managing())
			response := g.Handle(t.Context(), restart(t))
			if response.Allowed || response.Result.Code != http.StatusInternalServerError || !strings.Contains(response.Result.Message, broken.Error()) {
				t.Errorf("allowed %v, %v", response.Allowed, response.Result)
			}
		})
	}
}

// malformed are objects that no API server sends.
var malformed = map[string]string{
	"nothing":                    ``,
	"no JSON":                    `{`,
	"a list":                     `[]`,
	"text":                       `"web"`,
	"another kind":               `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}}`,
	"a spec of text":             `{"apiVersion": "apps/v1", "kind": "Deployment", "spec": "x"}`,
	"annotations that are lists": `{"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": {"metadata": {"annotations": []}}}}`,
	"a value that is a number":   `{"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": 1}}}}}`,
}

func TestMalformedObjectsAreABadRequestAndNoPanic(t *testing.T) {
	g := newGuard(t, interceptor.Funcs{}, managing())
	for name, text := range malformed {
		for _, old := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				request := restart(t)
				if old {
					request.OldObject = runtime.RawExtension{Raw: []byte(text)}
				} else {
					request.Object = runtime.RawExtension{Raw: []byte(text)}
				}
				if response := g.Handle(t.Context(), request); response.Allowed || response.Result.Code != http.StatusBadRequest {
					t.Errorf("allowed %v, %v", response.Allowed, response.Result)
				}
			})
		}
	}
	t.Run("a kind KICK does not know", func(t *testing.T) {
		request := restart(t)
		request.Kind.Kind = "Job"
		if response := g.Handle(t.Context(), request); response.Allowed || response.Result.Code != http.StatusBadRequest {
			t.Errorf("allowed %v, %v", response.Allowed, response.Result)
		}
	})
	for name, text := range map[string]string{
		"no spec":     `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}`,
		"null":        `null`,
		"a null spec": `{"apiVersion": "apps/v1", "kind": "Deployment", "spec": null}`,
	} {
		t.Run(name+" is no fault", func(t *testing.T) {
			request := restart(t)
			request.Object = runtime.RawExtension{Raw: []byte(text)}
			request.OldObject = request.Object
			if response := g.Handle(t.Context(), request); !response.Allowed {
				t.Errorf("refused: %v", response.Result)
			}
		})
	}
}

// Restarts by hand come in numbers, such as from a script, and what each of them costs the API server is what would keep
// their answers waiting.
func TestTheGuardReadsNoHistoryForARestartThatIsMadeNow(t *testing.T) {
	lists := 0
	g := newGuard(t, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, ok := list.(*appsv1.ReplicaSetList); ok {
				lists++
			}
			return c.List(ctx, list, options...)
		},
	}, managing())
	for _, tc := range []struct {
		at   time.Time
		want int
	}{{noon, 0}, {noon.Add(-time.Hour), 1}} {
		lists = 0
		response := g.Handle(t.Context(), update(t, stamped(nil), stamped(new(tc.at.Format(time.RFC3339)))))
		if response.Allowed || lists != tc.want {
			t.Errorf("a restart at %s at noon is allowed: %v, with %d lists of ReplicaSets, want %d", tc.at, response.Allowed, lists, tc.want)
		}
	}
}
