package main

import (
	"bytes"
	"fmt"
	"math"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
)

// What every namespace of a shape holds, and the sizes of what KICK should not care about.
const (
	workloadsPerNamespace = 10
	releasesPerNamespace  = 10
	othersPerNamespace    = 20
	otherBytes            = 2 << 10
)

// Shape S, at scale 1.
const (
	namespacesOfS = 200
	sharersOfS    = 300
	burstOfS      = 500
	touchesOfS    = 200
	missedOfS     = 20
	waitingOfS    = 50
)

// sharedNamespace holds the workloads that share one ConfigMap, sharedName its name.
const (
	sharedNamespace = "bench-shared"
	sharedName      = "shared"
)

// Shape says how big a cluster is, and how much of it changes at a time.
type Shape struct {
	// Namespaces with workloadsPerNamespace Deployments each, every one with a Secret and a ConfigMap of its own.
	Namespaces int `json:"namespaces"`
	// Sharers are Deployments of one more namespace that consume one and the same ConfigMap.
	Sharers int `json:"sharers"`
	// Burst, Touches, Missed and Waiting are the numbers of sources that the phases of these names change.
	Burst   int `json:"burst"`
	Touches int `json:"touches"`
	Missed  int `json:"missed"`
	Waiting int `json:"waiting"`
	// ReleaseBytes is how large each release record of Helm is.
	ReleaseBytes int `json:"releaseBytes"`
}

// scaled is shape S times a factor, with at least one of everything.
func scaled(factor float64) Shape {
	times := func(n int) int { return max(1, int(math.Round(float64(n)*factor))) }
	shape := Shape{
		Namespaces: times(namespacesOfS), Sharers: times(sharersOfS), Burst: times(burstOfS), Touches: times(touchesOfS),
		Missed: times(missedOfS), Waiting: times(waitingOfS),
	}
	workloads := shape.Namespaces * workloadsPerNamespace
	shape.Burst, shape.Touches = min(shape.Burst, workloads), min(shape.Touches, workloads)
	shape.Missed, shape.Waiting = min(shape.Missed, workloads), min(shape.Waiting, workloads)
	return shape
}

// Workloads of the shape, all in all.
func (s Shape) Workloads() int { return s.Namespaces*workloadsPerNamespace + s.Sharers }

// Sources that some workload consumes.
func (s Shape) Sources() int { return 2*s.Namespaces*workloadsPerNamespace + 1 }

// app names the workload of an index, and its own Secret and ConfigMap. Neighbours in the index are in different
// namespaces.
func (s Shape) app(index int) client.ObjectKey {
	return client.ObjectKey{
		Namespace: namespaceOf(index % s.Namespaces),
		Name:      fmt.Sprintf("app-%d", index/s.Namespaces%workloadsPerNamespace),
	}
}

func namespaceOf(index int) string { return fmt.Sprintf("bench-%03d", index) }

// namespaces of the shape.
func (s Shape) namespaces() []string {
	names := []string{sharedNamespace}
	for i := range s.Namespaces {
		names = append(names, namespaceOf(i))
	}
	return names
}

// stock is what the shape holds beside workloads: it has to be there before them, as in a cluster that was deployed in
// order.
func (s Shape) stock() []client.Object {
	objects := []client.Object{configMap(sharedNamespace, sharedName, 1)}
	for n := range s.Namespaces {
		namespace := namespaceOf(n)
		for i := range releasesPerNamespace {
			release := secret(namespace, fmt.Sprintf("sh.helm.release.v1.app-%d.v1", i), s.ReleaseBytes)
			release.Type = "helm.sh/release.v1"
			objects = append(objects, release)
		}
		for i := range othersPerNamespace / 2 {
			objects = append(objects,
				secret(namespace, fmt.Sprintf("other-%d", i), otherBytes), configMap(namespace, fmt.Sprintf("other-%d", i), otherBytes))
		}
	}
	for i := range s.Namespaces * workloadsPerNamespace {
		key := s.app(i)
		objects = append(objects, secret(key.Namespace, key.Name, 1), configMap(key.Namespace, key.Name, 1))
	}
	return objects
}

// workloads of the shape.
func (s Shape) workloads() []client.Object {
	var objects []client.Object
	for i := range s.Namespaces * workloadsPerNamespace {
		key := s.app(i)
		objects = append(objects, deployment(key, corev1.EnvFromSource{
			SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: key.Name}},
		}, fromConfigMap(key.Name)))
	}
	for i := range s.Sharers {
		objects = append(objects, deployment(sharer(i), fromConfigMap(sharedName)))
	}
	return objects
}

func sharer(index int) client.ObjectKey {
	return client.ObjectKey{Namespace: sharedNamespace, Name: fmt.Sprintf("sharer-%d", index)}
}

func fromConfigMap(name string) corev1.EnvFromSource {
	return corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}
}

func secret(namespace, name string, size int) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Data:       map[string][]byte{"value": bytes.Repeat([]byte{'x'}, size)},
	}
}

func configMap(namespace, name string, size int) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Data:       map[string]string{"value": string(bytes.Repeat([]byte{'x'}, size))},
	}
}

func deployment(key client.ObjectKey, sources ...corev1.EnvFromSource) *appsv1.Deployment {
	labels := map[string]string{"app": key.Name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app", EnvFrom: sources}}},
			},
		},
	}
}

// policyName is the name of the policy of every namespace.
const policyName = "everything"

// policy manages every workload of a namespace and acts at once.
func policy(namespace string) *v1alpha1.KickPolicy {
	return &v1alpha1.KickPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: policyName},
		Spec:       v1alpha1.KickPolicySpec{Restart: v1alpha1.Restart{QuietPeriod: &metav1.Duration{}, MinInterval: &metav1.Duration{}}},
	}
}
