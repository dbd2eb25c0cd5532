package integration

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/test/testbed"
)

// leader is the replica that leads.
func leader(ctx context.Context) testbed.PodProcess {
	GinkgoHelper()
	var leads []testbed.PodProcess
	Eventually(func(g Gomega) {
		running, err := bed.Pods(kickNamespace, kickSelector)
		g.Expect(err).NotTo(HaveOccurred())
		leads = nil
		for _, process := range running {
			if total(scrape(ctx, process), `leader_election_master_status\{name="kick"\}`) == 1 {
				leads = append(leads, process)
			}
		}
		g.Expect(leads).To(HaveLen(1))
	}).WithContext(ctx).Should(Succeed())
	return leads[0]
}

// stampWrites counts KICK's writes of workloads of a namespace since the mark, by the codes of their answers.
func stampWrites(namespace string, since testbed.AuditMark) map[int]int {
	GinkgoHelper()
	events, err := bed.Audit().Events(testbed.AuditFilter{User: kickUser, Verb: "patch", Resource: "deployments", Namespace: namespace, From: since})
	Expect(err).NotTo(HaveOccurred())
	codes := map[int]int{}
	for _, e := range events {
		codes[e.Code]++
	}
	return codes
}

// replicated runs KICK with a number of replicas, and with two after the spec.
func replicated(ctx context.Context, replicas int32) {
	GinkgoHelper()
	upgrade := func(ctx context.Context, replicas int32) {
		GinkgoHelper()
		output, err := upgradeKick(ctx, fmt.Sprintf("replicas=%d", replicas))
		Expect(err).NotTo(HaveOccurred(), output)
		Eventually(func() ([]testbed.PodProcess, error) { return bed.Pods(kickNamespace, kickSelector) }).
			WithContext(ctx).Should(HaveLen(int(replicas)))
	}
	DeferCleanup(func(ctx SpecContext) { upgrade(ctx, 2) })
	upgrade(ctx, replicas)
}

var _ = Describe("Several replicas", Serial, func() {
	for _, replicas := range []int32{2, 3} {
		It(fmt.Sprintf("restart each workload once, also when the leader of the %d dies over it (C122)", replicas), func(ctx SpecContext) {
			replicated(ctx, replicas)
			namespace, number := newNamespace(ctx), lasting(10, 50)
			source := secret(namespace, "db", "1")
			objects, workloads := []client.Object{source}, []client.Object{}
			for i := range number {
				workloads = append(workloads, deployment(namespace, fmt.Sprintf("web-%d", i), envFromSecret("db")))
			}
			adopted(ctx, namespace, append(objects, workloads...)...)

			began := bed.Audit().Mark()
			rewrite(ctx, source, "2")
			Eventually(func() map[int]int { return stampWrites(namespace, began) }).WithContext(ctx).Should(HaveKeyWithValue(200, number))
			reached(ctx, v1alpha1.PhaseSucceeded, workloads...)
			restarted(ctx, 1, workloads...)

			leads := leader(ctx)
			rewrite(ctx, source, "3")
			Eventually(func() map[int]int { return stampWrites(namespace, began) }).WithContext(ctx).WithPolling(glance / 10).
				Should(HaveKeyWithValue(200, BeNumerically(">", number)))
			leads.Kill()
			for _, w := range workloads {
				Eventually(func() int { return revisions(ctx, w) }).WithContext(ctx).Should(Equal(3), w.GetName())
			}
			reached(ctx, v1alpha1.PhaseSucceeded, workloads...)
			barrier(ctx, namespace)
			restarted(ctx, 2, workloads...)
		}, NodeTimeout(lasting(patience*4, patience*8)))
	}

	It("without a leader are refused by chart and manager (C122)", func(ctx SpecContext) {
		output, err := upgradeKick(ctx, "leaderElection.enabled=false")
		Expect(err).To(MatchError(ContainSubstring("replicas: 2 needs leaderElection.enabled: true")), output)
		manager, err := filepath.Abs("../../bin/manager")
		Expect(err).NotTo(HaveOccurred())
		said, err := exec.CommandContext(ctx, manager, "--namespace=kick-system", "--replicas=2", "--leader-elect=false").CombinedOutput()
		Expect(err).To(HaveOccurred())
		Expect(string(said)).To(ContainSubstring("--replicas=2 needs --leader-elect"))
	}, NodeTimeout(patience))
})
