package faults

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/workload"
	"github.com/kick-dev/kick/internal/core/request"
	"github.com/kick-dev/kick/test/testbed"
)

// consumer is a workload and a source that its Pods read.
type consumer struct {
	namespace  string
	kind       v1alpha1.WorkloadKind
	name       string
	sourceKind v1alpha1.SourceKind
	source     string
	// clock is by how much the clocks of the nodes are wrong that its Pods are on.
	clock string
}

// kindsOf are the kinds of workload and source that consumers of several kinds are made of in turn.
var kindsOf = []struct {
	workload v1alpha1.WorkloadKind
	source   v1alpha1.SourceKind
}{
	{v1alpha1.Deployment, v1alpha1.Secret},
	{v1alpha1.StatefulSet, v1alpha1.ConfigMap},
	{v1alpha1.DaemonSet, v1alpha1.Secret},
	{v1alpha1.Deployment, v1alpha1.ConfigMap},
}

// mixed is the i-th of consumers of several kinds, with a source of its own.
func mixed(namespace string, i int) consumer {
	name, kinds := fmt.Sprint("w", i), kindsOf[i%len(kindsOf)]
	return consumer{namespace: namespace, kind: kinds.workload, name: name, sourceKind: kinds.source, source: name}
}

// String is the kind and the name.
func (c consumer) String() string { return fmt.Sprintf("%s %s/%s", c.kind, c.namespace, c.name) }

// template consumes the source, and further ConfigMaps.
func (c consumer) template(configMaps ...string) corev1.PodTemplateSpec {
	pod := template(c.name, c.source)
	if c.clock != "" {
		pod.Annotations = map[string]string{clockAnnotation: c.clock}
		pod.Labels[testbed.LabelHold] = "true" // The ordinary stages are not to start it.
	}
	container := &pod.Spec.Containers[0]
	if c.sourceKind == v1alpha1.ConfigMap {
		container.EnvFrom = nil
		configMaps = append(configMaps, c.source)
	}
	for _, name := range configMaps {
		container.EnvFrom = append(container.EnvFrom, corev1.EnvFromSource{
			ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}},
		})
	}
	return pod
}

// workload is the workload as it is to be created.
func (c consumer) workload(configMaps ...string) client.Object {
	meta, selector := named(c.namespace, c.name), &metav1.LabelSelector{MatchLabels: map[string]string{"app": c.name}}
	switch c.kind {
	case v1alpha1.StatefulSet:
		return &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Selector: selector, Template: c.template(configMaps...)}}
	case v1alpha1.DaemonSet:
		return &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: c.template(configMaps...)}}
	default:
		return &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Selector: selector, Template: c.template(configMaps...)}}
	}
}

// sourceObject is the source with a value.
func (c consumer) sourceObject(value string) client.Object {
	if c.sourceKind == v1alpha1.ConfigMap {
		return configMap(c.namespace, c.source, value)
	}
	return secret(c.namespace, c.source, value)
}

func configMap(namespace, name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: named(namespace, name), Data: map[string]string{"key": value}}
}

// rewrite gives the source a new value and returns it as the API server has it then.
func (c consumer) rewrite(ctx context.Context, value string) (client.Object, error) {
	return c.rewriteThrough(ctx, k8s, value)
}

// rewriteThrough is rewrite by a client of its own.
func (c consumer) rewriteThrough(ctx context.Context, server client.Client, value string) (client.Object, error) {
	field := "stringData"
	if c.sourceKind == v1alpha1.ConfigMap {
		field = "data"
	}
	object := c.sourceObject("")
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{%q:{"key":%q}}`, field, value))
	return object, poll(ctx, patience, func() error { return server.Patch(ctx, object, patch) })
}

// read reads the workload.
func (c consumer) read(ctx context.Context) (*workload.Workload, error) {
	object, _ := workload.NewObject(c.kind)
	if err := k8s.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: c.name}, object); err != nil {
		return nil, err
	}
	wrapped, _ := workload.Of(object)
	return wrapped, nil
}

// complete tells why the workload is not rolled out, if so.
func (c consumer) complete(ctx context.Context) error {
	found, err := c.read(ctx)
	if err != nil {
		return err
	}
	if state := found.Rollout(); !state.Complete {
		return fmt.Errorf("%s: %s", c, state.Message)
	}
	return nil
}

// request reads the request of the workload.
func (c consumer) request(ctx context.Context) (*v1alpha1.KickRequest, error) {
	found := &v1alpha1.KickRequest{}
	return found, k8s.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: request.Name(c.kind, c.name)}, found)
}

// record reads what the ledger holds of the source.
func (c consumer) record(ctx context.Context) (*v1alpha1.SourceRecord, error) {
	ledger, err := ledgerOf(ctx, c.namespace)
	if err != nil {
		return nil, err
	}
	for i := range ledger.Records {
		if ledger.Records[i].Kind == c.sourceKind && ledger.Records[i].Name == c.source {
			return &ledger.Records[i], nil
		}
	}
	return nil, fmt.Errorf("the ledger %s has no record of %s %s", c.namespace, c.sourceKind, c.source)
}

// generation counts the versions of the workload's spec: where nobody else changes it, each stamp is one.
func (c consumer) generation(ctx context.Context) (int64, error) {
	found, err := c.read(ctx)
	if err != nil {
		return 0, err
	}
	return found.Generation(), nil
}

// delivered tells why the ledger has not delivered the present version of the source, if so.
func (c consumer) delivered(ctx context.Context) error {
	source := c.sourceObject("")
	if err := k8s.Get(ctx, client.ObjectKeyFromObject(source), source); err != nil {
		return err
	}
	record, err := c.record(ctx)
	if err != nil {
		return err
	}
	if record.ResourceVersion != source.GetResourceVersion() {
		return fmt.Errorf("the ledger has version %s of %s %s/%s, which is at %s", record.ResourceVersion, c.sourceKind, c.namespace,
			c.source, source.GetResourceVersion())
	}
	if record.Pending {
		return fmt.Errorf("the change of %s/%s is still pending in the ledger", c.namespace, c.source)
	}
	return nil
}

// settled tells why KICK is not at rest after a change of the source, if so: the ledger has delivered the change, and the
// request has ended.
func (c consumer) settled(ctx context.Context, phases ...v1alpha1.Phase) error {
	if err := c.delivered(ctx); err != nil {
		return err
	}
	return c.ended(ctx, phases...)
}

// ended tells why the request has not ended, if so: it is in one of the given phases and covers the change that the
// ledger holds, the rollout is complete, and after a restart the Pods have the stamp of the request.
func (c consumer) ended(ctx context.Context, phases ...v1alpha1.Phase) error {
	found, err := c.request(ctx)
	if err != nil {
		return err
	}
	reached := false
	for _, phase := range phases {
		reached = reached || found.Status.Phase == phase
	}
	if !reached || found.Status.CurrentRollout == nil {
		return fmt.Errorf("request %s/%s is %q: %+v", c.namespace, found.Name, found.Status.Phase, found.Status.Conditions)
	}
	record, err := c.record(ctx)
	if err != nil {
		return err
	}
	covered := false
	for _, cover := range found.Status.CurrentRollout.Covers {
		covered = covered || cover.Kind == c.sourceKind && cover.Name == c.source && !cover.ChangedAt.Time.Before(record.ChangedAt.Time)
	}
	if !covered {
		return fmt.Errorf("request %s/%s covers %v, the ledger has %s", c.namespace, found.Name, found.Status.CurrentRollout.Covers,
			record.ChangedAt.Format(time.RFC3339Nano))
	}
	if err := c.complete(ctx); err != nil {
		return err
	}
	if found.Status.Phase != v1alpha1.PhaseSucceeded {
		return nil
	}
	return c.running(ctx, found.Status.CurrentRollout.Stamp)
}

// pods lists the Pods that are not being deleted.
func (c consumer) pods(ctx context.Context) ([]corev1.Pod, error) {
	var pods corev1.PodList
	if err := k8s.List(ctx, &pods, client.InNamespace(c.namespace), client.MatchingLabels{"app": c.name}); err != nil {
		return nil, err
	}
	var live []corev1.Pod
	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp == nil {
			live = append(live, pods.Items[i])
		}
	}
	return live, nil
}

// running tells why not all Pods carry a stamp, if so.
func (c consumer) running(ctx context.Context, stamp string) error {
	pods, err := c.pods(ctx)
	if err != nil {
		return err
	}
	if len(pods) == 0 {
		return fmt.Errorf("%s has no Pods", c)
	}
	for i := range pods {
		if got := pods[i].Annotations[v1alpha1.RestartedAtAnnotation]; got != stamp {
			return fmt.Errorf("pod %s/%s has the stamp %q and the request %q", c.namespace, pods[i].Name, got, stamp)
		}
	}
	return nil
}
