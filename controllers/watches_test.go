package controllers

import (
	"context"
	"errors"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/ledger"
	"github.com/kick-dev/kick/internal/cluster/source"
	"github.com/kick-dev/kick/internal/cluster/workload"
	"github.com/kick-dev/kick/internal/core/request"
	"github.com/kick-dev/kick/internal/report"
)

func TestWhatIsRememberedOfARequestGoesWithIt(t *testing.T) {
	exporter := tracetest.NewInMemoryExporter()
	traces := report.NewTraces(sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter)))
	s := &shell{options: Options{Traces: traces}, requests: newRequests(nil), attempts: newAttempts()}
	now := time.Date(2026, 8, 6, 12, 0, 0, 0, time.UTC)
	in := func(phase v1alpha1.Phase, reason string) *v1alpha1.KickRequest {
		ended := metav1.NewMicroTime(now.Add(time.Minute))
		return &v1alpha1.KickRequest{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "deployment-web", UID: "u1"},
			Spec:       v1alpha1.KickRequestSpec{TargetRef: v1alpha1.TargetRef{Kind: v1alpha1.Deployment, Name: "web"}},
			Status: v1alpha1.KickRequestStatus{
				Phase: phase, CompletedAt: &ended, Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Reason: reason}},
				Causes: []v1alpha1.SourceChange{{Kind: v1alpha1.Secret, Name: "db", ChangedAt: metav1.NewMicroTime(now)}},
			},
		}
	}
	waiting := in(v1alpha1.PhaseWaitingForGate, v1alpha1.ReasonOutsideSchedule)
	traces.Moved(&v1alpha1.KickRequest{}, waiting, now)
	s.attempts.setIssued(waiting, "stamp")

	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[workload.Key]())
	defer q.ShutDown()
	s.workloadOfRequest().Delete(t.Context(), event.TypedDeleteEvent[client.Object]{Object: waiting}, q)

	var known request.Facts
	if s.attempts.recall(waiting, &known); known.Issued != "" {
		t.Errorf("the stamp %q is remembered", known.Issued)
	}
	traces.Moved(waiting, in(v1alpha1.PhaseNoLongerRequired, v1alpha1.ReasonAlreadyFresh), now)
	for _, span := range exporter.GetSpans() {
		if span.Name == v1alpha1.ReasonOutsideSchedule {
			t.Errorf("a wait is remembered, from %s on", span.StartTime)
		}
	}
	if len(exporter.GetSpans()) == 0 {
		t.Error("there is no trace that could show a wait")
	}
}

func TestASourceIsObservedIfAnybodyConsumesIt(t *testing.T) {
	web := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "app", EnvFrom: []corev1.EnvFromSource{{
				SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "db"}},
			}},
		}}}}},
	}
	builder := fake.NewClientBuilder().WithObjects(web)
	for _, object := range workload.Objects() {
		builder = builder.WithIndex(object, workload.ReferenceIndex, workload.References)
	}
	works := builder.Build()
	fails := interceptor.NewClient(works, interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("no")
		},
	})
	secret := func(namespace, name, version string) *metav1.PartialObjectMetadata {
		object := source.Metadata(v1alpha1.Secret)
		object.Namespace, object.Name, object.ResourceVersion = namespace, name, version
		return object
	}
	for name, tc := range map[string]struct {
		cache           client.Reader
		namespace, name string
		goes            bool
		want            int
		wantAtStart     int
	}{
		"consumed":                             {works, "shop", "db", false, 1, 0},
		"not consumed":                         {works, "shop", "other", false, 0, 0},
		"consumed in another namespace":        {works, "bank", "db", false, 0, 0},
		"the key of the fingerprints":          {works, "kick-system", ledger.KeySecret, false, 1, 1},
		"not consumed, and it goes":            {works, "shop", "other", true, 1, 0},
		"whether it is consumed is not to say": {fails, "shop", "other", false, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := &shell{options: Options{Namespace: "kick-system"}, workloads: &workload.Client{Cache: tc.cache}}
			handler, old, next := s.sourceItself(v1alpha1.Secret), secret(tc.namespace, tc.name, "1"), secret(tc.namespace, tc.name, "2")
			for event, tell := range map[string]func(queue[source.Key]){
				"create": func(q queue[source.Key]) {
					handler.Create(t.Context(), event.TypedCreateEvent[client.Object]{Object: next}, q)
				},
				"update": func(q queue[source.Key]) {
					handler.Update(t.Context(), event.TypedUpdateEvent[client.Object]{ObjectOld: old, ObjectNew: next}, q)
				},
				"delete": func(q queue[source.Key]) {
					handler.Delete(t.Context(), event.TypedDeleteEvent[client.Object]{Object: next}, q)
				},
			} {
				if tc.goes != (event == "delete") {
					continue
				}
				if got := queued(tell); got != tc.want {
					t.Errorf("%s: %d keys queued, want %d", event, got, tc.want)
				}
			}
			got := queued(func(q queue[source.Key]) {
				handler.Create(t.Context(), event.TypedCreateEvent[client.Object]{Object: next, IsInInitialList: true}, q)
			})
			if got != tc.wantAtStart {
				t.Errorf("at the start: %d keys queued, want %d", got, tc.wantAtStart)
			}
		})
	}
}

// queued counts the keys that a handler queues.
func queued[key comparable](tell func(queue[key])) int {
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[key]())
	defer q.ShutDown()
	tell(q)
	return q.Len()
}

func TestNewcomersAreThoseThatComeAfterTheStart(t *testing.T) {
	handler := newcomers(onChange(func(_ context.Context, object client.Object) []string { return []string{object.GetName()} }, moved))
	old, next := source.Metadata(v1alpha1.Secret), source.Metadata(v1alpha1.Secret)
	next.ResourceVersion = "2"
	for name, tc := range map[string]struct {
		tell func(queue[string])
		want int
	}{
		"it was there": {func(q queue[string]) {
			handler.Create(t.Context(), event.TypedCreateEvent[client.Object]{Object: old, IsInInitialList: true}, q)
		}, 0},
		"it comes": {func(q queue[string]) {
			handler.Create(t.Context(), event.TypedCreateEvent[client.Object]{Object: old}, q)
		}, 1},
		"it moves": {func(q queue[string]) {
			handler.Update(t.Context(), event.TypedUpdateEvent[client.Object]{ObjectOld: old, ObjectNew: next}, q)
		}, 1},
		"it goes": {func(q queue[string]) {
			handler.Delete(t.Context(), event.TypedDeleteEvent[client.Object]{Object: old}, q)
		}, 1},
	} {
		if got := queued(tc.tell); got != tc.want {
			t.Errorf("%s: %d keys queued, want %d", name, got, tc.want)
		}
	}
}
