// Package deps extracts from a Pod template which Secrets and ConfigMaps its containers consume: deps(w), §2 of the
// model. It looks at references alone and never at the objects referred to.
package deps

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kick-dev/kick/api/v1alpha1"
)

// Source names a Secret or ConfigMap within a namespace that the context gives. A Secret and a ConfigMap of the same
// name are two sources.
type Source struct {
	Kind v1alpha1.SourceKind
	Name string
}

// Compare orders sources by kind and name.
func (s Source) Compare(other Source) int {
	return cmp.Or(cmp.Compare(s.Kind, other.Kind), cmp.Compare(s.Name, other.Name))
}

// String is "Kind/name".
func (s Source) String() string { return string(s.Kind) + "/" + s.Name }

// Channel is the way by which a container reads a source.
type Channel int

const (
	// Environment is read once, when the container is created (env, envFrom).
	Environment Channel = iota
	// Volume is written by the kubelet before the first container of the Pod starts and refreshed some time after
	// a change.
	Volume
)

// Reader is a container that consumes a source, by one channel. The empty container name stands for every
// container of the Pod: it is used for a volume that no container mounts.
type Reader struct {
	Container string
	Channel   Channel
}

// Reference is one source a template consumes, however often it refers to it.
type Reference struct {
	Source
	// Readers are the containers that consume the source, sorted and without repetition.
	Readers []Reader
}

// Extract returns the sources that a Pod template consumes through env, envFrom, secret, configMap and projected
// volumes, in containers, init containers and sidecars, sorted by source. Image pull secrets, service account
// tokens and credentials of volume drivers are not read by containers and do not count.
func Extract(template *corev1.PodTemplateSpec) []Reference {
	found := collector{}
	found.environments(template.Spec.InitContainers)
	found.environments(template.Spec.Containers)
	mounts := mountsByVolume(template)
	for i := range template.Spec.Volumes {
		volume := &template.Spec.Volumes[i]
		for _, source := range volumeSources(volume) {
			found.addVolume(source, mounts[volume.Name])
		}
	}
	return found.references()
}

// collector gathers the readers of each source.
type collector map[Source][]Reader

func (c collector) add(kind v1alpha1.SourceKind, name string, reader Reader) {
	if name == "" {
		return // The API server admits an empty name in some references; it refers to nothing.
	}
	source := Source{Kind: kind, Name: name}
	c[source] = append(c[source], reader)
}

func (c collector) environments(containers []corev1.Container) {
	for i := range containers {
		reader := Reader{Container: containers[i].Name, Channel: Environment}
		for _, from := range containers[i].EnvFrom {
			if from.SecretRef != nil {
				c.add(v1alpha1.Secret, from.SecretRef.Name, reader)
			}
			if from.ConfigMapRef != nil {
				c.add(v1alpha1.ConfigMap, from.ConfigMapRef.Name, reader)
			}
		}
		for _, variable := range containers[i].Env {
			if variable.ValueFrom == nil {
				continue
			}
			if ref := variable.ValueFrom.SecretKeyRef; ref != nil {
				c.add(v1alpha1.Secret, ref.Name, reader)
			}
			if ref := variable.ValueFrom.ConfigMapKeyRef; ref != nil {
				c.add(v1alpha1.ConfigMap, ref.Name, reader)
			}
		}
	}
}

func (c collector) addVolume(source Source, containers []string) {
	if len(containers) == 0 {
		containers = []string{""}
	}
	for _, container := range containers {
		c.add(source.Kind, source.Name, Reader{Container: container, Channel: Volume})
	}
}

func (c collector) references() []Reference {
	result := make([]Reference, 0, len(c))
	for source, readers := range c {
		slices.SortFunc(readers, func(a, b Reader) int {
			return cmp.Or(cmp.Compare(a.Container, b.Container), cmp.Compare(a.Channel, b.Channel))
		})
		result = append(result, Reference{Source: source, Readers: slices.Compact(readers)})
	}
	slices.SortFunc(result, func(a, b Reference) int { return a.Compare(b.Source) })
	return result
}

// volumeSources lists the Secrets and ConfigMaps whose content a volume holds.
func volumeSources(volume *corev1.Volume) []Source {
	var sources []Source
	if volume.Secret != nil {
		sources = append(sources, Source{v1alpha1.Secret, volume.Secret.SecretName})
	}
	if volume.ConfigMap != nil {
		sources = append(sources, Source{v1alpha1.ConfigMap, volume.ConfigMap.Name})
	}
	if volume.Projected == nil {
		return sources
	}
	for _, part := range volume.Projected.Sources {
		if part.Secret != nil {
			sources = append(sources, Source{v1alpha1.Secret, part.Secret.Name})
		}
		if part.ConfigMap != nil {
			sources = append(sources, Source{v1alpha1.ConfigMap, part.ConfigMap.Name})
		}
	}
	return sources
}

// mountsByVolume maps each volume to the containers that mount it.
func mountsByVolume(template *corev1.PodTemplateSpec) map[string][]string {
	mounts := map[string][]string{}
	for _, containers := range [][]corev1.Container{template.Spec.InitContainers, template.Spec.Containers} {
		for i := range containers {
			for _, mount := range containers[i].VolumeMounts {
				mounts[mount.Name] = append(mounts[mount.Name], containers[i].Name)
			}
		}
	}
	return mounts
}
