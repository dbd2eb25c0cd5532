package workload

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/rollout"
)

// apiVersion of all three kinds.
const apiVersion = "apps/v1"

// kind holds what differs between the kinds.
type kind struct {
	is       func(client.Object) bool
	object   func() client.Object
	list     func() client.ObjectList
	template func(client.Object) *corev1.PodTemplateSpec
	selector func(client.Object) *metav1.LabelSelector
	state    func(client.Object) rollout.State
	// reduce drops what state and revision do not read.
	reduce func(client.Object)
	// replicaSets is true where Pods belong to ReplicaSets, which are then also the revisions.
	replicaSets bool
	// revision finds the current revision among ControllerRevisions, where there are no ReplicaSets.
	revision func(client.Object, []appsv1.ControllerRevision) (rollout.Revision, bool)
	// newestRevision is true where the workload does not name its current revision, so that the newest one counts.
	newestRevision bool
}

var kinds = map[v1alpha1.WorkloadKind]*kind{
	v1alpha1.Deployment: {
		is:          is[*appsv1.Deployment],
		object:      func() client.Object { return &appsv1.Deployment{} },
		list:        func() client.ObjectList { return &appsv1.DeploymentList{} },
		template:    func(o client.Object) *corev1.PodTemplateSpec { return &o.(*appsv1.Deployment).Spec.Template },
		selector:    func(o client.Object) *metav1.LabelSelector { return o.(*appsv1.Deployment).Spec.Selector },
		state:       func(o client.Object) rollout.State { return rollout.OfDeployment(o.(*appsv1.Deployment)) },
		reduce:      func(o client.Object) { rollout.ReduceDeployment(o.(*appsv1.Deployment)) },
		replicaSets: true,
	},
	v1alpha1.StatefulSet: {
		is:       is[*appsv1.StatefulSet],
		object:   func() client.Object { return &appsv1.StatefulSet{} },
		list:     func() client.ObjectList { return &appsv1.StatefulSetList{} },
		template: func(o client.Object) *corev1.PodTemplateSpec { return &o.(*appsv1.StatefulSet).Spec.Template },
		selector: func(o client.Object) *metav1.LabelSelector { return o.(*appsv1.StatefulSet).Spec.Selector },
		state:    func(o client.Object) rollout.State { return rollout.OfStatefulSet(o.(*appsv1.StatefulSet)) },
		reduce:   func(o client.Object) { rollout.ReduceStatefulSet(o.(*appsv1.StatefulSet)) },
		revision: func(o client.Object, revisions []appsv1.ControllerRevision) (rollout.Revision, bool) {
			return rollout.StatefulSetRevision(o.(*appsv1.StatefulSet), revisions)
		},
	},
	v1alpha1.DaemonSet: {
		is:       is[*appsv1.DaemonSet],
		object:   func() client.Object { return &appsv1.DaemonSet{} },
		list:     func() client.ObjectList { return &appsv1.DaemonSetList{} },
		template: func(o client.Object) *corev1.PodTemplateSpec { return &o.(*appsv1.DaemonSet).Spec.Template },
		selector: func(o client.Object) *metav1.LabelSelector { return o.(*appsv1.DaemonSet).Spec.Selector },
		state:    func(o client.Object) rollout.State { return rollout.OfDaemonSet(o.(*appsv1.DaemonSet)) },
		reduce:   func(o client.Object) { rollout.ReduceDaemonSet(o.(*appsv1.DaemonSet)) },
		// See rollout.DaemonSetRevision.
		newestRevision: true,
		revision: func(o client.Object, revisions []appsv1.ControllerRevision) (rollout.Revision, bool) {
			return rollout.DaemonSetRevision(o.(*appsv1.DaemonSet), revisions)
		},
	},
}

func is[T client.Object](object client.Object) bool {
	_, ok := object.(T)
	return ok
}

// Objects returns an empty object of each kind, for watches and caches.
func Objects() []client.Object {
	return []client.Object{&appsv1.Deployment{}, &appsv1.StatefulSet{}, &appsv1.DaemonSet{}}
}

// NewObject returns an empty object of a kind, false if the kind is no workload.
func NewObject(name v1alpha1.WorkloadKind) (client.Object, bool) {
	kind, known := kinds[name]
	if !known {
		return nil, false
	}
	return kind.object(), true
}
