package workload_test

import (
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/workload"
)

// A cache that lags behind does not come about on demand, so what the API server has is changed here after the cache was
// filled.
func TestAWorkloadFromALaggingCacheIsStampedIfNothingOfWeightDiffers(t *testing.T) {
	const stamp = "2026-08-06T12:00:00.123456789Z"
	for name, tc := range map[string]struct {
		change func(*appsv1.Deployment)
		want   error
	}{
		"nothing": {change: func(*appsv1.Deployment) {}},
		"a count in the status that changes no verdict": {
			change: func(d *appsv1.Deployment) { d.Status.Conditions = []appsv1.DeploymentCondition{{Type: "Available"}} },
		},
		"an annotation": {change: func(d *appsv1.Deployment) { d.Annotations = map[string]string{"team": "web"} }},
		"a label, by which policies select": {
			change: func(d *appsv1.Deployment) { d.Labels = map[string]string{"app": "other"} }, want: workload.ErrMoved,
		},
		"the spec": {change: func(d *appsv1.Deployment) { d.Generation++ }, want: workload.ErrMoved},
		"a Pod was lost": {
			change: func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 0 }, want: workload.ErrMoved,
		},
	} {
		t.Run(name, func(t *testing.T) {
			labels := map[string]string{"app": "web"}
			object := &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "1", Generation: 3, Labels: labels},
				Spec: appsv1.DeploymentSpec{
					Selector: &metav1.LabelSelector{MatchLabels: labels},
					Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{
						Labels: labels, Annotations: map[string]string{"prometheus.io/scrape": "true"},
					}},
				},
				Status: appsv1.DeploymentStatus{
					ObservedGeneration: 3, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
				},
			}
			live := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(object).Build()
			stored := &appsv1.Deployment{}
			if err := live.Get(t.Context(), client.ObjectKeyFromObject(object), stored); err != nil {
				t.Fatal(err)
			}
			shown, err := workload.Slim(stored.DeepCopy())
			if err != nil {
				t.Fatal(err)
			}
			cache := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(shown.(client.Object)).Build()
			c := &workload.Client{Cache: cache, Live: live, Writer: live}
			judged, err := c.Cached(t.Context(), workload.Key{Namespace: "shop", Kind: v1alpha1.Deployment, Name: "web"})
			if err != nil || judged == nil {
				t.Fatal(err)
			}

			tc.change(stored)
			status := stored.Status
			if err := live.Update(t.Context(), stored); err != nil {
				t.Fatal(err)
			}
			stored.Status = status
			if err := live.Status().Update(t.Context(), stored); err != nil {
				t.Fatal(err)
			}
			if err := c.Stamp(t.Context(), judged, stamp); !errors.Is(err, tc.want) {
				t.Fatalf("got error %v, want %v", err, tc.want)
			}
			if err := live.Get(t.Context(), client.ObjectKeyFromObject(object), stored); err != nil {
				t.Fatal(err)
			}
			annotations := stored.Spec.Template.Annotations
			if stamped := annotations[v1alpha1.RestartedAtAnnotation] == stamp; stamped != (tc.want == nil) {
				t.Errorf("the template has the annotations %v after %v", annotations, tc.want)
			}
			if annotations["prometheus.io/scrape"] != "true" {
				t.Errorf("the template has the annotations %v: another one was lost", annotations)
			}
		})
	}
}
