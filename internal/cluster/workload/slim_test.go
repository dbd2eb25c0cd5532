package workload_test

import (
	"reflect"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/workload"
)

func TestSlimKeepsWhatDecisionsLookAt(t *testing.T) {
	name := corev1.LocalObjectReference{Name: "db"}
	full := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web", Namespace: "shop", UID: "u", Generation: 3, Labels: map[string]string{"app": "web"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
			Annotations:   map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "deployment.kubernetes.io/revision": "2"},
		},
		Spec: appsv1.DeploymentSpec{Paused: true, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.RestartedAtAnnotation: "now", "checksum": "x"}},
			Spec: corev1.PodSpec{
				InitContainers: []corev1.Container{{Name: "init", EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: name}}}}},
				Containers: []corev1.Container{{
					Name: "app", Image: "app:1", Command: []string{"run"},
					Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}},
					Env: []corev1.EnvVar{
						{Name: "PLAIN", Value: "a long value"},
						{Name: "KEY", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: name, Key: "k"}}},
						{Name: "POD", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
					},
					VolumeMounts: []corev1.VolumeMount{{Name: "v", MountPath: "/v"}, {Name: "tmp", MountPath: "/tmp"}},
				}},
				Volumes: []corev1.Volume{
					{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "tls"}}},
					{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				},
			},
		}},
	}
	before, _ := workload.Of(full.DeepCopy())
	object, err := workload.Slim(full)
	if err != nil {
		t.Fatal(err)
	}
	slim := object.(*appsv1.Deployment)
	after, _ := workload.Of(slim)

	if diff := cmp.Diff(before.References(), after.References()); diff != "" {
		t.Errorf("references (-full +slim):\n%s", diff)
	}
	if before.Stamp() != after.Stamp() || before.Rollout() != after.Rollout() || before.TargetRef() != after.TargetRef() {
		t.Error("stamp, rollout or target differ")
	}
	if got := slim.Annotations["deployment.kubernetes.io/revision"]; got != "2" {
		t.Errorf("revision annotation %q", got)
	}
	app := slim.Spec.Template.Spec.Containers[0]
	if app.Image != "" || len(app.Command) > 0 || len(app.Env) != 1 || slim.ManagedFields != nil ||
		len(slim.Spec.Template.Spec.Volumes) != 1 || slim.Annotations[corev1.LastAppliedConfigAnnotation] != "" {
		t.Errorf("not slim: %+v", slim)
	}
}

// webWithSidecars consumes sources by its containers app and init; others of its containers read none, and one of its volumes
// is mounted by none.
func webWithSidecars(name string) *appsv1.Deployment {
	db := corev1.LocalObjectReference{Name: "db"}
	labels := func() map[string]string { return map[string]string{"app": "web"} }
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "shop", Labels: labels(), Finalizers: []string{"f"},
			OwnerReferences: []metav1.OwnerReference{{Name: "owner"}}, Annotations: map[string]string{"deployment.kubernetes.io/revision": "2"},
		},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels()}, Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				InitContainers: []corev1.Container{
					{Name: "proxy", VolumeMounts: []corev1.VolumeMount{{Name: "tmp"}}},
					{Name: "init", VolumeMounts: []corev1.VolumeMount{{Name: "tls", SubPath: "tls.crt", MountPath: "/tls"}, {Name: "tmp"}}},
				},
				Containers: []corev1.Container{
					{Name: "log", Env: []corev1.EnvVar{{Name: "PLAIN", Value: "v"}}},
					{Name: "app", EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: db}}}},
				},
				Volumes: []corev1.Volume{
					{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
					{Name: "tls", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "tls"}}},
					{Name: "idle", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: db}}},
				},
			}},
		},
	}
}

func slim(t *testing.T, object *appsv1.Deployment) *appsv1.Deployment {
	t.Helper()
	got, err := workload.Slim(object)
	if err != nil {
		t.Fatal(err)
	}
	return got.(*appsv1.Deployment)
}

func TestSlimLeavesOutContainersThatReadNoSource(t *testing.T) {
	full := webWithSidecars("web")
	want := full.DeepCopy()
	want.OwnerReferences, want.Finalizers, want.Spec.Strategy = nil, nil, appsv1.DeploymentStrategy{}
	spec := &want.Spec.Template.Spec
	spec.InitContainers = []corev1.Container{{Name: "init", VolumeMounts: []corev1.VolumeMount{{Name: "tls", SubPath: "tls.crt"}}}}
	spec.Containers, spec.Volumes = spec.Containers[1:], spec.Volumes[1:]
	before, _ := workload.Of(full.DeepCopy())
	once := slim(t, full)
	if diff := cmp.Diff(want, once); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	after, _ := workload.Of(once)
	if diff := cmp.Diff(before.References(), after.References()); diff != "" || len(after.References()) != 3 {
		t.Errorf("references (-full +slim):\n%s", diff)
	}
	if diff := cmp.Diff(want, slim(t, once)); diff != "" {
		t.Errorf("slimmed twice (-want +got):\n%s", diff)
	}
}

func TestSlimWorkloadsShareWhatTheySayAlike(t *testing.T) {
	first, second := slim(t, webWithSidecars("web")), slim(t, webWithSidecars("api"))
	for name, pair := range map[string][2]map[string]string{
		"labels":              {first.Labels, second.Labels},
		"selector and labels": {first.Spec.Selector.MatchLabels, first.Labels},
		"annotations":         {first.Annotations, second.Annotations},
	} {
		if reflect.ValueOf(pair[0]).Pointer() != reflect.ValueOf(pair[1]).Pointer() {
			t.Errorf("%s: two copies of %v", name, pair[0])
		}
	}
	if unsafe.StringData(first.Namespace) != unsafe.StringData(second.Namespace) {
		t.Error("two copies of the namespace")
	}
}

func TestOfKnowsTheThreeKinds(t *testing.T) {
	for _, object := range workload.Objects() {
		if _, ok := workload.Of(object); !ok {
			t.Errorf("%T is not known", object)
		}
	}
	if _, ok := workload.Of(&corev1.Pod{}); ok {
		t.Error("a Pod is taken for a workload")
	}
}
