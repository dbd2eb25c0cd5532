package workload_test

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kick-dev/kick/internal/cluster/workload"
)

func TestReplicaSetsAreListedOnlyForPodsWhoseOwnerTheirNamesDoNotTell(t *testing.T) {
	controlledBy := func(kind, name, uid string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, UID: types.UID(uid), Controller: new(true)}}
	}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web"},
		Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
	}
	adopted := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "adopted", UID: "adopted", Labels: map[string]string{"app": "web"},
		OwnerReferences: controlledBy("Deployment", "web", "web"),
	}}
	for name, tc := range map[string]struct {
		owners      []metav1.OwnerReference
		owned, list int
	}{
		"of a ReplicaSet that is named after it": {controlledBy("ReplicaSet", "web-7d4b", "rs"), 1, 0},
		"of one that it has adopted":             {controlledBy("ReplicaSet", "adopted", "adopted"), 1, 1},
		"of one that it does not own":            {controlledBy("ReplicaSet", "web-api-7d4b", "other"), 0, 1},
		"of a Job":                               {controlledBy("Job", "web-7d4b", "job"), 0, 0},
		"of nobody":                              {nil, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "pod", OwnerReferences: tc.owners, Labels: map[string]string{"app": "web", "pod-template-hash": "7d4b"},
			}}
			lists := 0
			live := interceptor.NewClient(
				fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(adopted, pod).Build(),
				interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					if _, ok := list.(*appsv1.ReplicaSetList); ok {
						lists++
					}
					return c.List(ctx, list, options...)
				}},
			)
			w, _ := workload.Of(deployment)
			pods, err := (&workload.Client{Live: live}).Inspect(w).Pods(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(pods) != tc.owned || lists != tc.list {
				t.Errorf("%d Pods after %d lists of ReplicaSets, want %d after %d", len(pods), lists, tc.owned, tc.list)
			}
		})
	}
}
