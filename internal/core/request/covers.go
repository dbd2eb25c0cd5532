package request

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/deps"
	"github.com/kick-dev/kick/internal/core/freshness"
)

// Bounds of the lists in a request's status; the CRD states them too.
const (
	maxCovers = 256
	maxCauses = 16
	maxKeys   = 16
)

// Uncovered returns the changes that a request's last rollout does not cover: those for which a terminal request has
// to be opened again.
func Uncovered(status *v1alpha1.KickRequestStatus, changes freshness.Changes) freshness.Changes {
	return changes.Without(coverageOf(status.CurrentRollout))
}

// coverageOf reads what a rollout covers.
func coverageOf(rollout *v1alpha1.Rollout) freshness.Coverage {
	coverage := freshness.Coverage{Changes: freshness.Changes{}}
	if rollout == nil {
		return coverage
	}
	for _, change := range rollout.Covers {
		coverage.Changes[deps.Source{Kind: change.Kind, Name: change.Name}] = change.ChangedAt.Time
	}
	if rollout.CoversThrough != nil {
		coverage.Through = rollout.CoversThrough.Time
	}
	return coverage
}

// cover records on a rollout the changes it covers: the newest by name, and what the list has no room for by the time of
// the newest of them.
func cover(rollout *v1alpha1.Rollout, changes freshness.Changes) {
	var omitted int
	rollout.Covers, omitted = newest(changes, maxCovers)
	rollout.CoversThrough = nil
	if omitted > 0 {
		through := metav1.NewMicroTime(changes[changes.Newest()[maxCovers]])
		rollout.CoversThrough = &through
	}
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
