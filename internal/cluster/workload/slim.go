package workload

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
)

// Slim is a cache transform: it drops from a workload what no decision looks at, which is most of it. Of the Pod
// template it keeps the references to sources, the names of containers and the stamp.
func Slim(object any) (any, error) {
	cached, ok := object.(client.Object)
	if !ok {
		return object, nil
	}
	workload, ok := Of(cached)
	if !ok {
		return object, nil
	}
	cached.SetManagedFields(nil)
	annotations := cached.GetAnnotations()
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	template := workload.template()
	slim := corev1.PodTemplateSpec{}
	if stamp := workload.Stamp(); stamp != "" {
		slim.Annotations = map[string]string{v1alpha1.RestartedAtAnnotation: stamp}
	}
	slim.Spec.InitContainers = slimContainers(template.Spec.InitContainers)
	slim.Spec.Containers = slimContainers(template.Spec.Containers)
	slim.Spec.Volumes = slimVolumes(template.Spec.Volumes)
	*template = slim
	return object, nil
}

func slimContainers(containers []corev1.Container) []corev1.Container {
	slim := make([]corev1.Container, len(containers))
	for i := range containers {
		slim[i] = corev1.Container{Name: containers[i].Name, EnvFrom: containers[i].EnvFrom}
		for _, variable := range containers[i].Env {
			from := variable.ValueFrom
			if from != nil && (from.SecretKeyRef != nil || from.ConfigMapKeyRef != nil) {
				slim[i].Env = append(slim[i].Env, corev1.EnvVar{ValueFrom: from})
			}
		}
		for _, mount := range containers[i].VolumeMounts {
			slim[i].VolumeMounts = append(slim[i].VolumeMounts, corev1.VolumeMount{Name: mount.Name, SubPath: mount.SubPath})
		}
	}
	return slim
}

func slimVolumes(volumes []corev1.Volume) []corev1.Volume {
	var slim []corev1.Volume
	for i := range volumes {
		if volumes[i].Secret != nil || volumes[i].ConfigMap != nil || volumes[i].Projected != nil {
			slim = append(slim, volumes[i])
		}
	}
	return slim
}
