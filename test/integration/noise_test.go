package integration

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/test/testbed"
)

var _ = Describe("ConfigMaps that nobody consumes and that change every second", func() {
	It("cost nothing, and hold up nothing (C114)", func(ctx SpecContext) {
		const noise = 20
		namespace := newNamespace(ctx)
		consumed := []client.Object{configMap(namespace, "first", "0"), configMap(namespace, "second", "0")}
		workloads := []client.Object{
			deployment(namespace, "first", envFromConfigMap("first")), statefulSet(namespace, "second", envFromConfigMap("second")),
		}
		var unconsumed []client.Object
		for i := range noise {
			unconsumed = append(unconsumed, configMap(namespace, fmt.Sprintf("noise-%d", i), "0"))
		}
		adopted(ctx, namespace, slices.Concat(consumed, workloads, unconsumed)...)

		mark := bed.Audit().Mark()
		seconds, between := lasting(16, 600), lasting(8, 60)
		changes := 0
		for second := range seconds {
			nextSecond()
			for _, object := range unconsumed {
				rewrite(ctx, object, strconv.Itoa(second))
			}
			if (second+1)%between == 0 {
				changes++
				for _, source := range consumed {
					rewrite(ctx, source, strconv.Itoa(changes))
				}
				reached(ctx, v1alpha1.PhaseSucceeded, workloads...)
			}
		}
		barrier(ctx, namespace)
		restarted(ctx, changes, workloads...)
		asked, err := bed.Audit().Events(testbed.AuditFilter{
			User: kickUser, From: mark,
			Match: func(e testbed.AuditEvent) bool { return strings.Contains(e.URI, "noise-") },
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(asked).To(BeEmpty())
		Expect(logged(namespace, "noise-")).To(BeEmpty())
		ledger := &v1alpha1.KickLedger{}
		Expect(k8s.Get(ctx, client.ObjectKey{Namespace: kickNamespace, Name: namespace}, ledger)).To(Succeed())
		for _, record := range ledger.Records {
			Expect(record.Name).NotTo(HavePrefix("noise-"))
		}
	}, NodeTimeout(lasting(patience*2, patience*10)))
})
