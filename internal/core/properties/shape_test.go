package properties_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/deps"
)

var (
	db   = deps.Source{Kind: v1alpha1.Secret, Name: "db"}
	cfg  = deps.Source{Kind: v1alpha1.ConfigMap, Name: "db"} // the same name: another source all the same
	mail = deps.Source{Kind: v1alpha1.Secret, Name: "mail"}
)

var allSources = []deps.Source{db, cfg, mail}

// way is how a container reads a source.
type way int

const (
	envFrom way = iota
	envKey
	wholeVolume
	volumeItem
	subPath
	projected
	// unmounted is a volume of the Pod that no container mounts.
	unmounted
)

// use is one thing that a container reads. Templates are made from uses, so that what a container is to carry does not
// depend on how the core reads templates.
type use struct {
	container string
	source    deps.Source
	way       way
	key       string
	optional  bool
}

// environment tells what is read when the container starts from what is read from files.
func (u use) environment() bool { return u.way == envFrom || u.way == envKey }

// keys are those that are read, nil for all.
func (u use) keys() []string {
	if u.key == "" {
		return nil
	}
	return []string{u.key}
}

// requiredKey is the key without which the container does not start, empty for none.
func (u use) requiredKey() string {
	if u.optional || u.way == subPath {
		return ""
	}
	return u.key
}

// shape is the part of a Pod template that differs between the templates of the model.
type shape struct {
	inits    []string
	sidecars []string
	apps     []string
	uses     []use
}

var shapes = []shape{
	{apps: []string{"app"}, uses: []use{{"app", db, envFrom, "", false}}},
	{apps: []string{"app", "side"}, uses: []use{{"app", db, envKey, "a", false}, {"side", cfg, wholeVolume, "", false}}},
	{apps: []string{"app"}, uses: []use{{"app", db, wholeVolume, "", false}, {"app", cfg, envFrom, "", true}}},
	{inits: []string{"init"}, apps: []string{"app"}, uses: []use{{"init", db, envFrom, "", false}, {"app", cfg, volumeItem, "a", false}}},
	{apps: []string{"app", "side"}, uses: []use{{"app", db, envKey, "a", true}, {"side", db, envKey, "b", true}, {"side", mail, subPath, "a", false}}},
	{apps: []string{"app", "side"}, uses: []use{
		{"app", db, projected, "", false}, {"side", db, projected, "", false}, {"app", mail, projected, "b", true},
	}},
	{apps: []string{"app"}, uses: []use{{"", mail, unmounted, "", false}, {"app", cfg, envKey, "a", true}}},
	{sidecars: []string{"proxy"}, apps: []string{"app"}, uses: []use{{"proxy", cfg, envFrom, "", true}, {"app", mail, wholeVolume, "", true}}},
	{apps: []string{"app"}},
}

func (s shape) containers() []string {
	var all []string
	for _, names := range [][]string{s.inits, s.sidecars, s.apps} {
		all = append(all, names...)
	}
	return all
}

// usesOf lists what the template reads of a source.
func (s shape) usesOf(source deps.Source) []use {
	var found []use
	for _, u := range s.uses {
		if u.source == source {
			found = append(found, u)
		}
	}
	return found
}

// sources that the template reads, in the order of allSources.
func (s shape) sources() []deps.Source {
	var found []deps.Source
	for _, source := range allSources {
		if len(s.usesOf(source)) > 0 {
			found = append(found, source)
		}
	}
	return found
}

// mergedKeys are the keys of a source that any container reads, nil for all.
func (s shape) mergedKeys(source deps.Source) []string {
	var keys []string
	for _, u := range s.usesOf(source) {
		if u.keys() == nil {
			return nil
		}
		keys = append(keys, u.key)
	}
	return keys
}

// templateID names a template: a shape, an image and a stamp.
type templateID struct {
	shape int
	image int
	stamp string
}

// template makes the Pod template.
func (id templateID) template() *corev1.PodTemplateSpec {
	s := shapes[id.shape]
	template := &corev1.PodTemplateSpec{}
	template.Labels = map[string]string{"app": "web"}
	if id.stamp != "" {
		template.Annotations = map[string]string{v1alpha1.RestartedAtAnnotation: id.stamp}
	}
	spec := &template.Spec
	container := func(name string) corev1.Container {
		c := corev1.Container{Name: name, Image: fmt.Sprintf("image:%d", id.image)}
		for i, u := range s.uses {
			u.applyTo(&c, fmt.Sprintf("v%d", i))
		}
		return c
	}
	for _, name := range s.inits {
		spec.InitContainers = append(spec.InitContainers, container(name))
	}
	always := corev1.ContainerRestartPolicyAlways
	for _, name := range s.sidecars {
		c := container(name)
		c.RestartPolicy = &always
		spec.InitContainers = append(spec.InitContainers, c)
	}
	for _, name := range s.apps {
		spec.Containers = append(spec.Containers, container(name))
	}
	for i, u := range s.uses {
		if !u.environment() {
			spec.Volumes = append(spec.Volumes, corev1.Volume{Name: fmt.Sprintf("v%d", i), VolumeSource: u.volume()})
		}
	}
	return template
}

// applyTo adds the use to the container it belongs to.
func (u use) applyTo(c *corev1.Container, volume string) {
	if u.container != c.Name {
		return
	}
	name := corev1.LocalObjectReference{Name: u.source.Name}
	secret := u.source.Kind == v1alpha1.Secret
	switch u.way {
	case envFrom:
		from := corev1.EnvFromSource{}
		if secret {
			from.SecretRef = &corev1.SecretEnvSource{LocalObjectReference: name, Optional: &u.optional}
		} else {
			from.ConfigMapRef = &corev1.ConfigMapEnvSource{LocalObjectReference: name, Optional: &u.optional}
		}
		c.EnvFrom = append(c.EnvFrom, from)
	case envKey:
		from := &corev1.EnvVarSource{}
		if secret {
			from.SecretKeyRef = &corev1.SecretKeySelector{LocalObjectReference: name, Key: u.key, Optional: &u.optional}
		} else {
			from.ConfigMapKeyRef = &corev1.ConfigMapKeySelector{LocalObjectReference: name, Key: u.key, Optional: &u.optional}
		}
		c.Env = append(c.Env, corev1.EnvVar{Name: "VALUE_" + u.key, ValueFrom: from})
	case subPath:
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: "/" + volume, SubPath: u.key})
	default:
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: "/" + volume})
	}
}

// volume is the volume that the use reads from.
func (u use) volume() corev1.VolumeSource {
	var items []corev1.KeyToPath
	if u.key != "" && u.way != subPath {
		items = []corev1.KeyToPath{{Key: u.key, Path: u.key}}
	}
	name := corev1.LocalObjectReference{Name: u.source.Name}
	secret := u.source.Kind == v1alpha1.Secret
	switch {
	case u.way == projected && secret:
		return corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{Secret: &corev1.SecretProjection{LocalObjectReference: name, Items: items, Optional: &u.optional}},
		}}}
	case u.way == projected:
		return corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: name, Items: items, Optional: &u.optional}},
		}}}
	case secret:
		return corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name.Name, Items: items, Optional: &u.optional}}
	default:
		return corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: name, Items: items, Optional: &u.optional}}
	}
}

// selector is that of every workload.
func selector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
}
