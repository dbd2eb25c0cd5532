package integration

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
)

// use makes a Pod template consume something.
type use func(*corev1.PodTemplateSpec)

func app(template *corev1.PodTemplateSpec) *corev1.Container { return &template.Spec.Containers[0] }

func named(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }

func envFromSecret(name string) use {
	return func(t *corev1.PodTemplateSpec) {
		app(t).EnvFrom = append(app(t).EnvFrom, corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: named(name)}})
	}
}

func envFromConfigMap(name string) use {
	return func(t *corev1.PodTemplateSpec) {
		app(t).EnvFrom = append(app(t).EnvFrom, corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: named(name)}})
	}
}

func envOfSecretKey(name string) use {
	return func(t *corev1.PodTemplateSpec) { app(t).Env = append(app(t).Env, secretKey(name)) }
}

func envOfKey(name, key string) use {
	return func(t *corev1.PodTemplateSpec) {
		variable := secretKey(name)
		variable.ValueFrom.SecretKeyRef.Key = key
		app(t).Env = append(app(t).Env, variable)
	}
}

func itemsOfSecret(name string, keys ...string) use {
	volume := &corev1.SecretVolumeSource{SecretName: name}
	for _, key := range keys {
		volume.Items = append(volume.Items, corev1.KeyToPath{Key: key, Path: key})
	}
	return mounted(corev1.VolumeSource{Secret: volume}, "")
}

func replicas(n int32) *int32 { return &n }

func secretKey(name string) corev1.EnvVar {
	return corev1.EnvVar{Name: "VALUE", ValueFrom: &corev1.EnvVarSource{
		SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: named(name), Key: "key"},
	}}
}

func envOfConfigMapKey(name string) use {
	return func(t *corev1.PodTemplateSpec) {
		app(t).Env = append(app(t).Env, corev1.EnvVar{Name: "VALUE", ValueFrom: &corev1.EnvVarSource{
			ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: named(name), Key: "key"},
		}})
	}
}

func mounted(source corev1.VolumeSource, subPath string) use {
	return func(t *corev1.PodTemplateSpec) {
		t.Spec.Volumes = append(t.Spec.Volumes, corev1.Volume{Name: "volume", VolumeSource: source})
		app(t).VolumeMounts = append(app(t).VolumeMounts, corev1.VolumeMount{Name: "volume", MountPath: "/mnt", SubPath: subPath})
	}
}

func secretVolume(name string) use {
	return mounted(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name}}, "")
}

func configMapVolume(name, subPath string) use {
	return mounted(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: named(name)}}, subPath)
}

func projected(sources ...corev1.VolumeProjection) use {
	return mounted(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: sources}}, "")
}

func projectedSecret(name string) corev1.VolumeProjection {
	return corev1.VolumeProjection{Secret: &corev1.SecretProjection{LocalObjectReference: named(name)}}
}

func projectedConfigMap(name string) corev1.VolumeProjection {
	return corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: named(name)}}
}

func optionalSecret(name string) use {
	yes := true
	return func(t *corev1.PodTemplateSpec) {
		app(t).EnvFrom = append(app(t).EnvFrom, corev1.EnvFromSource{
			SecretRef: &corev1.SecretEnvSource{LocalObjectReference: named(name), Optional: &yes},
		})
	}
}

func initContainer(name string, restart corev1.ContainerRestartPolicy) use {
	return func(t *corev1.PodTemplateSpec) {
		container := corev1.Container{Name: "init", Image: "app", Env: []corev1.EnvVar{secretKey(name)}}
		if restart != "" {
			container.RestartPolicy = &restart
		}
		t.Spec.InitContainers = append(t.Spec.InitContainers, container)
	}
}

func pullSecret(name string) use {
	return func(t *corev1.PodTemplateSpec) {
		t.Spec.ImagePullSecrets = append(t.Spec.ImagePullSecrets, named(name))
	}
}

func podLabel(key, value string) use {
	return func(t *corev1.PodTemplateSpec) { t.Labels[key] = value }
}

func template(name string, uses []use) corev1.PodTemplateSpec {
	t := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": selectorValue(name)}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app"}}},
	}
	for _, u := range uses {
		u(&t)
	}
	return t
}

// selectorValue makes a label value of a name that may be longer than one.
func selectorValue(name string) string { return name[:min(len(name), 60)] }

func selecting(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": selectorValue(name)}}
}

func metadata(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": selectorValue(name)}}
}

func deployment(namespace, name string, uses ...use) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metadata(namespace, name),
		Spec:       appsv1.DeploymentSpec{Selector: selecting(name), Template: template(name, uses)},
	}
}

func statefulSet(namespace, name string, uses ...use) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		ObjectMeta: metadata(namespace, name),
		Spec:       appsv1.StatefulSetSpec{Selector: selecting(name), Template: template(name, uses), ServiceName: "none"},
	}
}

func daemonSet(namespace, name string, uses ...use) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{
		ObjectMeta: metadata(namespace, name),
		Spec:       appsv1.DaemonSetSpec{Selector: selecting(name), Template: template(name, uses)},
	}
}

func secret(namespace, name, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metadata(namespace, name), Data: map[string][]byte{"key": []byte(value)}}
}

func configMap(namespace, name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metadata(namespace, name), Data: map[string]string{"key": value}}
}

// everything is a policy that manages every workload of a namespace and acts at once.
func everything(namespace string) *v1alpha1.KickPolicy {
	return &v1alpha1.KickPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "everything"},
		Spec:       v1alpha1.KickPolicySpec{Restart: v1alpha1.Restart{QuietPeriod: &metav1.Duration{}, MinInterval: &metav1.Duration{}}},
	}
}

// templateOf is the Pod template of a workload.
func templateOf(workload client.Object) *corev1.PodTemplateSpec {
	switch w := workload.(type) {
	case *appsv1.Deployment:
		return &w.Spec.Template
	case *appsv1.StatefulSet:
		return &w.Spec.Template
	case *appsv1.DaemonSet:
		return &w.Spec.Template
	default:
		return nil
	}
}

func kindOf(workload client.Object) v1alpha1.WorkloadKind {
	switch workload.(type) {
	case *appsv1.StatefulSet:
		return v1alpha1.StatefulSet
	case *appsv1.DaemonSet:
		return v1alpha1.DaemonSet
	default:
		return v1alpha1.Deployment
	}
}
