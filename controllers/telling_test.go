package controllers

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/source"
	"github.com/kick-dev/kick/internal/core/notify"
	"github.com/kick-dev/kick/internal/outbound"
	"github.com/kick-dev/kick/internal/report"
)

// story is a notification with its reconciler, a receiver, and a clock that the test sets.
type story struct {
	t          *testing.T
	now        time.Time
	reconciler *kickNotificationReconciler
	client     client.WithWatch
	refuse     error // of patches of requests

	mu     sync.Mutex
	status int
	ids    []string
}

var (
	notificationName = types.NamespacedName{Namespace: "shop", Name: "ops"}
	storyBegins      = time.Date(2026, 8, 6, 12, 0, 0, 0, time.UTC)
)

func newStory(t *testing.T, requests ...*v1alpha1.KickRequest) *story {
	t.Helper()
	s := &story{t: t, now: storyBegins.Add(time.Hour), status: http.StatusOK}
	receiver := httptest.NewServer(http.HandlerFunc(s.receive))
	t.Cleanup(receiver.Close)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	objects := []client.Object{
		&v1alpha1.KickNotification{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "ops", Generation: 1, CreationTimestamp: metav1.NewTime(storyBegins)},
			Spec: v1alpha1.KickNotificationSpec{
				Events:    []v1alpha1.NotificationEvent{v1alpha1.NotifySucceeded, v1alpha1.NotifyFailed},
				SecretRef: v1alpha1.NotificationSecret{Name: "hook"},
			},
		},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "hook", UID: "s", Labels: map[string]string{v1alpha1.NotificationSecretLabel: "true"}},
			Data:       map[string][]byte{"url": []byte(receiver.URL)},
		},
	}
	for _, request := range requests {
		objects = append(objects, request)
	}
	s.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&v1alpha1.KickNotification{}, &v1alpha1.KickRequest{}).
		WithInterceptorFuncs(interceptor.Funcs{Patch: func(
			ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption,
		) error {
			if _, ok := object.(*v1alpha1.KickRequest); ok && s.refuse != nil {
				return s.refuse
			}
			return c.Patch(ctx, object, patch, options...)
		}}).Build()
	s.restart()
	return s
}

// restart has another manager take over, which remembers nothing.
func (s *story) restart() {
	s.t.Helper()
	registered, err := report.NewMetrics(prometheus.NewRegistry())
	if err != nil {
		s.t.Fatal(err)
	}
	hosts, err := notify.ParseHosts([]string{"http://127.0.0.1:*"})
	if err != nil {
		s.t.Fatal(err)
	}
	s.reconciler = &kickNotificationReconciler{
		client: s.client, sources: &source.Reader{Cache: s.client, Live: s.client}, permitted: Notifying{Hosts: hosts},
		sender: outbound.New("kick/test"), tellings: newTellings(), metrics: registered,
		events: &report.Events{Recorder: events.NewFakeRecorder(100)}, now: func() time.Time { return s.now },
	}
}

func (s *story) receive(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids = append(s.ids, r.Header.Get("Idempotency-Key"))
	w.WriteHeader(s.status)
}

// answer sets what the receiver answers from now on.
func (s *story) answer(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

// attempts are the ids that came in so far.
func (s *story) attempts() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.ids)
}

// pass lets the time go by until the next look, and looks.
func (s *story) pass() error {
	s.t.Helper()
	result, err := s.reconciler.Reconcile(s.t.Context(), notificationName)
	s.now = s.now.Add(result.RequeueAfter)
	return err
}

func (s *story) mustPass() {
	s.t.Helper()
	if err := s.pass(); err != nil {
		s.t.Fatal(err)
	}
}

// ready is the condition Ready of the notification.
func (s *story) ready() metav1.Condition {
	s.t.Helper()
	present := &v1alpha1.KickNotification{}
	if err := s.client.Get(s.t.Context(), notificationName, present); err != nil {
		s.t.Fatal(err)
	}
	return *meta.FindStatusCondition(present.Status.Conditions, v1alpha1.ConditionReady)
}

// ended is a request that ended so long after the notification was created.
func ended(name string, after time.Duration) *v1alpha1.KickRequest {
	at := metav1.NewMicroTime(storyBegins.Add(after))
	return &v1alpha1.KickRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "deployment-" + name, UID: types.UID(name)},
		Spec:       v1alpha1.KickRequestSpec{TargetRef: v1alpha1.TargetRef{Kind: v1alpha1.Deployment, Name: name}},
		Status:     v1alpha1.KickRequestStatus{Phase: v1alpha1.PhaseSucceeded, CompletedAt: &at},
	}
}

// told expects the attempts, by the names of the requests.
func (s *story) told(want ...string) {
	s.t.Helper()
	var got []string
	for _, id := range s.attempts() {
		name, _, _ := strings.Cut(id, "-")
		got = append(got, name)
	}
	if !slices.Equal(got, want) {
		s.t.Errorf("attempts were about %v, want %v", got, want)
	}
}

func TestEndsAreToldInOrderAndOnce(t *testing.T) {
	s := newStory(t, ended("c", 3*time.Minute), ended("a", time.Minute), ended("b", 2*time.Minute), ended("before", -time.Second))
	s.mustPass()
	s.mustPass()
	s.restart()
	s.mustPass()
	s.told("a", "b", "c")
}

func TestAFailureIsTriedAgainAfterAPauseAndHoldsTheOrder(t *testing.T) {
	s := newStory(t, ended("a", time.Minute), ended("b", 2*time.Minute))
	s.answer(http.StatusInternalServerError)
	began := s.now
	s.mustPass()
	s.mustPass()
	s.mustPass()
	s.told("a", "a", "a")
	if waited := s.now.Sub(began); waited != 7*time.Second {
		t.Errorf("it waited %s, want 1 s, 2 s, 4 s", waited)
	}
	if ready := s.ready(); ready.Reason != v1alpha1.ReasonDeliveryFailing {
		t.Errorf("%+v", ready)
	}
	s.now = s.now.Add(-time.Second) // Woken by something else before the pause is over.
	s.mustPass()
	s.told("a", "a", "a")
	s.answer(http.StatusOK)
	s.mustPass()
	s.told("a", "a", "a", "a", "b")
	if ready := s.ready(); ready.Status != metav1.ConditionTrue {
		t.Errorf("%+v", ready)
	}
}

func TestWhatCouldNotBeToldOutlivesTheStatusAndTheManager(t *testing.T) {
	s := newStory(t, ended("a", time.Minute), ended("b", 2*time.Minute))
	s.answer(http.StatusBadGateway)
	s.mustPass()
	for _, name := range []string{"a", "b"} {
		request := ended(name, 0)
		if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(request), request); err != nil {
			t.Fatal(err)
		}
		request.Status = v1alpha1.KickRequestStatus{Phase: v1alpha1.PhasePending}
		if err := s.client.Status().Update(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
	s.answer(http.StatusOK)
	s.restart()
	s.mustPass()
	s.told("a", "a", "b")
}

func TestAnEndThatWasSeenIsToldThoughTheRequestIsOpenAgain(t *testing.T) {
	request := ended("a", time.Minute)
	end := *notify.End(request)
	request.Status = v1alpha1.KickRequestStatus{Phase: v1alpha1.PhasePending}
	s := newStory(t, request)
	s.reconciler.tellings.of(notificationName).see(request.UID, end)
	s.mustPass()
	s.mustPass()
	s.told("a")
}

func TestWhatTheReceiverRefusesIsGivenUpAndTheNextIsTold(t *testing.T) {
	s := newStory(t, ended("a", time.Minute), ended("b", 2*time.Minute))
	s.answer(http.StatusUnprocessableEntity)
	for range notify.MaxRefusals - 1 {
		s.mustPass()
	}
	s.told("a", "a", "a", "a")
	s.answer(http.StatusUnprocessableEntity)
	s.mustPass()
	s.told("a", "a", "a", "a", "a", "b")
	s.answer(http.StatusOK)
	s.mustPass()
	s.told("a", "a", "a", "a", "a", "b", "b")
}

func TestWhatIsTooOldIsGivenUp(t *testing.T) {
	s := newStory(t, ended("a", time.Minute), ended("b", 20*time.Hour))
	s.now = storyBegins.Add(notify.MaxAge + time.Hour)
	s.mustPass()
	s.told("b")
}

func TestWhatWasToldIsNotToldAgainBecauseItCannotBeRecorded(t *testing.T) {
	s := newStory(t, ended("a", time.Minute))
	s.refuse = errors.New("the API server is away")
	for range 3 {
		if err := s.pass(); err == nil {
			t.Error("no error")
		}
	}
	s.told("a")
	s.refuse = nil
	s.mustPass()
	s.restart()
	s.mustPass()
	s.told("a")
}

func TestAChangedSecretIsTriedAtOnce(t *testing.T) {
	s := newStory(t, ended("a", time.Minute))
	s.answer(http.StatusUnauthorized)
	for range 8 {
		s.mustPass()
	}
	count := len(s.attempts())
	s.now = s.now.Add(-time.Minute)
	s.mustPass()
	if len(s.attempts()) != count {
		t.Fatal("it did not wait")
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "hook"}}
	if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
		t.Fatal(err)
	}
	secret.Data["headers"] = []byte("Authorization: Bearer right")
	if err := s.client.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	s.answer(http.StatusOK)
	s.mustPass()
	if len(s.attempts()) != count+1 {
		t.Error("it waited on")
	}
}

func TestASecretThatIsPermittedByNameNeedsNoLabel(t *testing.T) {
	s := newStory(t, ended("a", time.Minute))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "hook"}}
	if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
		t.Fatal(err)
	}
	secret.Labels = nil
	if err := s.client.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	s.mustPass()
	s.told()
	if ready := s.ready(); ready.Reason != v1alpha1.ReasonSecretNotPermitted {
		t.Errorf("%+v", ready)
	}
	s.reconciler.permitted.Secrets = map[types.NamespacedName]bool{{Namespace: "shop", Name: "hook"}: true}
	s.mustPass()
	s.told("a")
}
