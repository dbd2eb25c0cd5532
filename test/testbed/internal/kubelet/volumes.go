package kubelet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
)

// payload is the content of a volume, by relative path.
type payload map[string][]byte

// volumes are the mounted files of one Pod.
type volumes struct {
	kubelet *Kubelet
	dir     string
	podIP   string

	mu     sync.Mutex
	tokens map[tokenKey]*token
	stored map[string]payload
}

func newVolumes(k *Kubelet, dir, podIP string) *volumes {
	return &volumes{
		kubelet: k, dir: dir, podIP: podIP,
		tokens: map[tokenKey]*token{}, stored: map[string]payload{},
	}
}

// folder is where the files of a volume are.
func (v *volumes) folder(name string) string { return filepath.Join(v.dir, name) }

// sync writes what changed. All volumes are tried; the error tells what is
// missing.
func (v *volumes) sync(ctx context.Context, pod *corev1.Pod) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	var problems []error
	for _, volume := range pod.Spec.Volumes {
		if err := v.syncOne(ctx, pod, volume); err != nil {
			problems = append(problems, fmt.Errorf("mount volume %s: %w", volume.Name, err))
		}
	}
	return errors.Join(problems...)
}

func (v *volumes) syncOne(ctx context.Context, pod *corev1.Pod, volume corev1.Volume) error {
	folder := v.folder(volume.Name)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	wanted, err := v.content(ctx, pod, volume)
	if err != nil || wanted == nil {
		return err
	}
	if stored, ok := v.stored[volume.Name]; ok && maps.EqualFunc(stored, wanted, bytes.Equal) {
		return nil
	}
	if err := replaceAtomically(folder, wanted); err != nil {
		return err
	}
	v.stored[volume.Name] = wanted
	return nil
}

// content is what a volume holds; nil for a volume that is only a folder.
func (v *volumes) content(ctx context.Context, pod *corev1.Pod, volume corev1.Volume) (payload, error) {
	switch {
	case volume.Secret != nil:
		s := volume.Secret
		return v.secret(pod.Namespace, s.SecretName, s.Items, s.Optional)
	case volume.ConfigMap != nil:
		c := volume.ConfigMap
		return v.configMap(pod.Namespace, c.Name, c.Items, c.Optional)
	case volume.DownwardAPI != nil:
		return v.downward(pod, volume.DownwardAPI.Items)
	case volume.Projected != nil:
		return v.projected(ctx, pod, volume.Projected.Sources)
	default:
		return nil, nil
	}
}

func (v *volumes) projected(ctx context.Context, pod *corev1.Pod, sources []corev1.VolumeProjection) (payload, error) {
	all := payload{}
	for _, source := range sources {
		var part payload
		var err error
		switch {
		case source.Secret != nil:
			part, err = v.secret(pod.Namespace, source.Secret.Name, source.Secret.Items, source.Secret.Optional)
		case source.ConfigMap != nil:
			part, err = v.configMap(pod.Namespace, source.ConfigMap.Name, source.ConfigMap.Items, source.ConfigMap.Optional)
		case source.DownwardAPI != nil:
			part, err = v.downward(pod, source.DownwardAPI.Items)
		case source.ServiceAccountToken != nil:
			part, err = v.token(ctx, pod, source.ServiceAccountToken)
		}
		if err != nil {
			return nil, err
		}
		maps.Copy(all, part)
	}
	return all, nil
}

func (v *volumes) secret(namespace, name string, items []corev1.KeyToPath, optional *bool) (payload, error) {
	secret, err := v.kubelet.secrets.Secrets(namespace).Get(name)
	if apierrors.IsNotFound(err) && ptr.Deref(optional, false) {
		return payload{}, nil
	}
	if err != nil {
		return nil, err
	}
	return pick(secret.Data, items, ptr.Deref(optional, false))
}

func (v *volumes) configMap(namespace, name string, items []corev1.KeyToPath, optional *bool) (payload, error) {
	configMap, err := v.kubelet.configMaps.ConfigMaps(namespace).Get(name)
	if apierrors.IsNotFound(err) && ptr.Deref(optional, false) {
		return payload{}, nil
	}
	if err != nil {
		return nil, err
	}
	data := maps.Clone(configMap.BinaryData)
	if data == nil {
		data = map[string][]byte{}
	}
	for key, value := range configMap.Data {
		data[key] = []byte(value)
	}
	return pick(data, items, ptr.Deref(optional, false))
}

func (v *volumes) downward(pod *corev1.Pod, items []corev1.DownwardAPIVolumeFile) (payload, error) {
	files := payload{}
	for _, item := range items {
		var value string
		var err error
		switch {
		case item.FieldRef != nil:
			value, err = fieldValue(pod, v.podIP, item.FieldRef.FieldPath)
		case item.ResourceFieldRef != nil:
			value, err = resourceValue(pod, "", item.ResourceFieldRef)
		}
		if err != nil {
			return nil, err
		}
		files[item.Path] = []byte(value)
	}
	return files, nil
}

// pick selects keys and renames them; without items all keys are files.
func pick(data map[string][]byte, items []corev1.KeyToPath, optional bool) (payload, error) {
	if len(items) == 0 {
		files := maps.Clone(data)
		if files == nil {
			files = payload{}
		}
		return files, nil
	}
	files := payload{}
	for _, item := range items {
		value, ok := data[item.Key]
		if !ok && !optional {
			return nil, fmt.Errorf("references non-existent key: %s", item.Key)
		}
		if ok {
			files[item.Path] = value
		}
	}
	return files, nil
}
