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
	// Whole is true where every key of the source is consumed. Otherwise Keys lists those that are, sorted.
	Whole bool
	Keys  []string
	// Required is true where new Pods do not start without the source, and RequiredKeys lists the keys they do not start
	// without, sorted.
	Required     bool
	RequiredKeys []string
}

// Extract returns the sources that a Pod, or a Pod template, consumes through env, envFrom, secret, configMap and projected
// volumes, in containers, init containers and sidecars, sorted by source. Image pull secrets, service account
// tokens and credentials of volume drivers are not read by containers and do not count.
func Extract(spec *corev1.PodSpec) []Reference {
	found := collector{}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			found.environment(&containers[i])
		}
	}
	mounts := mountsByVolume(spec)
	for i := range spec.Volumes {
		volume := &spec.Volumes[i]
		for _, part := range partsOf(volume) {
			found.volume(part, mounts[volume.Name])
		}
	}
	return found.references()
}

// collector merges the uses of each source.
type collector map[Source]*Reference

// add records one use of a source. Without keys the whole source is consumed.
func (c collector) add(source Source, reader Reader, optional bool, keys ...string) *Reference {
	if source.Name == "" {
		return &Reference{} // The API server admits an empty name in some references; it refers to nothing.
	}
	reference := c[source]
	if reference == nil {
		reference = &Reference{Source: source}
		c[source] = reference
	}
	reference.Readers = append(reference.Readers, reader)
	reference.Whole = reference.Whole || len(keys) == 0
	reference.Keys = append(reference.Keys, keys...)
	reference.Required = reference.Required || !optional
	return reference
}

// key records the use of a single key by the environment of a container.
func (c collector) key(source Source, reader Reader, optional *bool, key string) {
	reference := c.add(source, reader, yes(optional), key)
	if !yes(optional) {
		reference.RequiredKeys = append(reference.RequiredKeys, key)
	}
}

func (c collector) environment(container *corev1.Container) {
	reader := Reader{Container: container.Name, Channel: Environment}
	for _, from := range container.EnvFrom {
		if ref := from.SecretRef; ref != nil {
			c.add(Source{v1alpha1.Secret, ref.Name}, reader, yes(ref.Optional))
		}
		if ref := from.ConfigMapRef; ref != nil {
			c.add(Source{v1alpha1.ConfigMap, ref.Name}, reader, yes(ref.Optional))
		}
	}
	for _, variable := range container.Env {
		if variable.ValueFrom == nil {
			continue
		}
		if ref := variable.ValueFrom.SecretKeyRef; ref != nil {
			c.key(Source{v1alpha1.Secret, ref.Name}, reader, ref.Optional, ref.Key)
		}
		if ref := variable.ValueFrom.ConfigMapKeyRef; ref != nil {
			c.key(Source{v1alpha1.ConfigMap, ref.Name}, reader, ref.Optional, ref.Key)
		}
	}
}

func (c collector) volume(part part, mounts []mount) {
	if len(mounts) == 0 {
		mounts = []mount{{}}
	}
	for _, m := range mounts {
		reference := c.add(part.source, Reader{Container: m.container, Channel: Volume}, part.optional, part.keysAt(m.subPath)...)
		if part.optional {
			continue
		}
		for _, item := range part.items {
			reference.RequiredKeys = append(reference.RequiredKeys, item.Key)
		}
	}
}

func (c collector) references() []Reference {
	result := make([]Reference, 0, len(c))
	for _, reference := range c {
		slices.SortFunc(reference.Readers, func(a, b Reader) int {
			return cmp.Or(cmp.Compare(a.Container, b.Container), cmp.Compare(a.Channel, b.Channel))
		})
		reference.Readers = slices.Compact(reference.Readers)
		reference.Keys = distinct(reference.Keys)
		reference.RequiredKeys = distinct(reference.RequiredKeys)
		if reference.Whole {
			reference.Keys = nil
		}
		result = append(result, *reference)
	}
	slices.SortFunc(result, func(a, b Reference) int { return a.Compare(b.Source) })
	return result
}

func distinct(keys []string) []string {
	slices.Sort(keys)
	return slices.Compact(keys)
}

// yes reads an optional flag of the API.
func yes(flag *bool) bool { return flag != nil && *flag }
