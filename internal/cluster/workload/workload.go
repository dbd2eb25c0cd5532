// Package workload is the one seam over Deployments, StatefulSets and DaemonSets: it reads them, their revisions and
// their Pods, and writes the stamp. It decides nothing.
package workload

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/deps"
	"github.com/kick-dev/kick/internal/core/rollout"
)

// Key names a workload.
type Key struct {
	Namespace string
	Kind      v1alpha1.WorkloadKind
	Name      string
}

// String is "namespace/Kind/name".
func (k Key) String() string { return k.Namespace + "/" + string(k.Kind) + "/" + k.Name }

// objectKey names the workload among those of its kind.
func (k Key) objectKey() types.NamespacedName {
	return types.NamespacedName{Namespace: k.Namespace, Name: k.Name}
}

// Workload is one Deployment, StatefulSet or DaemonSet. It is read-only: it may share memory with a cache.
type Workload struct {
	Key    Key
	object client.Object
	kind   *kind
	// cached is true for one from the cache: it lacks what Slim drops, and the API server may have a newer one.
	cached bool
}

// Of wraps an object. It reports false for an object of another kind.
func Of(object client.Object) (*Workload, bool) {
	for name, kind := range kinds {
		if kind.is(object) {
			key := Key{Namespace: object.GetNamespace(), Kind: name, Name: object.GetName()}
			return &Workload{Key: key, object: object, kind: kind}, true
		}
	}
	return nil, false
}

// Object is the wrapped object.
func (w *Workload) Object() client.Object { return w.object }

// UID of the workload.
func (w *Workload) UID() types.UID { return w.object.GetUID() }

// Generation of the workload's spec.
func (w *Workload) Generation() int64 { return w.object.GetGeneration() }

// Version is the resourceVersion of the workload.
func (w *Workload) Version() string { return w.object.GetResourceVersion() }

// Labels of the workload itself.
func (w *Workload) Labels() labels.Set { return w.object.GetLabels() }

// References are the sources that the Pod template consumes.
func (w *Workload) References() []deps.Reference { return deps.Extract(&w.template().Spec) }

// Reference is the use the Pod template makes of a source. It reports false for a source it does not consume.
func (w *Workload) Reference(source deps.Source) (deps.Reference, bool) {
	for _, reference := range w.References() {
		if reference.Source == source {
			return reference, true
		}
	}
	return deps.Reference{}, false
}

// TemplateWriter names the field manager that last wrote to the Pod template, KICK left aside; empty if that is not
// known. A workload from the cache does not know.
func (w *Workload) TemplateWriter() string {
	var writer string
	var last time.Time
	for _, entry := range w.object.GetManagedFields() {
		foreign := entry.Manager != v1alpha1.FieldManager && entry.Subresource == ""
		if foreign && entry.Time != nil && !entry.Time.Time.Before(last) &&
			entry.FieldsV1 != nil && strings.Contains(entry.FieldsV1.GetRawString(), `"f:template"`) {
			writer, last = entry.Manager, entry.Time.Time
		}
	}
	return writer
}

// Stamp is the restartedAt annotation on the Pod template, empty if there is none.
func (w *Workload) Stamp() string { return w.template().Annotations[v1alpha1.RestartedAtAnnotation] }

// StampAnnotation is the restartedAt annotation on the Pod template, and whether it is there at all.
func (w *Workload) StampAnnotation() (value string, present bool) {
	value, present = w.template().Annotations[v1alpha1.RestartedAtAnnotation]
	return value, present
}

// TemplateAnnotations are the annotations of the Pod template. A workload from the cache has only the stamp.
func (w *Workload) TemplateAnnotations() map[string]string { return w.template().Annotations }

// Rollout is the state of the present rollout.
func (w *Workload) Rollout() rollout.State { return w.kind.state(w.object) }

// TargetRef is the reference that a KickRequest holds to the workload.
func (w *Workload) TargetRef() v1alpha1.TargetRef {
	return v1alpha1.TargetRef{APIVersion: apiVersion, Kind: w.Key.Kind, Name: w.Key.Name, UID: w.UID()}
}

// OwnerReference makes an object go with the workload.
func (w *Workload) OwnerReference() metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: string(w.Key.Kind), Name: w.Key.Name, UID: w.UID()}
}

func (w *Workload) template() *corev1.PodTemplateSpec { return w.kind.template(w.object) }
