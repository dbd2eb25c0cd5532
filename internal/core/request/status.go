package request

import (
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/deps"
	"github.com/kick-dev/kick/internal/core/freshness"
)

// maxMessage bounds the message of a condition, in bytes.
const maxMessage = 1024

// open makes the request Pending about the given changes.
func (m *machine) open(changes freshness.Changes) {
	m.status.CompletedAt = nil
	m.setCauses(changes)
	m.record(v1alpha1.PhasePending, v1alpha1.ReasonProgressing, "a change was observed")
}

// wait records a state that is not terminal.
func (m *machine) wait(phase v1alpha1.Phase, reason, message string) Step {
	m.record(phase, reason, message)
	return Step{Status: m.status}
}

// waitWith records a state in which nothing is decided, about all changes that are open.
func (m *machine) waitWith(phase v1alpha1.Phase, reason, message string) Step {
	if open := Uncovered(&m.status, m.facts.Changes); len(open) > 0 {
		m.setCauses(open)
	}
	return m.wait(phase, reason, message)
}

// end records a terminal state, and what the Pods carry in it.
func (m *machine) end(phase v1alpha1.Phase, reason, message string) Step {
	m.status.CurrentRollout = m.finalRollout(phase, reason)
	completed := metav1.NewMicroTime(m.now)
	m.status.CompletedAt = &completed
	m.record(phase, reason, message)
	return Step{Status: m.status, RecheckAt: m.now.Add(m.settings.TTL)}
}

// finalRollout is the rollout that carries what was judged. After a failure it is the one that
// failed: its template is no older than any of the changes, or there would be another restart instead.
func (m *machine) finalRollout(phase v1alpha1.Phase, reason string) *v1alpha1.Rollout {
	current := m.status.CurrentRollout
	valid := current != nil && (current.Stamp == "" || current.Stamp == m.facts.Stamp)
	switch {
	case reason == v1alpha1.ReasonNotManaged && valid:
		return current
	case reason == v1alpha1.ReasonNotManaged:
		return nil // Nothing was judged, and a stamp that is not on the template covers nothing.
	}
	failed := phase == v1alpha1.PhaseFailed
	if !valid && !failed {
		current = &v1alpha1.Rollout{StartedAt: metav1.NewMicroTime(m.now)}
	}
	cover(current, m.facts.Changes.And(coverageOf(current).Changes))
	if revision := m.facts.Evidence.Revision; revision != nil && !failed {
		current.Revision = revision.Name
	}
	return current
}

func (m *machine) setCauses(changes freshness.Changes) {
	list, omitted := newest(changes, maxCauses)
	for i := range list {
		list[i].Keys = m.changedKeys(deps.Source{Kind: list[i].Kind, Name: list[i].Name}, list[i].ChangedAt.Time)
	}
	m.status.Causes, m.status.CausesOmitted = list, int32(omitted) //nolint:gosec // bounded by the size of a Pod template
}

// changedKeys lists the consumed keys of a source that changed since the last rollout, or with the last change if that
// rollout does not know the source.
func (m *machine) changedKeys(source deps.Source, changedAt time.Time) []string {
	covered, known := coverageOf(m.status.CurrentRollout).Changes[source]
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(m.facts.Keys[source])) {
		at := m.facts.Keys[source][key]
		if (known && at.After(covered)) || (!known && at.Equal(changedAt)) {
			keys = append(keys, key)
		}
	}
	return keys[:min(len(keys), maxKeys)]
}

// record sets phase and conditions.
func (m *machine) record(phase v1alpha1.Phase, reason, message string) {
	m.status.Phase = phase
	m.status.Gate = nil
	m.status.ObservedGeneration = m.facts.RequestGeneration
	if latest := m.facts.Changes.Latest(); !latest.IsZero() {
		change := metav1.NewMicroTime(latest)
		m.status.LatestObservedDependencyChange = &change
	}
	for _, condition := range Conditions(phase, reason) {
		condition.Message = cut(message, maxMessage)
		condition.ObservedGeneration = m.facts.RequestGeneration
		condition.LastTransitionTime = metav1.NewTime(m.now.Truncate(time.Second))
		meta.SetStatusCondition(&m.status.Conditions, condition)
	}
}

// Conditions are those of a request in this state, without message and time.
func Conditions(phase v1alpha1.Phase, reason string) []metav1.Condition {
	trio := trioOf(phase, reason)
	return []metav1.Condition{
		{Type: v1alpha1.ConditionReady, Status: trio.ready, Reason: reason},
		{Type: v1alpha1.ConditionReconciling, Status: trio.reconciling, Reason: reason},
		{Type: v1alpha1.ConditionStalled, Status: trio.stalled, Reason: reason},
		{Type: v1alpha1.ConditionRestarted, Status: restarted(phase), Reason: reason},
	}
}

// trio holds the values of Ready, Reconciling and Stalled: one of them is True in every state.
type trio struct{ ready, reconciling, stalled metav1.ConditionStatus }

// trioOf is the one place that says which states are good, which progress and which need a person.
func trioOf(phase v1alpha1.Phase, reason string) trio {
	good := trio{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionFalse}
	progressing := trio{metav1.ConditionFalse, metav1.ConditionTrue, metav1.ConditionFalse}
	stalled := trio{metav1.ConditionFalse, metav1.ConditionFalse, metav1.ConditionTrue}
	switch {
	case phase == v1alpha1.PhaseSucceeded || phase == v1alpha1.PhaseNoLongerRequired:
		return good
	case phase == v1alpha1.PhaseFailed || needsPerson[reason]:
		return stalled
	default:
		return progressing
	}
}

// needsPerson holds the reasons to wait that do not go away by themselves.
var needsPerson = map[string]bool{
	v1alpha1.ReasonRestartDenied:   true,
	v1alpha1.ReasonScheduleInvalid: true,
	v1alpha1.ReasonNeverOpens:      true,
	v1alpha1.ReasonMissingSource:   true,

	v1alpha1.ReasonConfigurationError:  true,
	v1alpha1.ReasonOwnerUnknown:        true,
	v1alpha1.ReasonMultipleOwners:      true,
	v1alpha1.ReasonProviderUnavailable: true,
	v1alpha1.ReasonProjectUnknown:      true,
}

func restarted(phase v1alpha1.Phase) metav1.ConditionStatus {
	switch phase {
	case v1alpha1.PhaseSucceeded:
		return metav1.ConditionTrue
	case v1alpha1.PhaseNoLongerRequired, v1alpha1.PhaseFailed:
		return metav1.ConditionFalse
	default:
		return metav1.ConditionUnknown
	}
}

// Restarting tells whether a request counts against the limits on concurrent restarts: its stamp is being written, or its
// rollout under way.
func Restarting(status *v1alpha1.KickRequestStatus) bool {
	if status.Phase != v1alpha1.PhaseExecuting {
		return false
	}
	ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
	return ready != nil && (ready.Reason == v1alpha1.ReasonStamping || ready.Reason == v1alpha1.ReasonRollingOut)
}

// Unsettled tells whether a restart is on record that is under way, or whose stamp the template, which carries the given one,
// does not carry. What became of it can then not be told from a cache.
func Unsettled(status *v1alpha1.KickRequestStatus, stamp string) bool {
	last := status.CurrentRollout
	return status.Phase == v1alpha1.PhaseExecuting || last != nil && last.Stamp != "" && last.Stamp != stamp
}

// cut shortens a text to at most limit bytes, at the boundary of a rune.
func cut(text string, limit int) string {
	const ellipsis = "…"
	if len(text) <= limit {
		return text
	}
	end := limit - len(ellipsis)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + ellipsis
}
