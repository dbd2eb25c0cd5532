package kubelet

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// environment resolves the variables of a container as a kubelet does; values
// may refer to variables before them. Literal values are placed on this machine
// by place.
func (c *container) environment(place func(string) string) (map[string]string, error) {
	all := map[string]string{}
	for _, source := range c.spec.EnvFrom {
		if err := c.importAll(all, source); err != nil {
			return nil, err
		}
	}
	for _, variable := range c.spec.Env {
		if variable.ValueFrom == nil {
			all[variable.Name] = place(expand(variable.Value, all))
			continue
		}
		value, found, err := c.valueFrom(variable.ValueFrom)
		if err != nil {
			return nil, fmt.Errorf("resolve variable %s: %w", variable.Name, err)
		}
		if found {
			all[variable.Name] = value
		}
	}
	return all, nil
}

func (c *container) importAll(all map[string]string, source corev1.EnvFromSource) error {
	volumes, namespace := c.worker.volumes, c.worker.pod.Load().Namespace
	var content payload
	var err error
	switch {
	case source.SecretRef != nil:
		content, err = volumes.secret(namespace, source.SecretRef.Name, nil, source.SecretRef.Optional)
	case source.ConfigMapRef != nil:
		content, err = volumes.configMap(namespace, source.ConfigMapRef.Name, nil, source.ConfigMapRef.Optional)
	}
	if err != nil {
		return fmt.Errorf("import variables: %w", err)
	}
	for _, key := range slices.Sorted(maps.Keys(content)) {
		all[source.Prefix+key] = string(content[key])
	}
	return nil
}

func (c *container) valueFrom(source *corev1.EnvVarSource) (value string, found bool, err error) {
	pod := c.worker.pod.Load()
	switch {
	case source.FieldRef != nil:
		value, err = fieldValue(pod, c.worker.ip, source.FieldRef.FieldPath)
		return value, err == nil, err
	case source.ResourceFieldRef != nil:
		value, err = resourceValue(pod, c.spec.Name, source.ResourceFieldRef)
		return value, err == nil, err
	case source.SecretKeyRef != nil:
		ref := source.SecretKeyRef
		content, err := c.worker.volumes.secret(pod.Namespace, ref.Name, nil, ref.Optional)
		return keyOf(content, ref.Key, ref.Optional, err)
	case source.ConfigMapKeyRef != nil:
		ref := source.ConfigMapKeyRef
		content, err := c.worker.volumes.configMap(pod.Namespace, ref.Name, nil, ref.Optional)
		return keyOf(content, ref.Key, ref.Optional, err)
	default:
		return "", false, errors.New("unknown source")
	}
}

func keyOf(content payload, key string, optional *bool, err error) (string, bool, error) {
	if err != nil {
		return "", false, err
	}
	value, ok := content[key]
	if !ok && !ptr.Deref(optional, false) {
		return "", false, fmt.Errorf("key %s not found", key)
	}
	return string(value), ok, nil
}

// fieldValue is the value of a downward API field.
func fieldValue(pod *corev1.Pod, podIP, path string) (string, error) {
	if key, ok := subscript(path, "metadata.labels"); ok {
		return pod.Labels[key], nil
	}
	if key, ok := subscript(path, "metadata.annotations"); ok {
		return pod.Annotations[key], nil
	}
	switch path {
	case "metadata.name":
		return pod.Name, nil
	case "metadata.namespace":
		return pod.Namespace, nil
	case "metadata.uid":
		return string(pod.UID), nil
	case "metadata.labels":
		return formatMap(pod.Labels), nil
	case "metadata.annotations":
		return formatMap(pod.Annotations), nil
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "status.podIP", "status.podIPs":
		return podIP, nil
	case "status.hostIP", "status.hostIPs":
		return "127.0.0.1", nil
	default:
		return "", fmt.Errorf("field %s is not supported", path)
	}
}

// subscript takes the key from a path such as metadata.labels['key'].
func subscript(path, field string) (string, bool) {
	rest, ok := strings.CutPrefix(path, field+"['")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(rest, "']")
}

func formatMap(m map[string]string) string {
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		lines = append(lines, fmt.Sprintf("%s=%q", key, m[key]))
	}
	return strings.Join(lines, "\n")
}

// unlimited is what a container without a limit is told: all of a Node.
var unlimited = corev1.ResourceList{
	corev1.ResourceCPU:              resource.MustParse("1k"),
	corev1.ResourceMemory:           resource.MustParse("1Ti"),
	corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
}

// resourceValue is a limit or request of a container, in units of the divisor,
// rounded up.
func resourceValue(pod *corev1.Pod, container string, ref *corev1.ResourceFieldSelector) (string, error) {
	if ref.ContainerName != "" {
		container = ref.ContainerName
	}
	kind, name, _ := strings.Cut(ref.Resource, ".")
	for _, spec := range pod.Spec.Containers {
		if spec.Name != container {
			continue
		}
		list := spec.Resources.Limits
		if kind == "requests" {
			list = spec.Resources.Requests
		}
		quantity, ok := list[corev1.ResourceName(name)]
		if !ok && kind == "limits" {
			quantity = unlimited[corev1.ResourceName(name)]
		}
		divisor := ref.Divisor
		if divisor.IsZero() {
			divisor = resource.MustParse("1")
		}
		units := math.Ceil(quantity.AsApproximateFloat64() / divisor.AsApproximateFloat64())
		return strconv.FormatInt(int64(units), 10), nil
	}
	return "", fmt.Errorf("container %s not found", container)
}

// expand replaces $(NAME) by the value of a variable. An unknown name is kept,
// and $$ stands for a dollar sign.
func expand(text string, variables map[string]string) string {
	var out strings.Builder
	for {
		before, after, found := strings.Cut(text, "$")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		text = after
		if strings.HasPrefix(text, "$") {
			out.WriteString("$")
			text = text[1:]
			continue
		}
		name, rest, closed := strings.Cut(strings.TrimPrefix(text, "("), ")")
		value, known := variables[name]
		if strings.HasPrefix(text, "(") && closed && known {
			out.WriteString(value)
			text = rest
			continue
		}
		out.WriteString("$")
	}
}
