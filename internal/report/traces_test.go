package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kick-dev/kick/api/v1alpha1"
)

var noon = time.Date(2026, 8, 6, 12, 0, 0, 0, time.UTC)

// at is so many seconds after noon.
func at(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }

// micro is what a status holds of an instant.
func micro(seconds float64) metav1.MicroTime {
	return metav1.NewMicroTime(at(seconds).Truncate(time.Microsecond))
}

// story is a request whose status is stored from time to time, and the traces that are told of it.
type story struct {
	t        *testing.T
	exporter *tracetest.InMemoryExporter
	traces   *Traces
	request  *v1alpha1.KickRequest
}

func newStory(t *testing.T) *story {
	t.Helper()
	exporter := tracetest.NewInMemoryExporter()
	return &story{
		t: t, exporter: exporter, traces: NewTraces(sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))),
		request: &v1alpha1.KickRequest{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "deployment-web", UID: "u1"},
			Spec:       v1alpha1.KickRequestSpec{TargetRef: v1alpha1.TargetRef{Kind: v1alpha1.Deployment, Name: "web"}},
		},
	}
}

// caused says what the request is about: Secrets by name and when they changed.
func (s *story) caused(changes map[string]float64) *story {
	s.request.Status.Causes = nil
	for name, changed := range changes {
		s.request.Status.Causes = append(s.request.Status.Causes,
			v1alpha1.SourceChange{Kind: v1alpha1.Secret, Name: name, ChangedAt: micro(changed)})
	}
	slices.SortFunc(s.request.Status.Causes, func(a, b v1alpha1.SourceChange) int { return b.ChangedAt.Compare(a.ChangedAt.Time) })
	return s
}

// is stores a state at an instant.
func (s *story) is(seconds float64, phase v1alpha1.Phase, reason string) *story {
	old := s.request.DeepCopy()
	status := &s.request.Status
	status.Phase = phase
	status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Reason: reason, Message: "because of " + reason}}
	status.CompletedAt = nil
	if phase.Terminal() {
		ended := micro(seconds)
		status.CompletedAt = &ended
	}
	s.traces.Moved(old, s.request.DeepCopy(), at(seconds))
	return s
}

// stamped decides a restart.
func (s *story) stamped(seconds float64) *story {
	s.request.Status.CurrentRollout = &v1alpha1.Rollout{Stamp: fmt.Sprintf("stamp of %g", seconds), StartedAt: micro(seconds)}
	return s.is(seconds, v1alpha1.PhaseExecuting, v1alpha1.ReasonStamping)
}

// rollingOut sees the stamp on the template, which is when the rollout begins.
func (s *story) rollingOut(seconds float64) *story {
	s.request.Status.CurrentRollout.StartedAt = micro(seconds)
	return s.is(seconds, v1alpha1.PhaseExecuting, v1alpha1.ReasonRollingOut)
}

func (s *story) succeeded(seconds float64) *story {
	s.request.Status.CurrentRollout.Revision = "web-2"
	return s.is(seconds, v1alpha1.PhaseSucceeded, v1alpha1.ReasonSucceeded)
}

// told draws the spans, children below their parents, with the seconds after noon at which they began and ended.
func (s *story) told() string {
	spans := s.exporter.GetSpans()
	slices.SortStableFunc(spans, func(a, b tracetest.SpanStub) int {
		return cmp.Or(a.StartTime.Compare(b.StartTime), a.EndTime.Compare(b.EndTime))
	})
	var text strings.Builder
	var draw func(parent trace.SpanID, indent string)
	draw = func(parent trace.SpanID, indent string) {
		for _, span := range spans {
			if span.Parent.SpanID() != parent {
				continue
			}
			fmt.Fprintf(&text, "%s%s %g-%g", indent, span.Name, span.StartTime.Sub(noon).Seconds(), span.EndTime.Sub(noon).Seconds())
			if span.Status.Code == codes.Error {
				fmt.Fprintf(&text, " Error: %s", span.Status.Description)
			}
			text.WriteString("\n")
			draw(span.SpanContext.SpanID(), indent+"  ")
		}
	}
	draw(trace.SpanID{}, "")
	return text.String()
}

func (s *story) expect(lines ...string) {
	s.t.Helper()
	var want string
	if len(lines) > 0 {
		want = strings.Join(lines, "\n") + "\n"
	}
	if diff := gocmp.Diff(want, s.told()); diff != "" {
		s.t.Errorf("(-want +got):\n%s", diff)
	}
	if left := len(s.traces.open); left != 0 && s.request.Status.Phase.Terminal() {
		s.t.Errorf("%d requests are remembered after the end", left)
	}
}

const (
	pending = v1alpha1.PhasePending
	gate    = v1alpha1.PhaseWaitingForGate
	running = v1alpha1.PhaseExecuting
)

func TestATraceForEachAnswer(t *testing.T) {
	for name, tc := range map[string]struct {
		tell func(*story)
		want []string
	}{
		"a restart": {
			func(s *story) { s.caused(map[string]float64{"db": 0}).stamped(1).rollingOut(1.5).succeeded(10) },
			[]string{"kick restart 0-10", "  held back 0-1.5", "    Stamping 1-1.5", "  rollout 1.5-10"},
		},
		"a restart that waited, from the first of the changes on": {
			func(s *story) {
				s.caused(map[string]float64{"db": 0, "api": 4}).
					is(1, gate, v1alpha1.ReasonQuietPeriod).is(14, gate, v1alpha1.ReasonOutsideSchedule).
					is(60, v1alpha1.PhaseWaitingForApplicationSync, v1alpha1.ReasonSyncInProgress).
					stamped(65).rollingOut(66).succeeded(70)
			},
			[]string{
				"kick restart 0-70", "  held back 0-66", "    QuietPeriod 1-14", "    OutsideSchedule 14-60", "    SyncInProgress 60-65",
				"    Stamping 65-66", "  rollout 66-70",
			},
		},
		"a state that is stored again is one wait": {
			func(s *story) {
				s.caused(map[string]float64{"db": 0}).is(1, gate, v1alpha1.ReasonDryRun).is(5, gate, v1alpha1.ReasonDryRun).
					stamped(9).rollingOut(9).succeeded(10)
			},
			[]string{"kick restart 0-10", "  held back 0-9", "    DryRun 1-9", "  rollout 9-10"},
		},
		"what holds up a rollout is part of it": {
			func(s *story) {
				s.caused(map[string]float64{"db": 0}).stamped(1).rollingOut(1).is(5, running, v1alpha1.ReasonPaused).
					is(8, running, v1alpha1.ReasonRollingOut).succeeded(10)
			},
			[]string{"kick restart 0-10", "  held back 0-1", "  rollout 1-10", "    Paused 5-8"},
		},
		"a restart that was refused for a while": {
			func(s *story) {
				s.caused(map[string]float64{"db": 0}).stamped(1).is(2, running, v1alpha1.ReasonRestartDenied).
					rollingOut(62).succeeded(70)
			},
			[]string{"kick restart 0-70", "  held back 0-62", "    Stamping 1-2", "    RestartDenied 2-62", "  rollout 62-70"},
		},
		"a change during a restart waited for that": {
			func(s *story) {
				s.caused(map[string]float64{"db": 0}).stamped(1).rollingOut(1)
				s.caused(map[string]float64{"db": 4}).stamped(8).rollingOut(8).succeeded(12)
			},
			[]string{"kick restart 4-12", "  held back 4-8", "    RollingOut 4-8", "  rollout 8-12"},
		},
		"a restart that failed": {
			func(s *story) {
				s.caused(map[string]float64{"db": 0}).stamped(1).rollingOut(1).
					is(600, v1alpha1.PhaseFailed, v1alpha1.ReasonRolloutFailed)
			},
			[]string{"kick restart 0-600 Error: because of RolloutFailed", "  held back 0-1", "  rollout 1-600"},
		},
		"Pods that became fresh without a restart": {
			func(s *story) {
				s.caused(map[string]float64{"db": 0}).is(1, gate, v1alpha1.ReasonOutsideSchedule).
					is(30, v1alpha1.PhaseNoLongerRequired, v1alpha1.ReasonAlreadyFresh)
			},
			[]string{"kick restart 0-30", "  held back 0-30", "    OutsideSchedule 1-30"},
		},
		"Pods that became fresh without a restart, after one": {
			func(s *story) {
				s.caused(map[string]float64{"db": 0}).stamped(1).rollingOut(1).succeeded(5)
				s.exporter.Reset()
				s.caused(map[string]float64{"db": 20}).is(21, gate, v1alpha1.ReasonMinInterval).
					is(30, v1alpha1.PhaseNoLongerRequired, v1alpha1.ReasonAlreadyFresh)
			},
			[]string{"kick restart 20-30", "  held back 20-30", "    MinInterval 21-30"},
		},
		"Pods found fresh at first sight": {
			func(s *story) {
				s.caused(map[string]float64{"db": -3600}).is(1, v1alpha1.PhaseNoLongerRequired, v1alpha1.ReasonAlreadyFresh)
			}, nil,
		},
		"Pods found fresh once the sources were read": {
			func(s *story) {
				s.caused(map[string]float64{"db": -3600}).is(1, pending, v1alpha1.ReasonProgressing).
					is(2, v1alpha1.PhaseNoLongerRequired, v1alpha1.ReasonAlreadyFresh)
			}, nil,
		},
		"an older change that came into scope and was found fresh": {
			func(s *story) {
				s.caused(map[string]float64{"db": 0}).stamped(1).rollingOut(1).succeeded(5)
				s.exporter.Reset()
				s.caused(map[string]float64{"old": -3600}).is(30, v1alpha1.PhaseNoLongerRequired, v1alpha1.ReasonAlreadyFresh)
			}, nil,
		},
		"a person who asks for a restart, by a clock that is ahead": {
			func(s *story) {
				s.request.Status.Causes = []v1alpha1.SourceChange{{Kind: v1alpha1.Manual, Name: "alice", ChangedAt: micro(60)}}
				s.stamped(1).rollingOut(2).succeeded(5)
			},
			[]string{"kick restart 2-5", "  held back 2-2", "  rollout 2-5"},
		},
		"a person who asks by a clock that is ahead, and Pods that became fresh": {
			func(s *story) {
				s.request.Status.Causes = []v1alpha1.SourceChange{{Kind: v1alpha1.Manual, Name: "alice", ChangedAt: micro(60)}}
				s.is(1, gate, v1alpha1.ReasonOutsideSchedule).is(5, v1alpha1.PhaseNoLongerRequired, v1alpha1.ReasonAlreadyFresh)
			},
			[]string{"kick restart 5-5", "  held back 5-5"},
		},
		"a clock that was set back during the rollout": {
			func(s *story) { s.caused(map[string]float64{"db": 0}).stamped(1).rollingOut(12).succeeded(10) },
			[]string{"kick restart 0-10", "  held back 0-10", "    Stamping 1-10", "  rollout 10-10"},
		},
		"waits end where the dates of the status begin": {
			func(s *story) {
				s.caused(map[string]float64{"db": 0}).stamped(1.0000004).rollingOut(1.5000006).succeeded(10)
			},
			[]string{"kick restart 0-10", "  held back 0-1.5", "    Stamping 1-1.5", "  rollout 1.5-10"},
		},
		"a request whose waits nobody remembers": {
			func(s *story) {
				s.caused(map[string]float64{"db": 0}).is(1, gate, v1alpha1.ReasonOutsideSchedule)
				s.traces.Forget(s.request) // As after a restart of KICK.
				s.is(30, v1alpha1.PhaseNoLongerRequired, v1alpha1.ReasonAlreadyFresh)
			},
			[]string{"kick restart 0-30", "  held back 0-30"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			tc.tell(s)
			s.expect(tc.want...)
		})
	}
}

func TestATraceNamesWhatItIsAbout(t *testing.T) {
	s := newStory(t).caused(map[string]float64{"db": 0})
	status := &s.request.Status
	status.Causes[0].Keys = []string{"password"}
	status.Causes = append(status.Causes, v1alpha1.SourceChange{Kind: v1alpha1.Manual, Name: "alice", ChangedAt: micro(-1)})
	status.CausesOmitted = 3
	status.Owner = &v1alpha1.Owner{Provider: v1alpha1.ProviderFlux, Kind: "Kustomization", Namespace: "flux-system", Name: "apps"}
	s.is(1, gate, v1alpha1.ReasonQuietPeriod).stamped(2).rollingOut(2).succeeded(10)

	spans := map[string]tracetest.SpanStub{}
	for _, span := range s.exporter.GetSpans() {
		spans[span.Name] = span
	}
	want := attribute.NewSet(
		semconv.K8SNamespaceName("shop"), semconv.K8SDeploymentName("web"), attributeRequest.String("deployment-web"),
		attributePhase.String("Succeeded"), attributeReason.String("Succeeded"), attributeStamp.String("stamp of 2"),
		attributeRevision.String("web-2"), attributeOwnerProvider.String("Flux"), attributeOwnerKind.String("Kustomization"),
		attributeOwnerNamespace.String("flux-system"), attributeOwnerName.String("apps"), attributeCausesOmitted.Int(3),
	)
	root := spans[spanRestart]
	if got := attribute.NewSet(root.Attributes...); !got.Equals(&want) {
		t.Errorf("the attributes are %v, want %v", root.Attributes, want.ToSlice())
	}
	var events []string
	for _, event := range root.Events {
		events = append(events, fmt.Sprintf("%s %g %v", event.Name, event.Time.Sub(noon).Seconds(), event.Attributes))
	}
	wantEvents := []string{
		fmt.Sprintf("source changed 0 %v", []attribute.KeyValue{
			attributeSourceKind.String("Secret"), attributeSourceName.String("db"), attributeSourceKeys.StringSlice([]string{"password"}),
		}),
		fmt.Sprintf("source changed -1 %v", []attribute.KeyValue{attributeSourceKind.String("Manual"), attributeSourceName.String("alice")}),
	}
	if diff := gocmp.Diff(wantEvents, events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	wait := attribute.NewSet(attributePhase.String("WaitingForGate"), attributeReason.String("QuietPeriod"))
	if got := attribute.NewSet(spans["QuietPeriod"].Attributes...); !got.Equals(&wait) {
		t.Errorf("the attributes of the wait are %v", spans["QuietPeriod"].Attributes)
	}
	for name, span := range spans {
		if span.SpanContext.TraceID() != root.SpanContext.TraceID() {
			t.Errorf("%s is of another trace", name)
		}
	}
}

func TestEachKindOfWorkloadHasItsAttribute(t *testing.T) {
	for kind, want := range map[v1alpha1.WorkloadKind]attribute.KeyValue{
		v1alpha1.Deployment: semconv.K8SDeploymentName("web"), v1alpha1.StatefulSet: semconv.K8SStatefulSetName("web"),
		v1alpha1.DaemonSet: semconv.K8SDaemonSetName("web"),
	} {
		s := newStory(t).caused(map[string]float64{"db": 0})
		s.request.Spec.TargetRef.Kind = kind
		s.stamped(1).rollingOut(1).succeeded(2)
		root := s.exporter.GetSpans()[len(s.exporter.GetSpans())-1]
		if !slices.Contains(root.Attributes, want) {
			t.Errorf("%s: %v", kind, root.Attributes)
		}
	}
}

func TestOfManyWaitsTheLatestAreTold(t *testing.T) {
	s := newStory(t).caused(map[string]float64{"db": 0})
	const states = maxStates + 10
	for i := range states {
		s.is(float64(i), gate, []string{v1alpha1.ReasonMissingSource, v1alpha1.ReasonOutsideSchedule}[i%2])
	}
	if got := len(s.traces.open["u1"].states); got != maxStates {
		t.Errorf("%d states are remembered", got)
	}
	s.is(states, v1alpha1.PhaseNoLongerRequired, v1alpha1.ReasonAlreadyFresh)
	spans := s.exporter.GetSpans()
	if got := len(spans); got != maxStates+2 {
		t.Errorf("%d spans, want one for each state, and two", got)
	}
	if first := spans[1]; !first.StartTime.Equal(at(10)) {
		t.Errorf("the first wait that is told began at %s", first.StartTime)
	}
	if root := spans[len(spans)-1]; !slices.Contains(root.Attributes, attributeWaitsOmitted.Int(10)) {
		t.Errorf("nothing says that waits are missing: %v", root.Attributes)
	}
}

func TestARequestThatIsGoneIsForgotten(t *testing.T) {
	s := newStory(t).caused(map[string]float64{"db": 0}).is(1, gate, v1alpha1.ReasonQuietPeriod)
	s.traces.Forget(s.request)
	if len(s.traces.open) != 0 {
		t.Error("it is remembered")
	}
	s.expect()
}

func TestNobodyIsToldWithoutTraces(t *testing.T) {
	var off *Traces
	request := newStory(t).request
	off.Moved(request, request, noon)
	off.Forget(request)
}
