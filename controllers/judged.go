package controllers

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kick-dev/kick/internal/cluster/workload"
	"github.com/kick-dev/kick/internal/core/freshness"
)

// judged remembers which changes the Pods of workloads without a request were found to carry. Pods only ever get
// fresher, so a verdict holds for the life of the workload; what is lost at a restart is judged again.
type judged struct {
	mu    sync.Mutex
	fresh map[workload.Key]freshWorkload
}

type freshWorkload struct {
	uid     types.UID
	carries freshness.Changes
}

func newJudged() *judged { return &judged{fresh: map[workload.Key]freshWorkload{}} }

// covers tells whether the workload was found to carry all the changes.
func (j *judged) covers(w *workload.Workload, changes freshness.Changes) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	known := j.fresh[w.Key]
	return known.uid == w.UID() && len(changes.Without(freshness.Coverage{Changes: known.carries})) == 0
}

func (j *judged) remember(w *workload.Workload, changes freshness.Changes) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.fresh[w.Key] = freshWorkload{uid: w.UID(), carries: changes}
}

func (j *judged) forget(key workload.Key) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.fresh, key)
}
