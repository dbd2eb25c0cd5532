package faults

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/workload"
)

// namespaces numbers the namespaces.
var namespaces atomic.Int64

// newNamespace makes a namespace for one test.
func newNamespace(t *testing.T) string {
	t.Helper()
	created := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("f-%d", namespaces.Add(1))}}
	if err := create(t.Context(), created); err != nil {
		t.Error(err) // The use of the namespace ends the test, in whatever goroutine this is.
	}
	t.Cleanup(func() { _ = k8s.Delete(context.Background(), created) })
	return created.Name
}

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": name}}
}

func secret(namespace, name, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: named(namespace, name), Data: map[string][]byte{"key": []byte(value)}}
}

// template consumes the Secret of a name.
func template(name, source string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app", EnvFrom: []corev1.EnvFromSource{
			{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: source}}},
		}}}},
	}
}

func deployment(namespace, name, source string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: named(namespace, name), Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}, Template: template(name, source),
		RevisionHistoryLimit: ptr.To[int32](1000),
	}}
}

// everything is a policy that manages every workload of a namespace and acts at once.
func everything(namespace string) *v1alpha1.KickPolicy {
	return &v1alpha1.KickPolicy{
		ObjectMeta: named(namespace, "everything"),
		Spec:       v1alpha1.KickPolicySpec{Restart: v1alpha1.Restart{QuietPeriod: &metav1.Duration{}, MinInterval: &metav1.Duration{}}},
	}
}

func create(ctx context.Context, objects ...client.Object) error {
	for _, object := range objects {
		err := poll(ctx, patience, func() error {
			err := k8s.Create(ctx, object)
			if apierrors.IsAlreadyExists(err) {
				return nil // An answer got lost on a slow machine.
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// rewrite gives a Secret a new value and returns when the API server had it.
func rewrite(ctx context.Context, namespace, name, value string) error {
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"stringData":{"key":%q}}`, value))
	return poll(ctx, patience, func() error {
		return k8s.Patch(ctx, &corev1.Secret{ObjectMeta: named(namespace, name)}, patch)
	})
}

// rolledOut reads a Deployment and tells why its rollout is not complete, if so.
func rolledOut(ctx context.Context, d *appsv1.Deployment) error {
	if err := k8s.Get(ctx, client.ObjectKeyFromObject(d), d); err != nil {
		return err
	}
	wrapped, _ := workload.Of(d)
	if state := wrapped.Rollout(); !state.Complete {
		return fmt.Errorf("%s/%s: %s", d.Namespace, d.Name, state.Message)
	}
	return nil
}

// reading is a Deployment that consumes a Secret.
func reading(namespace, name, source string) consumer {
	return consumer{namespace: namespace, kind: v1alpha1.Deployment, name: name, sourceKind: v1alpha1.Secret, source: source}
}

// requestOf reads the request of a Deployment.
func requestOf(ctx context.Context, namespace, name string) (*v1alpha1.KickRequest, error) {
	return reading(namespace, name, "").request(ctx)
}

// recordOf reads what the ledger holds of a Secret.
func recordOf(ctx context.Context, namespace, name string) (*v1alpha1.SourceRecord, error) {
	return reading(namespace, "", name).record(ctx)
}

// generationOf counts the versions of a Deployment's spec, which here nobody but KICK changes: each stamp is one.
func generationOf(ctx context.Context, namespace, name string) (int64, error) {
	return reading(namespace, name, "").generation(ctx)
}

// settled tells why KICK is not at rest after a change of a Deployment's Secret, if so.
func settled(ctx context.Context, namespace, name, source string, phase v1alpha1.Phase) error {
	return reading(namespace, name, source).settled(ctx, phase)
}

// ended tells why the request of a Deployment has not ended, if so.
func ended(ctx context.Context, namespace, name, source string, phase v1alpha1.Phase) error {
	return reading(namespace, name, source).ended(ctx, phase)
}

// fleet is a number of workloads that each have a source of their own, of the same name.
type fleet struct {
	namespace string
	names     []string
	of        map[string]consumer
	// stamps that each has to have by now.
	stamps map[string]int64
}

// newFleet makes Deployments that run, and a policy that has settled on them. A manager has to run.
func newFleet(t *testing.T, size int) *fleet {
	t.Helper()
	namespace := newNamespace(t)
	return startFleet(t, namespace, size, func(i int) consumer {
		name := fmt.Sprint("w", i)
		return reading(namespace, name, name)
	})
}

// newMixedFleet makes a fleet of every kind of workload and of source.
func newMixedFleet(t *testing.T, namespace string) *fleet {
	t.Helper()
	return startFleet(t, namespace, len(kindsOf), func(i int) consumer { return mixed(namespace, i) })
}

func startFleet(t *testing.T, namespace string, size int, member func(int) consumer, edits ...func(*v1alpha1.KickPolicy)) *fleet {
	t.Helper()
	f := &fleet{namespace: namespace, of: map[string]consumer{}, stamps: map[string]int64{}}
	for i := range size {
		c := member(i)
		f.names, f.of[c.name] = append(f.names, c.name), c
		must(t, create(t.Context(), c.sourceObject("before"), c.workload()))
	}
	for _, name := range f.names {
		eventually(t, func() error { return f.of[name].complete(t.Context()) })
	}
	policy := everything(f.namespace)
	for _, edit := range edits {
		edit(policy)
	}
	must(t, create(t.Context(), policy))
	for _, name := range f.names {
		eventually(t, func() error { return f.of[name].settled(t.Context(), v1alpha1.PhaseNoLongerRequired) })
	}
	return f
}

// change gives the sources of some of the fleet a new value; each of those has to get one more stamp.
func (f *fleet) change(t *testing.T, names ...string) {
	t.Helper()
	f.changeThrough(t, k8s, names...)
}

// changeThrough is change by a client of its own.
func (f *fleet) changeThrough(t *testing.T, server client.Client, names ...string) {
	t.Helper()
	for _, name := range names {
		f.stamps[name]++
		_, err := f.of[name].rewriteThrough(t.Context(), server, fmt.Sprint("value ", f.stamps[name]))
		must(t, err)
	}
}

// acted tells which change has not been acted on, if there is one.
func (f *fleet) acted(ctx context.Context) error {
	for _, name := range f.names {
		if f.stamps[name] == 0 {
			continue
		}
		if got, err := f.of[name].generation(ctx); err != nil || got < 1+f.stamps[name] {
			return fmt.Errorf("%s has %d of %d stamps (%v)", f.of[name], got-1, f.stamps[name], err)
		}
		if err := f.of[name].settled(ctx, v1alpha1.PhaseSucceeded); err != nil {
			return err
		}
	}
	return nil
}

// check waits until every change has been acted on and fails if any was acted on twice, or anything else restarted.
func (f *fleet) check(t *testing.T) {
	t.Helper()
	eventually(t, func() error { return f.acted(t.Context()) })
	f.stampsAre(t)
}

// stampsAre fails if any of the fleet has another number of stamps than it has to have.
func (f *fleet) stampsAre(t *testing.T) {
	t.Helper()
	for _, name := range f.names {
		if got, err := f.of[name].generation(t.Context()); err != nil || got != 1+f.stamps[name] {
			t.Errorf("%s has %d stamps, want %d (%v)", f.of[name], got-1, f.stamps[name], err)
		}
	}
}

// nextSecond returns in the second after the present one: the API server dates in whole seconds, and what follows is to
// be dated later than what went before.
func nextSecond() {
	time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
}
