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
	"github.com/kick-dev/kick/internal/core/request"
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

// requestOf reads the request of a Deployment.
func requestOf(ctx context.Context, namespace, name string) (*v1alpha1.KickRequest, error) {
	found := &v1alpha1.KickRequest{}
	key := client.ObjectKey{Namespace: namespace, Name: request.Name(v1alpha1.Deployment, name)}
	return found, k8s.Get(ctx, key, found)
}

// recordOf reads what the ledger holds of a Secret.
func recordOf(ctx context.Context, namespace, name string) (*v1alpha1.SourceRecord, error) {
	ledger := &v1alpha1.KickLedger{}
	if err := k8s.Get(ctx, client.ObjectKey{Namespace: ownNamespace, Name: namespace}, ledger); err != nil {
		return nil, err
	}
	for i := range ledger.Records {
		if ledger.Records[i].Name == name {
			return &ledger.Records[i], nil
		}
	}
	return nil, fmt.Errorf("the ledger %s has no record of %s", namespace, name)
}

// generationOf counts the versions of a Deployment's spec, which here nobody but KICK changes: each stamp is one.
func generationOf(ctx context.Context, namespace, name string) (int64, error) {
	d := &appsv1.Deployment{}
	err := k8s.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, d)
	return d.Generation, err
}

// settled tells why KICK is not at rest after a change of a Deployment's Secret, if so: the request has ended, and the
// ledger has delivered the change.
func settled(ctx context.Context, namespace, name, source string, phase v1alpha1.Phase) error {
	record, err := recordOf(ctx, namespace, source)
	if err != nil {
		return err
	}
	if record.Pending {
		return fmt.Errorf("the change of %s/%s is still pending in the ledger", namespace, source)
	}
	return ended(ctx, namespace, name, source, phase)
}

// ended tells why the request of a Deployment has not ended, if so: it is in the given phase and covers the change that
// the ledger holds, the rollout is complete, and the Pods have the stamp of the request.
func ended(ctx context.Context, namespace, name, source string, phase v1alpha1.Phase) error {
	found, err := requestOf(ctx, namespace, name)
	if err != nil {
		return err
	}
	if found.Status.Phase != phase || found.Status.CurrentRollout == nil {
		return fmt.Errorf("request %s/%s is %q: %+v", namespace, found.Name, found.Status.Phase, found.Status.Conditions)
	}
	record, err := recordOf(ctx, namespace, source)
	if err != nil {
		return err
	}
	covered := false
	for _, cover := range found.Status.CurrentRollout.Covers {
		covered = covered || cover.Name == source && !cover.ChangedAt.Time.Before(record.ChangedAt.Time)
	}
	if !covered {
		return fmt.Errorf("request %s/%s covers %v, the ledger has %s", namespace, found.Name, found.Status.CurrentRollout.Covers,
			record.ChangedAt.Format(time.RFC3339Nano))
	}
	d := &appsv1.Deployment{ObjectMeta: named(namespace, name)}
	if err := rolledOut(ctx, d); err != nil {
		return err
	}
	if phase != v1alpha1.PhaseSucceeded {
		return nil
	}
	return running(ctx, d, found.Status.CurrentRollout.Stamp)
}

// running tells whether all Pods of a Deployment carry a stamp and belong to its template.
func running(ctx context.Context, d *appsv1.Deployment, stamp string) error {
	var pods corev1.PodList
	if err := k8s.List(ctx, &pods, client.InNamespace(d.Namespace), client.MatchingLabels{"app": d.Name}); err != nil {
		return err
	}
	live := 0
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.DeletionTimestamp != nil {
			continue
		}
		live++
		if got := pod.Annotations[v1alpha1.RestartedAtAnnotation]; got != stamp {
			return fmt.Errorf("pod %s/%s has the stamp %q and the request %q", pod.Namespace, pod.Name, got, stamp)
		}
	}
	if live == 0 {
		return fmt.Errorf("%s/%s has no Pods", d.Namespace, d.Name)
	}
	return nil
}

// fleet is a number of Deployments that each have a Secret of their own.
type fleet struct {
	namespace string
	names     []string
	// stamps that each has to have by now.
	stamps map[string]int64
}

// newFleet makes Deployments that run, and a policy that has settled on them. A manager has to run.
func newFleet(t *testing.T, size int) *fleet {
	t.Helper()
	f := &fleet{namespace: newNamespace(t), stamps: map[string]int64{}}
	for i := range size {
		name := fmt.Sprint("w", i)
		f.names = append(f.names, name)
		must(t, create(t.Context(), secret(f.namespace, name, "before"), deployment(f.namespace, name, name)))
	}
	for _, name := range f.names {
		eventually(t, func() error { return rolledOut(t.Context(), deployment(f.namespace, name, name)) })
	}
	must(t, create(t.Context(), everything(f.namespace)))
	for _, name := range f.names {
		eventually(t, func() error { return settled(t.Context(), f.namespace, name, name, v1alpha1.PhaseNoLongerRequired) })
	}
	return f
}

// change gives the Secrets of some of the fleet a new value; each of those has to get one more stamp.
func (f *fleet) change(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		f.stamps[name]++
		must(t, rewrite(t.Context(), f.namespace, name, fmt.Sprint("value ", f.stamps[name])))
	}
}

// check waits until every change has been acted on and fails if any was acted on twice, or anything else restarted.
func (f *fleet) check(t *testing.T) {
	t.Helper()
	eventually(t, func() error {
		for _, name := range f.names {
			if f.stamps[name] == 0 {
				continue
			}
			if got, err := generationOf(t.Context(), f.namespace, name); err != nil || got < 1+f.stamps[name] {
				return fmt.Errorf("%s/%s has %d of %d stamps: %w", f.namespace, name, got-1, f.stamps[name], err)
			}
			if err := settled(t.Context(), f.namespace, name, name, v1alpha1.PhaseSucceeded); err != nil {
				return err
			}
		}
		return nil
	})
	for _, name := range f.names {
		if got, err := generationOf(t.Context(), f.namespace, name); err != nil || got != 1+f.stamps[name] {
			t.Errorf("%s/%s has %d stamps, want %d (%v)", f.namespace, name, got-1, f.stamps[name], err)
		}
	}
}

// nextSecond returns in the second after the present one: the API server dates in whole seconds, and what follows is to
// be dated later than what went before.
func nextSecond() {
	time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
}
