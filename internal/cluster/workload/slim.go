package workload

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/intern"
)

// Slim is a cache transform: it drops from a workload what no decision looks at, which is most of it. Of the Pod
// template it keeps the references to sources, the names of the containers that hold them and the stamp. What workloads say
// alike they share.
func Slim(object any) (any, error) {
	cached, ok := object.(client.Object)
	if !ok {
		return object, nil
	}
	workload, ok := Of(cached)
	if !ok {
		return object, nil
	}
	slimMetadata(cached)
	workload.kind.reduce(cached)
	if selector := workload.kind.selector(cached); selector != nil {
		selector.MatchLabels = intern.Map(selector.MatchLabels)
	}
	template := workload.template()
	slim := corev1.PodTemplateSpec{}
	if stamp := workload.Stamp(); stamp != "" {
		slim.Annotations = map[string]string{v1alpha1.RestartedAtAnnotation: stamp}
	}
	slim.Spec.Volumes = slimVolumes(template.Spec.Volumes)
	slim.Spec.InitContainers = slimContainers(template.Spec.InitContainers, slim.Spec.Volumes)
	slim.Spec.Containers = slimContainers(template.Spec.Containers, slim.Spec.Volumes)
	*template = slim
	return object, nil
}

func slimMetadata(object client.Object) {
	object.SetNamespace(intern.String(object.GetNamespace()))
	object.SetManagedFields(nil)
	object.SetOwnerReferences(nil)
	object.SetFinalizers(nil)
	object.SetLabels(intern.Map(object.GetLabels()))
	annotations := object.GetAnnotations()
	if annotations[corev1.LastAppliedConfigAnnotation] != "" { // What is shared is never written to, and lacks it.
		delete(annotations, corev1.LastAppliedConfigAnnotation)
	}
	object.SetAnnotations(intern.Map(annotations))
}

// slimContainers leaves out containers that read no source, which most sidecars are: a container takes much room even when it
// is empty.
func slimContainers(containers []corev1.Container, volumes []corev1.Volume) []corev1.Container {
	var readers []corev1.Container
	for i := range containers {
		slim := corev1.Container{
			Name: intern.String(containers[i].Name), EnvFrom: containers[i].EnvFrom,
			Env: slimVariables(containers[i].Env), VolumeMounts: slimMounts(containers[i].VolumeMounts, volumes),
		}
		if len(slim.EnvFrom)+len(slim.Env)+len(slim.VolumeMounts) > 0 {
			readers = append(readers, slim)
		}
	}
	return exact(readers)
}

func slimVariables(variables []corev1.EnvVar) []corev1.EnvVar {
	var slim []corev1.EnvVar
	for i := range variables {
		from := variables[i].ValueFrom
		if from != nil && (from.SecretKeyRef != nil || from.ConfigMapKeyRef != nil) {
			slim = append(slim, corev1.EnvVar{ValueFrom: from})
		}
	}
	return exact(slim)
}

func slimMounts(mounts []corev1.VolumeMount, volumes []corev1.Volume) []corev1.VolumeMount {
	var slim []corev1.VolumeMount
	for i := range mounts {
		for j := range volumes {
			if volumes[j].Name == mounts[i].Name {
				slim = append(slim, corev1.VolumeMount{Name: volumes[j].Name, SubPath: mounts[i].SubPath})
				break
			}
		}
	}
	return exact(slim)
}

func slimVolumes(volumes []corev1.Volume) []corev1.Volume {
	var slim []corev1.Volume
	for i := range volumes {
		if volumes[i].Secret != nil || volumes[i].ConfigMap != nil || volumes[i].Projected != nil {
			slim = append(slim, volumes[i])
		}
	}
	return exact(slim)
}

// exact copies a list that has grown to one without room to spare.
func exact[T any](list []T) []T {
	if len(list) == cap(list) {
		return list
	}
	return append(make([]T, 0, len(list)), list...)
}
