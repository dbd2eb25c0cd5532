package integration

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// nodeLabel tells the Nodes of one story from the others.
const nodeLabel = "story"

// ranges counts the ranges given to Nodes.
var ranges int

// podRange is a range for the Pods of one more Node, apart from those of the testbed's own Nodes.
func podRange() string {
	ranges++
	return fmt.Sprintf("10.%d.0.0/16", 150+ranges%50)
}

// nodes adds Nodes for one spec.
func nodes(ctx context.Context, story string, count int) []*corev1.Node {
	GinkgoHelper()
	var added []*corev1.Node
	for i := range count {
		capacity := corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("1k"), corev1.ResourceMemory: resource.MustParse("1Ti"),
			corev1.ResourcePods: resource.MustParse("1k"),
		}
		cidr := podRange()
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", story, i), Labels: map[string]string{nodeLabel: story}},
			Spec:       corev1.NodeSpec{PodCIDR: cidr, PodCIDRs: []string{cidr}},
			Status:     corev1.NodeStatus{Capacity: capacity, Allocatable: capacity},
		}
		create(ctx, node)
		DeferCleanup(func(ctx context.Context) { Expect(client.IgnoreNotFound(k8s.Delete(ctx, node))).To(Succeed()) })
		added = append(added, node)
	}
	for _, node := range added {
		Eventually(func(g Gomega) {
			refresh(ctx, node)
			g.Expect(node.Spec.Taints).To(BeEmpty())
			g.Expect(node.Status.Conditions).To(ContainElement(And(
				HaveField("Type", corev1.NodeReady), HaveField("Status", corev1.ConditionTrue))))
		}).WithContext(ctx).Should(Succeed())
	}
	return added
}
