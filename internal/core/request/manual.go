package request

import (
	"maps"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/deps"
	"github.com/kick-dev/kick/internal/core/freshness"
	"github.com/kick-dev/kick/internal/core/gate"
)

// A restart that a person asks for is a source of its own: it changed when the restart was asked for, and every container
// reads it at its start.

// manualSource is the source that stands for the person who asks.
func manualSource(manual *v1alpha1.ManualRestart) deps.Source {
	return deps.Source{Kind: v1alpha1.Manual, Name: manual.RequestedBy}
}

// addManual adds the person who asks to the sources.
func (m *machine) addManual() {
	manual := m.facts.Manual
	if manual == nil || !m.facts.Scope.Managed() {
		return
	}
	source := manualSource(manual)
	changes := freshness.Changes{}
	maps.Copy(changes, m.facts.Changes)
	changes[source] = manual.RequestedAt.Time
	m.facts.Changes = changes
}

// asked tells whether a person waits for the restart: it was asked for and has not been made.
func (m *machine) asked() bool {
	manual, current := m.facts.Manual, m.status.CurrentRollout
	if manual == nil {
		return false
	}
	if current != nil && current.Manual && current.Stamp != "" && current.Stamp != m.facts.Stamp && !m.issued(current) {
		return true // Decided, and not made yet.
	}
	wish := freshness.Changes{manualSource(manual): manual.RequestedAt.Time}
	return len(wish.Without(coverageOf(current))) > 0
}

// overrides tells whether the person who waits wants windows and GitOps not to hold the restart back.
func (m *machine) overrides() bool { return m.asked() && m.facts.Manual.Override }

// overridden tells whether windows and GitOps are not to hold the restart back. Without the webhook that asks for the right
// to override, the word of a request is worth nothing: whoever may write it could write that.
func (m *machine) overridden() bool { return m.overrides() && !m.settings.OverrideUnchecked }

// explainUnchecked adds to a block that override would pass why it does not.
func (m *machine) explainUnchecked(block *gate.Block, input gate.Input) {
	if block == nil || !m.overrides() || m.overridden() {
		return
	}
	input.Override = true
	if beyond := gate.Evaluate(input); beyond == nil || beyond.Reason != block.Reason {
		block.Message += "; spec.manual.override is ignored, because KICK runs without the webhook that checks the right to it"
	}
}
