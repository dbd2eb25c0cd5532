package deps_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	"github.com/kick-dev/kick/internal/core/deps"
)

// keysOfDB is a template's use of the Secret db.
func keysOfDB(t *testing.T, spec corev1.PodSpec) deps.Reference {
	t.Helper()
	references := deps.Extract(&spec)
	if len(references) != 1 || references[0].Source != secret("db") {
		t.Fatalf("references %v", references)
	}
	references[0].Readers = nil
	return references[0]
}

func environment(variables ...corev1.EnvVar) corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Env: variables}}}
}

func optionalKey(name string) corev1.EnvVar {
	variable, yes := secretKey(name), true
	variable.ValueFrom.SecretKeyRef.Optional = &yes
	return variable
}

// secretVolume mounts the Secret db at each subPath, or not at all.
func secretVolume(volume corev1.SecretVolumeSource, subPaths ...string) corev1.PodSpec {
	volume.SecretName = "db"
	app := corev1.Container{Name: "app"}
	for _, subPath := range subPaths {
		app.VolumeMounts = append(app.VolumeMounts, corev1.VolumeMount{Name: "v", SubPath: subPath})
	}
	return corev1.PodSpec{
		Containers: []corev1.Container{app},
		Volumes:    []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &volume}}},
	}
}

func TestExtractTellsWhichKeysAreConsumedAndRequired(t *testing.T) {
	yes := true
	items := []corev1.KeyToPath{{Key: "cert", Path: "tls/cert.pem"}, {Key: "key", Path: "tls/key.pem"}, {Key: "ca", Path: "ca.pem"}}
	envFrom := corev1.PodSpec{Containers: []corev1.Container{{Name: "app", EnvFrom: []corev1.EnvFromSource{
		{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: named("db")}},
	}}}}
	both := envFrom
	both.InitContainers = []corev1.Container{{Name: "init", Env: []corev1.EnvVar{secretKey("db")}}}
	for name, tc := range map[string]struct {
		spec corev1.PodSpec
		want deps.Reference
	}{
		"a variable": {
			environment(secretKey("db"), secretKey("db")),
			deps.Reference{Keys: []string{"k"}, Required: true, RequiredKeys: []string{"k"}},
		},
		"an optional variable": {
			environment(optionalKey("db")),
			deps.Reference{Keys: []string{"k"}},
		},
		"a key that is optional here and required there": {
			environment(optionalKey("db"), secretKey("db")),
			deps.Reference{Keys: []string{"k"}, Required: true, RequiredKeys: []string{"k"}},
		},
		"envFrom":                 {envFrom, deps.Reference{Whole: true, Required: true}},
		"envFrom beside one key":  {both, deps.Reference{Whole: true, Required: true, RequiredKeys: []string{"k"}}},
		"a whole volume":          {secretVolume(corev1.SecretVolumeSource{}, ""), deps.Reference{Whole: true, Required: true}},
		"a volume nobody mounts":  {secretVolume(corev1.SecretVolumeSource{}), deps.Reference{Whole: true, Required: true}},
		"an optional volume":      {secretVolume(corev1.SecretVolumeSource{Optional: &yes}, ""), deps.Reference{Whole: true}},
		"one file by its subPath": {secretVolume(corev1.SecretVolumeSource{}, "ca"), deps.Reference{Keys: []string{"ca"}, Required: true}},
		"one file and the whole": {
			secretVolume(corev1.SecretVolumeSource{}, "ca", ""), deps.Reference{Whole: true, Required: true},
		},
		"the items of a volume": {
			secretVolume(corev1.SecretVolumeSource{Items: items}, ""),
			deps.Reference{Keys: []string{"ca", "cert", "key"}, Required: true, RequiredKeys: []string{"ca", "cert", "key"}},
		},
		"the items of an optional volume": {
			secretVolume(corev1.SecretVolumeSource{Items: items, Optional: &yes}, ""), deps.Reference{Keys: []string{"ca", "cert", "key"}},
		},
		"one item by its path": {
			secretVolume(corev1.SecretVolumeSource{Items: items, Optional: &yes}, "tls/key.pem"), deps.Reference{Keys: []string{"key"}},
		},
		"a directory of items": {
			secretVolume(corev1.SecretVolumeSource{Items: items, Optional: &yes}, "tls/"), deps.Reference{Keys: []string{"cert", "key"}},
		},
		"a subPath that shows none of the items": {
			secretVolume(corev1.SecretVolumeSource{Items: items, Optional: &yes}, "other"), deps.Reference{Keys: []string{"ca", "cert", "key"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.want.Source = secret("db")
			if diff := cmp.Diff(tc.want, keysOfDB(t, tc.spec), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("reference (-want +got):\n%s", diff)
			}
		})
	}
}
