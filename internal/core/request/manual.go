package request

import (
	"maps"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/deps"
	"github.com/kick-dev/kick/internal/core/freshness"
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
	if current != nil && current.Stamp != "" && current.Stamp != m.facts.Stamp && !m.issued(current) {
		return true // Decided, and not made yet.
	}
	wish := freshness.Changes{manualSource(manual): manual.RequestedAt.Time}
	return len(wish.Without(coverageOf(current))) > 0
}

// overridden tells whether windows and GitOps are not to hold the restart back.
func (m *machine) overridden() bool { return m.asked() && m.facts.Manual.Override }
