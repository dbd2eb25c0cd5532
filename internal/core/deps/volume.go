package deps

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kick-dev/kick/api/v1alpha1"
)

// part is one Secret or ConfigMap whose content a volume holds.
type part struct {
	source Source
	// items are the keys that the volume holds, nil for all.
	items    []corev1.KeyToPath
	optional bool
}

// partsOf lists the Secrets and ConfigMaps whose content a volume holds.
func partsOf(volume *corev1.Volume) []part {
	var parts []part
	if from := volume.Secret; from != nil {
		parts = append(parts, part{Source{v1alpha1.Secret, from.SecretName}, from.Items, yes(from.Optional)})
	}
	if from := volume.ConfigMap; from != nil {
		parts = append(parts, part{Source{v1alpha1.ConfigMap, from.Name}, from.Items, yes(from.Optional)})
	}
	if volume.Projected == nil {
		return parts
	}
	for _, projection := range volume.Projected.Sources {
		if from := projection.Secret; from != nil {
			parts = append(parts, part{Source{v1alpha1.Secret, from.Name}, from.Items, yes(from.Optional)})
		}
		if from := projection.ConfigMap; from != nil {
			parts = append(parts, part{Source{v1alpha1.ConfigMap, from.Name}, from.Items, yes(from.Optional)})
		}
	}
	return parts
}

// keysAt lists the keys that a mount with this subPath shows, nothing for all of them.
func (p part) keysAt(subPath string) []string {
	if len(p.items) == 0 {
		if subPath == "" {
			return nil
		}
		key, _, _ := strings.Cut(subPath, "/")
		return []string{key}
	}
	var all, shown []string
	for _, item := range p.items {
		all = append(all, item.Key)
		if within(item.Path, subPath) || within(subPath, item.Path) {
			shown = append(shown, item.Key)
		}
	}
	if len(shown) == 0 {
		return all // A subPath that shows nothing is no reason to miss a change.
	}
	return shown
}

// within tells whether a path is the directory or lies in it; everything lies in the empty path.
func within(path, directory string) bool {
	return directory == "" || path == directory || strings.HasPrefix(path, directory+"/")
}

// mount is where a container sees a volume.
type mount struct {
	container string
	// subPath shows only a part of the volume, empty for all of it. An expression counts as all.
	subPath string
}

// mountsByVolume maps each volume to its mounts.
func mountsByVolume(spec *corev1.PodSpec) map[string][]mount {
	mounts := map[string][]mount{}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			for _, m := range containers[i].VolumeMounts {
				mounts[m.Name] = append(mounts[m.Name], mount{container: containers[i].Name, subPath: strings.Trim(m.SubPath, "/")})
			}
		}
	}
	return mounts
}
