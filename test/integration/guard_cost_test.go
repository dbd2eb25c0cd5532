package integration

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// guardCalls counts, by the API server's own metrics, how often it has called the guard.
func guardCalls(ctx context.Context) int {
	GinkgoHelper()
	text, err := bed.Kubectl(ctx, "get", "--raw", "/metrics")
	Expect(err).NotTo(HaveOccurred())
	return total(text, `apiserver_admission_webhook_request_total\{[^}]*name="guard.kick.dev"[^}]*\}`)
}

// guardAnswers counts, by KICK's metrics, how often its replicas have answered as the guard.
func guardAnswers(ctx context.Context) int {
	GinkgoHelper()
	answers := 0
	running, err := bed.Pods(kickNamespace, kickSelector)
	Expect(err).NotTo(HaveOccurred())
	for _, pod := range running {
		answers += total(scrape(ctx, pod), `kick_admission_total\{[^}]*webhook="guard.kick.dev"[^}]*\}`)
	}
	return answers
}

// scaled scales a Deployment that often, by its scale and by itself in turn, and says how long that took.
func scaled(ctx context.Context, w client.Object, times int) string {
	GinkgoHelper()
	var took []time.Duration
	for i := range times {
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec": {"replicas": %d}}`, i%3))
		began := time.Now()
		if i%2 == 0 {
			Expect(k8s.Patch(ctx, copyOf(w), patch)).To(Succeed())
		} else {
			Expect(k8s.SubResource("scale").Patch(ctx, copyOf(w), patch)).To(Succeed())
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return fmt.Sprintf("median %s, slowest %s", took[len(took)/2], took[len(took)-1])
}

var _ = Describe("The guard", func() {
	It("is not asked about anything but restarts (C090, C099)", Serial, func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		w := deployment(namespace, "web")
		create(ctx, everything(namespace), w)
		guarded(ctx, w)
		asked, answered := guardCalls(ctx), guardAnswers(ctx)
		Expect(answered).To(BeNumerically(">", 0))
		scaled(ctx, w, 1000)
		everyday(ctx, k8s, w)
		everyday(ctx, as("system:kube-controller-manager"), w)
		everyday(ctx, as(foreigner), w)
		Expect(guardCalls(ctx)).To(Equal(asked))
		Expect(guardAnswers(ctx)).To(Equal(answered))
		Expect(k8s.Patch(ctx, copyOf(w), restartPatch("x"))).NotTo(Succeed())
		Expect(guardCalls(ctx)).To(Equal(asked + 1))
		Expect(guardAnswers(ctx)).To(Equal(answered + 1))
	}, NodeTimeout(patience*3))

	It("is not in the way of scaling while it answers nobody (C099)", Serial, func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		w := deployment(namespace, "web")
		create(ctx, everything(namespace), w)
		guarded(ctx, w)
		asked := guardCalls(ctx)
		answering := scaled(ctx, w, lasting(200, 1000))
		running, err := bed.Pods(kickNamespace, kickSelector)
		Expect(err).NotTo(HaveOccurred())
		for _, process := range running {
			Expect(process.Pause()).To(Succeed())
			DeferCleanup(func() { _ = process.Resume() }) // It is gone if its liveness probe has failed for long.
		}
		hanging := scaled(ctx, w, lasting(200, 1000))
		Expect(guardCalls(ctx)).To(Equal(asked))
		Expect(k8s.Patch(ctx, copyOf(w), restartPatch("x"), client.DryRunAll)).To(MatchError(And(
			ContainSubstring(`failed calling webhook "guard.kick.dev"`), ContainSubstring("timeout=2s"))), "it hangs")
		Expect(guardCalls(ctx)).To(Equal(asked + 1))
		AddReportEntry("to scale while it answers", answering)
		AddReportEntry("to scale while it hangs", hanging)
		for _, process := range running {
			_ = process.Resume()
		}
		guarded(ctx, w)
	}, NodeTimeout(patience*3))
})
