package integration

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/test/testbed"
)

// held is a use of nothing: the Pods wait to be started, like those whose required Secret does not exist yet.
var held = podLabel(testbed.LabelHold, "true")

// orders are the orders in which people apply a Secret, a ConfigMap and the workload that consumes both.
var orders = map[string][3]int{"scw": {0, 1, 2}, "csw": {1, 0, 2}, "swc": {0, 2, 1}, "cws": {1, 2, 0}, "wsc": {2, 0, 1}, "wcs": {2, 1, 0}}

var _ = Describe("A first deployment", func() {
	It("is left alone, in whatever order its objects come (C025)", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		create(ctx, everything(namespace))
		var workloads []client.Object
		var lists [][3]client.Object
		for order, positions := range orders {
			for kind, w := range map[string]client.Object{
				"d": deployment(namespace, order+"-d", held, envFromSecret(order+"-d"), configMapVolume(order+"-d", "")),
				"s": statefulSet(namespace, order+"-s", held, envFromSecret(order+"-s"), configMapVolume(order+"-s", "")),
				"l": daemonSet(namespace, order+"-l", held, envFromSecret(order+"-l"), configMapVolume(order+"-l", "")),
			} {
				name := order + "-" + kind
				objects := [3]client.Object{secret(namespace, name, "1"), configMap(namespace, name, "1"), w}
				lists = append(lists, [3]client.Object{objects[positions[0]], objects[positions[1]], objects[positions[2]]})
				workloads = append(workloads, w)
			}
		}
		for i := range 3 { // The next objects of all come seconds after the ones before.
			for _, list := range lists {
				create(ctx, list[i])
			}
			nextSecond()
		}
		barrier(ctx, namespace)
		for _, w := range workloads {
			Eventually(func() bool {
				unlabelled(ctx, testbed.LabelHold, w)
				return complete(ctx, w)
			}).WithContext(ctx).Should(BeTrue(), w.GetName())
		}
		barrier(ctx, namespace)
		restarted(ctx, 0, workloads...)
		ended(ctx, v1alpha1.PhaseNoLongerRequired, namespace, workloads...)
	}, NodeTimeout(patience*3))
})

// ended checks that the workloads have no request, or one that has ended like that.
func ended(ctx SpecContext, phase v1alpha1.Phase, namespace string, workloads ...client.Object) {
	GinkgoHelper()
	for _, w := range workloads {
		if _, err := requestOf(ctx, w); client.IgnoreNotFound(err) == nil && err != nil {
			continue
		}
		reached(ctx, phase, w)
	}
}

var _ = Describe("A mounted ConfigMap", func() {
	It("restarts by subPath and as a whole: only the latter is refreshed, and whether it is read again nobody knows (C016)", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		source := configMap(namespace, "cfg", "1")
		workloads := []client.Object{
			deployment(namespace, "sub-path", configMapVolume("cfg", "key")), deployment(namespace, "whole", configMapVolume("cfg", "")),
		}
		adopted(ctx, namespace, source, workloads[0], workloads[1])
		rewrite(ctx, source, "2")
		reached(ctx, v1alpha1.PhaseSucceeded, workloads...)
		barrier(ctx, namespace)
		restarted(ctx, 1, workloads...)
	}, NodeTimeout(patience*2))
})

var _ = Describe("A template that carries a stamp already", func() {
	It("gets another one, within the very second that it names and long before (C029)", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		source := secret(namespace, "db", "1")
		stamped := func(name, stamp string) *appsv1.Deployment {
			w := deployment(namespace, name, envFromSecret("db"))
			w.Spec.Template.Annotations = map[string]string{v1alpha1.RestartedAtAnnotation: stamp}
			return w
		}
		second := time.Now().Add(patience / 8).Truncate(time.Second)
		stamps := map[string]string{
			"this-second": second.UTC().Format(time.RFC3339), "far": "2100-01-01T00:00:00Z", "garbage": "yesterday",
		}
		var workloads []client.Object
		for name, stamp := range stamps {
			workloads = append(workloads, stamped(name, stamp))
		}
		adopted(ctx, namespace, append(workloads, source)...)
		Eventually(time.Now).WithPolling(10 * time.Millisecond).Should(BeTemporally(">=", second))
		rewrite(ctx, source, "2")
		reached(ctx, v1alpha1.PhaseSucceeded, workloads...)
		restarted(ctx, 1, workloads...)
		for _, w := range workloads {
			Expect(stampOf(ctx, w)).NotTo(Equal(stamps[w.GetName()]))
			Expect(w.GetGeneration()).To(BeEquivalentTo(2))
		}
	}, NodeTimeout(patience*2))
})

var _ = Describe("A partitioned StatefulSet", func() {
	It("is restarted down to its partition once per change, and follows when the partition goes", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		source, w := secret(namespace, "db", "1"), partitioned(namespace)
		adopted(ctx, namespace, source, w)
		stamps := func() map[string]string {
			on := map[string]string{}
			for _, pod := range podsOf(ctx, w) {
				on[pod.Name] = pod.Annotations[v1alpha1.RestartedAtAnnotation]
			}
			return on
		}
		rewrite(ctx, source, "2")
		reached(ctx, v1alpha1.PhaseSucceeded, w)
		first := stampOf(ctx, w)
		Expect(stamps()).To(Equal(map[string]string{"web-0": "", "web-1": "", "web-2": first}))
		restarted(ctx, 1, w)

		change(ctx, w, func(s *appsv1.StatefulSet) { s.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To[int32](0) })
		rolledOut(ctx, w)
		Expect(stamps()).To(Equal(map[string]string{"web-0": first, "web-1": first, "web-2": first}))
		barrier(ctx, namespace)
		restarted(ctx, 1, w)
	}, NodeTimeout(patience*2))

	// The Pods below the partition go on being older than the change, and what the stamp covers goes with the request.
	It("is not restarted again when the end of its request is forgotten", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		source, w := secret(namespace, "db", "1"), partitioned(namespace)
		adopted(ctx, namespace, source, w)
		rewrite(ctx, source, "2")
		reached(ctx, v1alpha1.PhaseSucceeded, w)
		found, err := requestOf(ctx, w)
		Expect(err).NotTo(HaveOccurred())
		Expect(k8s.Delete(ctx, found)).To(Succeed())
		barrier(ctx, namespace)
		restarted(ctx, 1, w)
	}, NodeTimeout(patience*2))
})

// partitioned is a StatefulSet of three replicas of which only the last is updated.
func partitioned(namespace string) *appsv1.StatefulSet {
	w := statefulSet(namespace, "web", envFromSecret("db"))
	w.Spec.Replicas = ptr.To[int32](3)
	w.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To[int32](2)}
	return w
}

var _ = Describe("Pods that come later", func() {
	It("carry the present content: after a rollback, from zero, by an autoscaler, in place of lost ones", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		source := secret(namespace, "db", "1")
		undone, scaled := deployment(namespace, "undone", envFromSecret("db")), deployment(namespace, "scaled", envFromSecret("db"))
		undoneSet := statefulSet(namespace, "undone", envFromSecret("db"))
		undoneSet.Spec.Selector.MatchLabels["app"], undoneSet.Spec.Template.Labels["app"] = "undone-set", "undone-set"
		zero, zeroSet := deployment(namespace, "zero", envFromSecret("db")), statefulSet(namespace, "zero-set", envFromSecret("db"))
		zero.Spec.Replicas, zeroSet.Spec.Replicas = ptr.To[int32](0), ptr.To[int32](0)
		adopted(ctx, namespace, source, undone, undoneSet, scaled, zero, zeroSet)
		rewrite(ctx, source, "2")
		reached(ctx, v1alpha1.PhaseSucceeded, undone, undoneSet, scaled)
		reached(ctx, v1alpha1.PhaseNoLongerRequired, zero, zeroSet)
		Expect(stampOf(ctx, zero) + stampOf(ctx, zeroSet)).To(BeEmpty())
		restarted(ctx, 1, undone, undoneSet, scaled)

		for _, target := range []string{"deployment/undone", "statefulset/undone"} {
			output, err := bed.Kubectl(ctx, "rollout", "undo", target, "--namespace", namespace)
			Expect(err).NotTo(HaveOccurred(), output)
		}
		scale(ctx, scaled, 3)
		scale(ctx, zero, 2)
		change(ctx, zeroSet, func(s *appsv1.StatefulSet) { s.Spec.Replicas = ptr.To[int32](2) })
		all := []client.Object{undone, undoneSet, scaled, zero, zeroSet}
		rolledOut(ctx, all...)
		Expect(stampOf(ctx, undone) + stampOf(ctx, undoneSet)).To(BeEmpty())
		lost := podsOf(ctx, scaled)[0]
		Expect(k8s.Delete(ctx, &lost)).To(Succeed())
		rolledOut(ctx, scaled)
		barrier(ctx, namespace)
		for _, w := range []client.Object{undone, undoneSet, scaled} {
			Expect(revisions(ctx, w)).To(Equal(2), "%s %s", kindOf(w), w.GetName())
		}
		restarted(ctx, 0, zero, zeroSet)

		// And they are restarted like all others for the next change.
		rewrite(ctx, source, "3")
		for _, w := range all {
			stampedAgain(ctx, w, "")
		}
		reached(ctx, v1alpha1.PhaseSucceeded, all...)
	}, NodeTimeout(patience*3))
})
