package controllers

import (
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/kick-dev/kick/api/v1alpha1"
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
