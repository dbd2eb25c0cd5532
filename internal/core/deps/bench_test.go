package deps_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kick-dev/kick/internal/core/deps"
)

func BenchmarkExtractOfTwentyContainers(b *testing.B) {
	spec := &corev1.PodSpec{}
	for i := range 20 {
		name := fmt.Sprintf("app-%d", i)
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: name},
		}})
		spec.Containers = append(spec.Containers, container(name, func(c *corev1.Container) {
			c.Env = []corev1.EnvVar{secretKey("db"), secretKey(name), {Name: "PLAIN", Value: "value"}}
			c.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: named("settings")}}}
			c.VolumeMounts = []corev1.VolumeMount{{Name: name, MountPath: "/mnt"}}
		}))
	}
	for b.Loop() {
		deps.Extract(spec)
	}
}
