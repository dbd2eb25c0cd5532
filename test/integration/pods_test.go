package integration

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/test/testbed"
)

// podsOf lists the Pods of a workload that are not being deleted.
func podsOf(ctx context.Context, w client.Object) []corev1.Pod {
	GinkgoHelper()
	selector, err := metav1.LabelSelectorAsSelector(selecting(w.GetName()))
	Expect(err).NotTo(HaveOccurred())
	var list corev1.PodList
	Expect(k8s.List(ctx, &list, client.InNamespace(w.GetNamespace()), client.MatchingLabelsSelector{Selector: selector})).To(Succeed())
	var pods []corev1.Pod
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil {
			pods = append(pods, pod)
		}
	}
	return pods
}

// deletePods deletes the Pods of a workload, as a person does where the update strategy leaves that to people.
func deletePods(ctx context.Context, w client.Object) {
	GinkgoHelper()
	for _, pod := range podsOf(ctx, w) {
		Expect(client.IgnoreNotFound(k8s.Delete(ctx, &pod))).To(Succeed())
	}
}

// unlabelled takes a label off the present Pods of a workload, so that KWOK no longer plays them in that special way. Pods
// that come later have it again, as long as the template has.
func unlabelled(ctx context.Context, label string, w client.Object) {
	GinkgoHelper()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:null}}}`, label))
	for _, pod := range podsOf(ctx, w) {
		Expect(client.IgnoreNotFound(k8s.Patch(ctx, &pod, patch))).To(Succeed())
	}
}

// rolledOutByHand makes the Pods of workloads ready that are held unready by their label, until the rollouts are complete.
func rolledOutByHand(ctx context.Context, workloads ...client.Object) {
	GinkgoHelper()
	for _, w := range workloads {
		Eventually(func(g Gomega) {
			unlabelled(ctx, testbed.LabelNeverReady, w)
			g.Expect(complete(ctx, w)).To(BeTrue())
		}).WithContext(ctx).Should(Succeed())
	}
}

// stampOf is the restartedAt annotation on the template of a workload.
func stampOf(ctx context.Context, w client.Object) string {
	GinkgoHelper()
	refresh(ctx, w)
	return templateOf(w).Annotations[v1alpha1.RestartedAtAnnotation]
}
