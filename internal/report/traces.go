package report

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kick-dev/kick/api/v1alpha1"
)

// Names of spans and of their events. The spans of what a request waits for are named by the reason.
const (
	spanRestart        = "kick restart"
	spanHeldBack       = "held back"
	spanRollout        = "rollout"
	eventSourceChanged = "source changed"
)

// Attributes that no semantic convention of OpenTelemetry has a name for.
const (
	attributeRequest        = attribute.Key("kick.request")
	attributePhase          = attribute.Key("kick.phase")
	attributeReason         = attribute.Key("kick.reason")
	attributeStamp          = attribute.Key("kick.stamp")
	attributeRevision       = attribute.Key("kick.revision")
	attributeOwnerProvider  = attribute.Key("kick.owner.provider")
	attributeOwnerKind      = attribute.Key("kick.owner.kind")
	attributeOwnerNamespace = attribute.Key("kick.owner.namespace")
	attributeOwnerName      = attribute.Key("kick.owner.name")
	attributeCausesOmitted  = attribute.Key("kick.causes.omitted")
	attributeWaitsOmitted   = attribute.Key("kick.waits.omitted")
	attributeSourceKind     = attribute.Key("kick.source.kind")
	attributeSourceName     = attribute.Key("kick.source.name")
	attributeSourceKeys     = attribute.Key("kick.source.keys")
)

// maxStates bounds how many states are remembered of one request. Of more, the latest are told.
const maxStates = 64

// Traces tells of each answered change how long the answer took, and why: one trace for each end of a request, made when that
// is stored. Its dates are those of the status. Only what a request waited for in between is remembered, from one stored state
// to the next, and is lost with the process. A nil Traces remembers and tells nothing.
type Traces struct {
	tracer trace.Tracer

	mu   sync.Mutex
	open map[types.UID]*history
}

// NewTraces tells traces to a provider, which must not block.
func NewTraces(provider trace.TracerProvider) *Traces {
	return &Traces{tracer: provider.Tracer("github.com/kick-dev/kick"), open: map[types.UID]*history{}}
}

// history is what is remembered of a request that has not ended.
type history struct {
	states  []state
	omitted int
}

// state is one that a request was in, until the next, or until it ended.
type state struct {
	phase        v1alpha1.Phase
	reason       string
	since, until time.Time
}

// Moved takes note of a stored status, and tells the trace if the request has ended with it.
func (t *Traces) Moved(old, stored *v1alpha1.KickRequest, now time.Time) {
	if t == nil {
		return
	}
	phase := stored.Status.Phase
	ready := meta.FindStatusCondition(stored.Status.Conditions, v1alpha1.ConditionReady)
	if !phase.Terminal() {
		t.note(stored.UID, state{phase: phase, reason: ready.Reason, since: now.Truncate(time.Microsecond)}) // As the status has it.
		return
	}
	passed := t.take(stored.UID).until(stored.Status.CompletedAt.Time)
	if phase == v1alpha1.PhaseNoLongerRequired && !heldBack(old.Status.Phase, passed.states) {
		return // Found fresh at first sight: nothing has happened.
	}
	t.tell(newAnswer(stored, ready, passed))
}

// Forget drops what is remembered of a request that is gone.
func (t *Traces) Forget(request *v1alpha1.KickRequest) {
	if t != nil {
		t.take(request.UID)
	}
}

// note remembers the state that a request is in, unless it is so already.
func (t *Traces) note(request types.UID, now state) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.open[request]
	if known == nil {
		known = &history{}
		t.open[request] = known
	}
	if last := len(known.states) - 1; last >= 0 && known.states[last].phase == now.phase && known.states[last].reason == now.reason {
		return
	}
	known.states = append(known.states, now)
	if over := len(known.states) - maxStates; over > 0 {
		known.states = slices.Delete(known.states, 0, over)
		known.omitted += over
	}
}

// take returns what is remembered of a request, and drops it.
func (t *Traces) take(request types.UID) history {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.open[request]
	delete(t.open, request)
	if known == nil {
		return history{}
	}
	return *known
}

// until says when each state ended.
func (h history) until(end time.Time) history {
	for i := len(h.states) - 1; i >= 0; i-- {
		h.states[i].until, end = end, h.states[i].since
	}
	return h
}

// heldBack tells whether a request waited for anything before it ended, beside the reading of its sources. The phase before the
// end is known even where nothing is remembered.
func heldBack(before v1alpha1.Phase, states []state) bool {
	waits := func(phase v1alpha1.Phase) bool {
		return phase != "" && phase != v1alpha1.PhasePending && !phase.Terminal()
	}
	return waits(before) || slices.ContainsFunc(states, func(s state) bool { return waits(s.phase) })
}

// answer is a request that has ended, with the dates that are told.
type answer struct {
	request *v1alpha1.KickRequest
	message string
	// changed is when the first of the changes came, stamped when the restart was made, and ended when the answer was complete.
	// Without a restart nothing comes after the stamp. No date is before the one that precedes it, though a restart that a
	// person asks for may be dated ahead.
	changed, stamped, ended time.Time
	// restart is the rollout that this end is about, nil if there was none.
	restart    *v1alpha1.Rollout
	states     []state
	attributes []attribute.KeyValue
}

func newAnswer(request *v1alpha1.KickRequest, ready *metav1.Condition, passed history) answer {
	status := &request.Status
	a := answer{request: request, message: ready.Message, ended: status.CompletedAt.Time, states: passed.states}
	a.changed = a.ended
	for _, cause := range status.Causes {
		a.changed = earlier(a.changed, cause.ChangedAt.Time)
	}
	a.stamped = a.ended
	if status.Phase != v1alpha1.PhaseNoLongerRequired { // Its rollout, if it has one, is that of an end before.
		a.restart = status.CurrentRollout
	}
	if a.restart != nil {
		a.stamped = earlier(a.ended, a.restart.StartedAt.Time)
		a.changed = earlier(a.changed, a.stamped)
	}
	a.attributes = attributesOf(request, ready.Reason, a.restart)
	if passed.omitted > 0 {
		a.attributes = append(a.attributes, attributeWaitsOmitted.Int(passed.omitted))
	}
	return a
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// attributesOf names what the trace is about and how it ended.
func attributesOf(request *v1alpha1.KickRequest, reason string, restart *v1alpha1.Rollout) []attribute.KeyValue {
	status, target := &request.Status, request.Spec.TargetRef
	attributes := []attribute.KeyValue{
		semconv.K8SNamespaceName(request.Namespace),
		// The convention has such a name for each of the kinds, such as k8s.deployment.name.
		attribute.String("k8s."+strings.ToLower(string(target.Kind))+".name", target.Name),
		attributeRequest.String(request.Name),
		attributePhase.String(string(status.Phase)),
		attributeReason.String(reason),
	}
	if restart != nil {
		attributes = append(attributes, attributeStamp.String(restart.Stamp))
		if restart.Revision != "" {
			attributes = append(attributes, attributeRevision.String(restart.Revision))
		}
	}
	if owner := status.Owner; owner != nil {
		attributes = append(attributes,
			attributeOwnerProvider.String(string(owner.Provider)), attributeOwnerKind.String(owner.Kind),
			attributeOwnerNamespace.String(owner.Namespace), attributeOwnerName.String(owner.Name))
	}
	if status.CausesOmitted > 0 {
		attributes = append(attributes, attributeCausesOmitted.Int(int(status.CausesOmitted)))
	}
	return attributes
}

// tell makes the spans of an answer.
func (t *Traces) tell(a answer) {
	ctx, root := t.tracer.Start(context.Background(), spanRestart,
		trace.WithTimestamp(a.changed), trace.WithAttributes(a.attributes...))
	for _, cause := range a.request.Status.Causes {
		attributes := []attribute.KeyValue{attributeSourceKind.String(string(cause.Kind)), attributeSourceName.String(cause.Name)}
		if len(cause.Keys) > 0 {
			attributes = append(attributes, attributeSourceKeys.StringSlice(cause.Keys))
		}
		root.AddEvent(eventSourceChanged, trace.WithTimestamp(cause.ChangedAt.Time), trace.WithAttributes(attributes...))
	}
	t.waits(t.span(ctx, spanHeldBack, a.changed, a.stamped), a.states, a.changed, a.stamped)
	if a.restart != nil {
		// That Pods are being replaced is what the span of the rollout says.
		others := slices.DeleteFunc(slices.Clone(a.states), func(s state) bool { return s.reason == v1alpha1.ReasonRollingOut })
		t.waits(t.span(ctx, spanRollout, a.stamped, a.ended), others, a.stamped, a.ended)
	}
	if a.request.Status.Phase == v1alpha1.PhaseFailed {
		root.SetStatus(codes.Error, a.message)
	}
	root.End(trace.WithTimestamp(a.ended))
}

// waits makes a span of each state, as far as it lies between two instants.
func (t *Traces) waits(ctx context.Context, states []state, from, to time.Time) {
	for _, s := range states {
		begin, end := later(from, s.since), earlier(to, s.until)
		if begin.Before(end) {
			t.span(ctx, s.reason, begin, end, attributePhase.String(string(s.phase)), attributeReason.String(s.reason))
		}
	}
}

// span makes a span that is over, and returns the context of its children.
func (t *Traces) span(ctx context.Context, name string, from, to time.Time, attributes ...attribute.KeyValue) context.Context {
	ctx, span := t.tracer.Start(ctx, name, trace.WithTimestamp(from), trace.WithAttributes(attributes...))
	span.End(trace.WithTimestamp(to))
	return ctx
}
