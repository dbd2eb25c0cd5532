package properties_test

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kick-dev/kick/api/v1alpha1"
)

// progressDeadline is the API's default for Deployments.
const progressDeadline = 10 * time.Minute

type workloadKey struct {
	kind v1alpha1.WorkloadKind
	name string
}

func (k workloadKey) String() string { return string(k.kind) + "/" + k.name }

// workload is a Deployment, StatefulSet or DaemonSet with all that belongs to it.
type workload struct {
	c          *cluster
	key        workloadKey
	uid        types.UID
	version    int
	generation int64
	created    time.Time
	labels     map[string]string
	spec       workloadSpec
	pace       pace
	status     workloadStatus
	revisions  []*revision
	pods       []*pod
	syncing    bool
	// past are the Pods of the last moments, unkept is true when they have changed since, and lists counts the lists of them
	// that a cache answered.
	past   []pastPods
	unkept bool
	lists  int

	// What only the truth knows.
	changedAt time.Time // of the template
	completed bool      // the present template was rolled out once
	bornFresh bool      // after all its sources were observed, and nothing has happened since
	kicks     kicks
}

type workloadSpec struct {
	id        templateID
	replicas  int32 // of a DaemonSet: the number of nodes
	paused    bool
	onDelete  bool
	partition int32
}

// pace is how fast things go.
type pace struct {
	// controller is the time the workload controller takes to act, pull that between the volumes of a Pod and its
	// containers, boot that between start and readiness.
	controller, pull, boot time.Duration
	// refresh is how long the kubelet takes to bring volumes up to date.
	refresh time.Duration
	// stuck Pods do not get ready.
	stuck bool
}

// workloadStatus is what the workload controller has written last.
type workloadStatus struct {
	observed                             int64
	desired, replicas, updated           int32
	ready, updatedReady                  int32
	revisionNumber                       int64
	currentRevision, updateRevision      string
	progressFailed                       bool
	currentReplicas, progressingRevision int64
}

// revision is a ReplicaSet or a ControllerRevision.
type revision struct {
	name      string
	id        templateID
	createdAt time.Time
	number    int64
}

// respec changes the spec as an API request does.
func (w *workload) respec(change func(*workloadSpec)) {
	before := w.spec
	change(&w.spec)
	if w.spec == before {
		return
	}
	w.c.judge.tell("%s is %+v", w.key, w.spec)
	if w.key.kind != v1alpha1.DaemonSet || before.id != w.spec.id || before.onDelete != w.spec.onDelete {
		w.generation++
	}
	if before.id != w.spec.id {
		w.changedAt, w.completed = w.c.now, false
	}
	w.moved()
	w.resync()
}

// moved tells the watchers.
func (w *workload) moved() {
	w.version = w.c.nextVersion()
	w.c.announceWorkload(w.key)
}

// resync lets the workload controller act after its time.
func (w *workload) resync() {
	if w.syncing {
		return
	}
	w.syncing = true
	w.c.agenda.add(w.c.now.Add(w.pace.controller), func() {
		w.syncing = false
		if w.c.workloads[w.key] == w {
			w.sync()
		}
	})
}

// sync is one pass of the workload controller.
func (w *workload) sync() {
	present := w.present()
	switch w.key.kind {
	case v1alpha1.Deployment:
		w.syncDeployment(present)
	case v1alpha1.StatefulSet:
		w.syncStatefulSet(present)
	case v1alpha1.DaemonSet:
		w.syncDaemonSet(present)
	}
	w.writeStatus(present)
}

// revisionOf is the revision of a template, nil for none.
func (w *workload) revisionOf(id templateID) *revision {
	for _, r := range w.revisions {
		if r.id == id {
			return r
		}
	}
	return nil
}

// present is the revision of the present template: an old one that is taken up again, or a new one. A paused Deployment
// gets none.
func (w *workload) present() *revision {
	var newest int64
	found := w.revisionOf(w.spec.id)
	for _, r := range w.revisions {
		newest = max(newest, r.number)
	}
	if found == nil && w.spec.paused {
		return nil
	}
	if found == nil {
		found = &revision{name: fmt.Sprintf("%s-%d", w.key.name, w.c.next()), id: w.spec.id, createdAt: w.c.now}
		w.revisions = append(w.revisions, found)
	}
	if w.spec.paused {
		return found
	}
	if found.number != newest || newest == 0 {
		found.number = newest + 1
	}
	if w.status.progressingRevision != found.number {
		w.status.progressingRevision, w.status.progressFailed = found.number, false
		w.watchProgress(found.number)
	}
	w.status.revisionNumber = found.number
	return found
}

// watchProgress gives up a Deployment's rollout after its deadline.
func (w *workload) watchProgress(number int64) {
	if w.key.kind != v1alpha1.Deployment {
		return
	}
	w.c.agenda.add(w.c.now.Add(progressDeadline), func() {
		if w.c.workloads[w.key] == w && w.status.progressingRevision == number && !w.completed && !w.spec.paused {
			w.status.progressFailed = true
			w.moved()
		}
	})
}

func (w *workload) syncDeployment(present *revision) {
	live := w.live()
	fresh := of(live, present)
	old := len(live) - len(fresh)
	switch {
	case w.spec.paused && len(live) < int(w.spec.replicas) && len(w.revisions) > 0:
		w.createPod(w.runningRevision(live), 0)
	case w.spec.paused:
		w.deleteSurplus(live)
	case len(fresh) < int(w.spec.replicas) && len(live) < int(w.spec.replicas)+1:
		w.createPod(present, 0)
	case len(fresh) > int(w.spec.replicas):
		w.deletePod(fresh[len(fresh)-1])
	case old > 0 && (countReady(fresh)+old > int(w.spec.replicas) || !w.oldestOther(live, present).ready):
		w.deletePod(w.oldestOther(live, present))
	default:
		return
	}
	w.resync()
}

// runningRevision is the one that a paused Deployment scales.
func (w *workload) runningRevision(live []*pod) *revision {
	if len(live) > 0 {
		return live[0].revision
	}
	return slices.MaxFunc(w.revisions, func(a, b *revision) int { return int(a.number - b.number) })
}

func (w *workload) deleteSurplus(live []*pod) {
	for i := int(w.spec.replicas); i < len(live); i++ {
		w.deletePod(live[i])
	}
}

// oldestOther is a Pod of another revision, one that is not ready before the others.
func (w *workload) oldestOther(live []*pod, present *revision) *pod {
	var found *pod
	for _, p := range live {
		if p.revision != present && (found == nil || (found.ready && !p.ready)) {
			found = p
		}
	}
	return found
}

func (w *workload) syncStatefulSet(update *revision) {
	w.status.updateRevision = update.name
	if w.status.currentRevision == "" {
		w.status.currentRevision = update.name
	}
	byOrdinal := map[int]*pod{}
	for _, p := range w.pods {
		if p.deleted && p.ordinal < int(w.spec.replicas) {
			return // Its name is taken until it is gone.
		}
	}
	for _, p := range w.live() {
		byOrdinal[p.ordinal] = p
		if p.ordinal >= int(w.spec.replicas) {
			w.deletePod(p)
		}
	}
	for ordinal := range int(w.spec.replicas) {
		p := byOrdinal[ordinal]
		if p == nil {
			w.createPod(w.statefulRevision(ordinal, update), ordinal)
			return
		}
		if !p.ready {
			// Pods are made in order; an old one that is not ready is still replaced below.
			if p.revision == update || w.spec.onDelete {
				return
			}
		}
	}
	if w.spec.onDelete {
		return
	}
	for ordinal := int(w.spec.replicas) - 1; ordinal >= int(w.spec.partition); ordinal-- {
		p := byOrdinal[ordinal]
		if p.revision != update {
			w.deletePod(p)
			w.resync()
			return
		}
		if !p.ready {
			return
		}
	}
	live := w.live()
	if len(of(live, update)) == int(w.spec.replicas) && countReady(live) == int(w.spec.replicas) {
		w.status.currentRevision = update.name
	}
}

// statefulRevision is the revision that a Pod to be made gets.
func (w *workload) statefulRevision(ordinal int, update *revision) *revision {
	old := ordinal < int(w.spec.partition) || int64(ordinal) < w.status.currentReplicas
	if w.spec.onDelete || !old || w.status.currentRevision == update.name {
		return update
	}
	for _, r := range w.revisions {
		if r.name == w.status.currentRevision {
			return r
		}
	}
	return update
}

func (w *workload) syncDaemonSet(update *revision) {
	live := w.live()
	taken := map[int]bool{}
	for _, p := range live {
		taken[p.ordinal] = true
		if p.ordinal >= int(w.spec.replicas) {
			w.deletePod(p)
		}
	}
	for node := range int(w.spec.replicas) {
		if !taken[node] {
			w.createPod(update, node)
		}
	}
	live = w.live()
	if w.spec.onDelete || len(live) != int(w.spec.replicas) {
		return
	}
	other := w.oldestOther(live, update)
	if other != nil && (countReady(live) == len(live) || !other.ready) {
		w.deletePod(other)
		w.resync()
	}
}

// writeStatus counts the Pods, and tells the watchers if something has changed.
func (w *workload) writeStatus(present *revision) {
	live := w.live()
	status := w.status
	status.observed = w.generation
	status.desired, status.replicas = w.spec.replicas, int32(len(live))
	fresh := of(live, present)
	status.updated, status.ready = int32(len(fresh)), int32(countReady(live))
	status.updatedReady = int32(countReady(fresh))
	status.currentReplicas = 0
	for _, p := range live {
		if p.revision.name == status.currentRevision {
			status.currentReplicas++
		}
	}
	if present != nil && w.rolledOut(live, fresh) {
		w.completed, status.progressFailed = true, false
	}
	if status != w.status {
		w.status = status
		w.c.judge.tell("%s: %d of %d, %d updated, %d ready, complete %v", w.key, status.replicas, status.desired, status.updated, status.ready, w.completed)
		w.moved()
	}
}

// rolledOut is the truth about the rollout of the present template.
func (w *workload) rolledOut(live, fresh []*pod) bool {
	if w.spec.onDelete {
		return true
	}
	return len(live) == int(w.spec.replicas) && len(fresh) >= int(w.spec.replicas-w.spec.partition) && countReady(fresh) == len(fresh)
}

// live are the Pods that are not being deleted.
func (w *workload) live() []*pod {
	var live []*pod
	for _, p := range w.pods {
		if !p.deleted {
			live = append(live, p)
		}
	}
	return live
}

func of(pods []*pod, r *revision) []*pod {
	var found []*pod
	for _, p := range pods {
		if p.revision == r {
			found = append(found, p)
		}
	}
	return found
}

func countReady(pods []*pod) int {
	n := 0
	for _, p := range pods {
		if p.ready {
			n++
		}
	}
	return n
}
