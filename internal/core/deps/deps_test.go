package deps_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/deps"
)

func secret(name string) deps.Source    { return deps.Source{Kind: v1alpha1.Secret, Name: name} }
func configMap(name string) deps.Source { return deps.Source{Kind: v1alpha1.ConfigMap, Name: name} }

func ref(source deps.Source, readers ...deps.Reader) deps.Reference {
	return deps.Reference{Source: source, Readers: readers}
}

func env(container string) deps.Reader {
	return deps.Reader{Container: container, Channel: deps.Environment}
}
func volume(container string) deps.Reader {
	return deps.Reader{Container: container, Channel: deps.Volume}
}

func named(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }

func secretKey(name string) corev1.EnvVar {
	return corev1.EnvVar{Name: "X", ValueFrom: &corev1.EnvVarSource{
		SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: named(name), Key: "k"},
	}}
}

func container(name string, change func(*corev1.Container)) corev1.Container {
	c := corev1.Container{Name: name}
	change(&c)
	return c
}

func mounts(volumes ...string) func(*corev1.Container) {
	return func(c *corev1.Container) {
		for _, v := range volumes {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: v, SubPath: "file"})
		}
	}
}

func TestExtractFindsEveryWayToConsumeASource(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	cases := map[string]struct {
		spec corev1.PodSpec
		want []deps.Reference
	}{
		"env from a Secret key": {
			spec: corev1.PodSpec{Containers: []corev1.Container{container("app", func(c *corev1.Container) {
				c.Env = []corev1.EnvVar{{Name: "PLAIN", Value: "v"}, secretKey("db")}
			})}},
			want: []deps.Reference{ref(secret("db"), env("app"))},
		},
		"env from a ConfigMap key": {
			spec: corev1.PodSpec{Containers: []corev1.Container{container("app", func(c *corev1.Container) {
				c.Env = []corev1.EnvVar{{Name: "X", ValueFrom: &corev1.EnvVarSource{
					ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: named("cfg"), Key: "k"},
				}}}
			})}},
			want: []deps.Reference{ref(configMap("cfg"), env("app"))},
		},
		"envFrom of both kinds under one name": {
			spec: corev1.PodSpec{Containers: []corev1.Container{container("app", func(c *corev1.Container) {
				c.EnvFrom = []corev1.EnvFromSource{
					{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: named("same")}},
					{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: named("same")}},
				}
			})}},
			want: []deps.Reference{ref(configMap("same"), env("app")), ref(secret("same"), env("app"))},
		},
		"volumes, also by subPath, for the containers that mount them": {
			spec: corev1.PodSpec{
				Containers: []corev1.Container{container("a", mounts("s")), container("b", mounts("s", "c"))},
				Volumes: []corev1.Volume{
					{Name: "s", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "db"}}},
					{Name: "c", VolumeSource: corev1.VolumeSource{
						ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: named("cfg")},
					}},
				},
			},
			want: []deps.Reference{ref(configMap("cfg"), volume("b")), ref(secret("db"), volume("a"), volume("b"))},
		},
		"a volume that no container mounts": {
			spec: corev1.PodSpec{Volumes: []corev1.Volume{
				{Name: "s", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "db"}}},
			}},
			want: []deps.Reference{ref(secret("db"), volume(""))},
		},
		"the sources of a projected volume, without tokens and the downward API": {
			spec: corev1.PodSpec{
				Containers: []corev1.Container{container("app", mounts("all"))},
				Volumes: []corev1.Volume{{Name: "all", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
					Sources: []corev1.VolumeProjection{
						{Secret: &corev1.SecretProjection{LocalObjectReference: named("db")}},
						{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: named("cfg")}},
						{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
						{DownwardAPI: &corev1.DownwardAPIProjection{}},
					},
				}}}},
			},
			want: []deps.Reference{ref(configMap("cfg"), volume("app")), ref(secret("db"), volume("app"))},
		},
		"init containers and sidecars": {
			spec: corev1.PodSpec{InitContainers: []corev1.Container{
				container("init", func(c *corev1.Container) { c.Env = []corev1.EnvVar{secretKey("a")} }),
				container("sidecar", func(c *corev1.Container) {
					c.RestartPolicy = &always
					c.Env = []corev1.EnvVar{secretKey("b")}
				}),
			}},
			want: []deps.Reference{ref(secret("a"), env("init")), ref(secret("b"), env("sidecar"))},
		},
		"one source referenced many times": {
			spec: corev1.PodSpec{Containers: []corev1.Container{container("app", func(c *corev1.Container) {
				c.Env = []corev1.EnvVar{secretKey("db"), secretKey("db")}
				c.EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: named("db")}}}
			})}},
			want: []deps.Reference{ref(secret("db"), env("app"))},
		},
		"image pull secrets and driver credentials do not count": {
			spec: corev1.PodSpec{
				ImagePullSecrets: []corev1.LocalObjectReference{named("pull")},
				Volumes: []corev1.Volume{{Name: "d", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{
					NodePublishSecretRef: &corev1.LocalObjectReference{Name: "driver"},
				}}}},
			},
			want: []deps.Reference{},
		},
		"an empty name refers to nothing": {
			spec: corev1.PodSpec{Containers: []corev1.Container{container("app", func(c *corev1.Container) {
				c.EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{}}}
			})}},
			want: []deps.Reference{},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := deps.Extract(&tc.spec)
			keys := cmpopts.IgnoreFields(deps.Reference{}, "Whole", "Keys", "Required", "RequiredKeys")
			if diff := cmp.Diff(tc.want, got, keys); diff != "" {
				t.Errorf("references (-want +got):\n%s", diff)
			}
		})
	}
}
