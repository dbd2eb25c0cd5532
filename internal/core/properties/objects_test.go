package properties_test

import (
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/freshness"
	"github.com/kick-dev/kick/internal/core/rollout"
)

// metadata is what a watch tells of a source.
type metadata struct {
	version int
	labels  map[string]string
	written time.Time
}

func metadataOf(s *source) *metadata {
	if s == nil {
		return nil
	}
	return &metadata{s.version, s.labels, s.written}
}

// snapshot is a workload as the API server returns it.
type snapshot struct {
	key        workloadKey
	uid        types.UID
	version    int
	generation int64
	created    time.Time
	labels     map[string]string
	id         templateID
	paused     bool
	partition  int32
	object     metav1.Object
}

func (w *workload) snapshot() *snapshot {
	if w == nil {
		return nil
	}
	s := &snapshot{
		key: w.key, uid: w.uid, version: w.version, generation: w.generation, created: w.created, labels: w.labels,
		id: w.spec.id, paused: w.spec.paused, partition: w.spec.partition,
	}
	meta := metav1.ObjectMeta{Name: w.key.name, UID: w.uid, Generation: w.generation, Labels: w.labels}
	switch w.key.kind {
	case v1alpha1.Deployment:
		s.object = w.deployment(meta)
	case v1alpha1.StatefulSet:
		s.object = w.statefulSet(meta)
	case v1alpha1.DaemonSet:
		s.object = w.daemonSet(meta)
	}
	return s
}

func (w *workload) deployment(meta metav1.ObjectMeta) *appsv1.Deployment {
	if w.status.revisionNumber > 0 {
		meta.Annotations = map[string]string{"deployment.kubernetes.io/revision": strconv.FormatInt(w.status.revisionNumber, 10)}
	}
	replicas := w.spec.replicas
	d := &appsv1.Deployment{
		ObjectMeta: meta,
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Paused: w.spec.paused, Selector: selector()},
		Status: appsv1.DeploymentStatus{
			ObservedGeneration: w.status.observed, Replicas: w.status.replicas, UpdatedReplicas: w.status.updated,
			ReadyReplicas: w.status.ready, AvailableReplicas: w.status.ready,
		},
	}
	progress := appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "ReplicaSetUpdated"}
	if w.status.progressFailed {
		progress.Status, progress.Reason = corev1.ConditionFalse, "ProgressDeadlineExceeded"
	}
	d.Status.Conditions = []appsv1.DeploymentCondition{progress}
	return d
}

func (w *workload) statefulSet(meta metav1.ObjectMeta) *appsv1.StatefulSet {
	replicas, partition := w.spec.replicas, w.spec.partition
	s := &appsv1.StatefulSet{
		ObjectMeta: meta,
		Spec:       appsv1.StatefulSetSpec{Replicas: &replicas, Selector: selector()},
		Status: appsv1.StatefulSetStatus{
			ObservedGeneration: w.status.observed, Replicas: w.status.replicas, UpdatedReplicas: w.status.updated,
			ReadyReplicas: w.status.ready, AvailableReplicas: w.status.ready,
			CurrentRevision: w.status.currentRevision, UpdateRevision: w.status.updateRevision,
		},
	}
	s.Spec.UpdateStrategy.Type = appsv1.RollingUpdateStatefulSetStrategyType
	if w.spec.onDelete {
		s.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
	} else {
		s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: &partition}
	}
	return s
}

func (w *workload) daemonSet(meta metav1.ObjectMeta) *appsv1.DaemonSet {
	d := &appsv1.DaemonSet{
		ObjectMeta: meta,
		Spec:       appsv1.DaemonSetSpec{Selector: selector()},
		Status: appsv1.DaemonSetStatus{
			ObservedGeneration: w.status.observed, DesiredNumberScheduled: w.status.desired, CurrentNumberScheduled: w.status.replicas,
			UpdatedNumberScheduled: w.status.updated, NumberReady: w.status.ready, NumberAvailable: w.status.ready,
		},
	}
	d.Spec.UpdateStrategy.Type = appsv1.RollingUpdateDaemonSetStrategyType
	if w.spec.onDelete {
		d.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
	}
	return d
}

// rollout asks the core how far the rollout is.
func (s *snapshot) rollout() rollout.State {
	switch object := s.object.(type) {
	case *appsv1.Deployment:
		return rollout.OfDeployment(object)
	case *appsv1.StatefulSet:
		return rollout.OfStatefulSet(object)
	case *appsv1.DaemonSet:
		return rollout.OfDaemonSet(object)
	default:
		return rollout.State{}
	}
}

// revision asks the core for the current revision among those that exist now.
func (s *snapshot) revision(w *workload) *rollout.Revision {
	var found rollout.Revision
	var ok bool
	switch object := s.object.(type) {
	case *appsv1.Deployment:
		found, ok = rollout.DeploymentRevision(object, w.replicaSets())
	case *appsv1.StatefulSet:
		found, ok = rollout.StatefulSetRevision(object, w.controllerRevisions())
	case *appsv1.DaemonSet:
		found, ok = rollout.DaemonSetRevision(object, w.controllerRevisions())
	}
	if !ok {
		return nil
	}
	return &found
}

// owned is the metadata of an object that the workload controls.
func (w *workload) owned(name string, createdAt time.Time) metav1.ObjectMeta {
	yes := true
	return metav1.ObjectMeta{
		Name: name, CreationTimestamp: metav1.NewTime(createdAt.Truncate(time.Second)),
		OwnerReferences: []metav1.OwnerReference{{UID: w.uid, Controller: &yes}},
	}
}

func (w *workload) replicaSets() []appsv1.ReplicaSet {
	var sets []appsv1.ReplicaSet
	for _, r := range w.revisions {
		meta := w.owned(r.name, r.createdAt)
		meta.Annotations = map[string]string{"deployment.kubernetes.io/revision": strconv.FormatInt(r.number, 10)}
		sets = append(sets, appsv1.ReplicaSet{ObjectMeta: meta})
	}
	return sets
}

func (w *workload) controllerRevisions() []appsv1.ControllerRevision {
	var revisions []appsv1.ControllerRevision
	for _, r := range w.revisions {
		revisions = append(revisions, appsv1.ControllerRevision{ObjectMeta: w.owned(r.name, r.createdAt), Revision: r.number})
	}
	return revisions
}

// evidence are the Pods as the core sees them.
func (w *workload) evidence() []freshness.Pod {
	var pods []freshness.Pod
	for _, p := range w.pods {
		object := p.object()
		if evidence, runs := freshness.PodOf(object); runs {
			pods = append(pods, evidence)
		}
	}
	return pods
}

// lateBy is how far a list of Pods from the API server's cache may be behind.
const lateBy = 2 * time.Second

// pastPods are the Pods of a workload as they were from some time on.
type pastPods struct {
	since time.Time
	pods  []freshness.Pod
}

// keepPods keeps the Pods as they are now, for as long as a late list may show them.
func (w *workload) keepPods() {
	if w.unkept {
		w.past, w.unkept = append(w.past, pastPods{w.c.now, w.evidence()}), false
	}
	for len(w.past) > 1 && !w.past[1].since.After(w.c.now.Add(-lateBy)) {
		w.past = w.past[1:]
	}
}

// latePods are the Pods that a list from the cache shows. Every other list is late.
func (w *workload) latePods() []freshness.Pod {
	w.lists++
	shown := pastPods{w.c.now, w.evidence()}
	if w.lists%2 == 0 {
		for _, then := range slices.Backward(w.past) {
			if shown = then; !then.since.After(w.c.now.Add(-lateBy)) {
				break
			}
		}
	}
	return shown.pods
}

// object is the Pod as the API server returns it.
func (p *pod) object() *corev1.Pod {
	object := &corev1.Pod{ObjectMeta: p.w.owned(p.name, p.created), Spec: p.revision.id.template().Spec}
	if p.deleted {
		now := metav1.NewTime(p.w.c.second())
		object.DeletionTimestamp = &now
	}
	if !p.startedAt.IsZero() {
		taken := metav1.NewTime(p.startedAt.Truncate(time.Second))
		object.Status.StartTime = &taken
	}
	inits := len(p.shape().inits) + len(p.shape().sidecars)
	for i, k := range p.containers {
		status := corev1.ContainerStatus{Name: k.name, RestartCount: k.restarts}
		started := metav1.NewTime(k.started.Truncate(time.Second))
		switch {
		case k.running:
			status.State.Running = &corev1.ContainerStateRunning{StartedAt: started}
		case k.ended:
			status.State.Terminated = &corev1.ContainerStateTerminated{StartedAt: started}
		default:
			status.State.Waiting = &corev1.ContainerStateWaiting{}
		}
		if i < inits {
			object.Status.InitContainerStatuses = append(object.Status.InitContainerStatuses, status)
		} else {
			object.Status.ContainerStatuses = append(object.Status.ContainerStatuses, status)
		}
	}
	return object
}
