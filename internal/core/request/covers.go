package request

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/deps"
	"github.com/kick-dev/kick/internal/core/freshness"
)

// Bounds of the lists in a request's status; the CRD states them too.
const (
	maxCovers = 64
	maxCauses = 16
)

// Uncovered returns the changes that a request's last rollout does not cover: those for which a terminal request has
// to be opened again.
func Uncovered(status *v1alpha1.KickRequestStatus, changes freshness.Changes) freshness.Changes {
	if status.CurrentRollout == nil {
		return changes
	}
	covers := status.CurrentRollout.Covers
	open := changes.Without(coveredBy(covers))
	if len(covers) < maxCovers {
		return open
	}
	// The list was cut: what it left out was older than all it holds.
	return open.After(covers[len(covers)-1].ChangedAt.Add(-time.Microsecond))
}

// coveredBy reads a list of covered changes.
func coveredBy(covers []v1alpha1.SourceChange) freshness.Changes {
	changes := freshness.Changes{}
	for _, change := range covers {
		changes[deps.Source{Kind: change.Kind, Name: change.Name}] = change.ChangedAt.Time
	}
	return changes
}

// newest lists changes from the newest on, at most limit of them, and counts the rest.
func newest(changes freshness.Changes, limit int) (list []v1alpha1.SourceChange, omitted int) {
	sources := changes.Newest()
	if len(sources) > limit {
		omitted = len(sources) - limit
		sources = sources[:limit]
	}
	for _, source := range sources {
		list = append(list, v1alpha1.SourceChange{
			Kind:      source.Kind,
			Name:      source.Name,
			ChangedAt: metav1.NewMicroTime(changes[source]),
		})
	}
	return list, omitted
}
