package integration

import (
	"context"
	"fmt"
	"slices"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/test/testbed"
)

// kickRead counts what KICK has asked of a kind in a namespace since the mark.
func kickRead(namespace, verb, resource string, since testbed.AuditMark) int {
	GinkgoHelper()
	events, err := bed.Audit().Events(testbed.AuditFilter{
		User: kickUser, From: since,
		Match: func(e testbed.AuditEvent) bool {
			return e.Namespace == namespace && e.Verb == verb && e.Resource == resource
		},
	})
	Expect(err).NotTo(HaveOccurred())
	return len(events)
}

// rewriteTogether gives sources a new value at the same time.
func rewriteTogether(ctx context.Context, value string, sources ...client.Object) {
	GinkgoHelper()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"data":{"key":%q}}`, value))
	failed := make([]error, len(sources))
	var group sync.WaitGroup
	for i, source := range sources {
		group.Go(func() { failed[i] = k8s.Patch(ctx, source, patch) })
	}
	group.Wait()
	Expect(failed).To(HaveEach(BeNil()))
}

var _ = Describe("A rush", func() {
	const workloads = 40
	var namespace string
	var shared client.Object
	var own, consumers []client.Object

	BeforeEach(func(ctx SpecContext) {
		namespace = newNamespace(ctx)
		shared, own, consumers = configMap(namespace, "shared", "1"), nil, nil
		for i := range workloads {
			name := fmt.Sprintf("own-%02d", i)
			own = append(own, configMap(namespace, name, "1"))
			consumers = append(consumers, deployment(namespace, fmt.Sprintf("app-%02d", i), envFromConfigMap(name), envFromConfigMap("shared")))
		}
		adopted(ctx, namespace, slices.Concat([]client.Object{shared}, own, consumers)...)
		reached(ctx, v1alpha1.PhaseNoLongerRequired, consumers...)
		nextSecond()
	}, NodeTimeout(patience*2))

	DescribeTable("restarts each workload once, and what was decided is not read again", func(ctx SpecContext, changed func() []client.Object) {
		mark := bed.Audit().Mark()
		rewriteTogether(ctx, "2", changed()...)
		reached(ctx, v1alpha1.PhaseSucceeded, consumers...)
		restarted(ctx, 1, consumers...)
		// One decided on a version of the workload that moves before its stamp may have to read it again.
		Expect(kickRead(namespace, "list", "pods", mark)).To(BeNumerically("<=", workloads+workloads/4))
		Expect(kickRead(namespace, "get", "deployments", mark)).To(BeNumerically("<=", workloads/4))
		Expect(kickRead(namespace, "get", "configmaps", mark)).To(Equal(len(changed())))
	},
		Entry("when many sources change at the same time", func() []client.Object { return own }),
		Entry("when many workloads consume what changes", func() []client.Object { return []client.Object{shared} }),
	)

	It("goes on under the next leader, if the one that put restarts off is killed", Serial, func(ctx SpecContext) {
		leads := leader(ctx)
		mark := bed.Audit().Mark()
		rewriteTogether(ctx, "2", own...)
		Eventually(func() int { return kickRead(namespace, "update", "kickrequests", mark) }).WithContext(ctx).
			WithPolling(glance / 10).Should(BeNumerically(">=", 5))
		leads.Kill()
		reached(ctx, v1alpha1.PhaseSucceeded, consumers...)
		restarted(ctx, 1, consumers...)
	}, NodeTimeout(patience*2))
})
