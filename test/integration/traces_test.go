package integration

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/testing/collector"
	"github.com/kick-dev/kick/test/testbed"
)

// traceTo has the suite's KICK send traces to a URL, or none for the empty one, and waits until the replicas before are gone.
func traceTo(ctx context.Context, url string) {
	GinkgoHelper()
	output, err := upgradeKick(ctx, "tracing.endpoint="+url)
	Expect(err).NotTo(HaveOccurred(), output)
	Eventually(func() ([]testbed.PodProcess, error) { return bed.Pods(kickNamespace, kickSelector) }).WithContext(ctx).Should(HaveLen(2))
}

// collecting starts a collector for a spec.
func collecting(address string) *collector.Collector {
	GinkgoHelper()
	c, err := collector.Start(address)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(c.Stop)
	return c
}

// tracesOf are the traces about a workload, each with its spans by name.
func tracesOf(c *collector.Collector, w client.Object) []map[string]collector.Span {
	var traces []map[string]collector.Span
	spans := c.Spans()
	for _, root := range spans {
		named := collector.Attributes(root.Attributes)
		if len(root.ParentSpanId) > 0 || named["k8s.namespace.name"] != w.GetNamespace() || named["k8s.deployment.name"] != w.GetName() {
			continue
		}
		byName := map[string]collector.Span{}
		for _, span := range spans {
			if slices.Equal(span.TraceId, root.TraceId) {
				byName[span.Name] = span
			}
		}
		traces = append(traces, byName)
	}
	return traces
}

var _ = Describe("Traces", Serial, func() {
	It("tell where the time between a change and the end of its restart went, and hold up no restart", func(ctx SpecContext) {
		c := collecting(collector.Loopback)
		namespace := newNamespace(ctx)
		const before, after, quiet = "value-of-yesterday", "value-of-tonight", 5 * time.Second
		source, w := secret(namespace, "db", before), deployment(namespace, "web", envFromSecret("db"))
		create(ctx, source, w)
		rolledOut(ctx, w)
		create(ctx, policyWith(namespace, func(s *v1alpha1.KickPolicySpec) { s.Restart.QuietPeriod = lasts(quiet) }))
		reached(ctx, v1alpha1.PhaseNoLongerRequired, w)
		DeferCleanup(func(ctx SpecContext) { traceTo(ctx, "") })
		traceTo(ctx, "http://"+c.Address())
		barrier(ctx, namespace) // A new leader might see a change only after its quiet period.

		rewrite(ctx, source, after)
		Eventually(func() int { return revisions(ctx, w) }).WithContext(ctx).Should(Equal(2))
		reached(ctx, v1alpha1.PhaseSucceeded, w)
		Eventually(func() []map[string]collector.Span { return tracesOf(c, w) }).WithContext(ctx).Should(HaveLen(1))
		found, err := requestOf(ctx, w)
		Expect(err).NotTo(HaveOccurred())
		checkTrace(ctx, tracesOf(c, w)[0], found, quiet)
		var sent strings.Builder
		for _, request := range c.Requests() {
			sent.WriteString(request.String())
		}
		Expect(sent.String()).To(And(ContainSubstring(namespace), Not(ContainSubstring(before)), Not(ContainSubstring(after))))

		By("the collector is gone")
		c.Stop()
		rewrite(ctx, source, "without a collector")
		Eventually(func() int { return revisions(ctx, w) }).WithContext(ctx).Should(Equal(3))
		reached(ctx, v1alpha1.PhaseSucceeded, w)

		By("traces are off")
		traceTo(ctx, "")
		back := collecting(c.Address())
		rewrite(ctx, source, "without traces")
		Eventually(func() int { return revisions(ctx, w) }).WithContext(ctx).Should(Equal(4))
		reached(ctx, v1alpha1.PhaseSucceeded, w)
		scaleKick(ctx, 0) // Whatever was to be sent is sent at the end.
		scaleKick(ctx, 2)
		Expect(back.Requests()).To(BeEmpty())
	}, NodeTimeout(patience*5))
})

// checkTrace compares the trace of a restart that waited for the quiet period with its request.
func checkTrace(ctx context.Context, spans map[string]collector.Span, found *v1alpha1.KickRequest, period time.Duration) {
	GinkgoHelper()
	Expect(spans).To(And(HaveKey("kick restart"), HaveKey("held back"), HaveKey("QuietPeriod"), HaveKey("rollout")))
	root, held, quiet, rollout := spans["kick restart"], spans["held back"], spans["QuietPeriod"], spans["rollout"]
	Expect(held.ParentSpanId).To(Equal(root.SpanId))
	Expect(rollout.ParentSpanId).To(Equal(root.SpanId))
	Expect(quiet.ParentSpanId).To(Equal(held.SpanId))

	changed, current := found.Status.Causes[0].ChangedAt.Time, found.Status.CurrentRollout
	Expect(root.Start()).To(BeTemporally("==", changed))
	Expect(held.Start()).To(BeTemporally("==", changed))
	Expect(quiet.Start()).To(BeTemporally(">=", changed))
	Expect(quiet.End()).To(And(BeTemporally(">=", changed.Add(period)), BeTemporally("<=", held.End())))
	Expect(held.End()).To(BeTemporally("==", current.StartedAt.Time))
	Expect(rollout.Start()).To(BeTemporally("==", current.StartedAt.Time))
	Expect(rollout.End()).To(BeTemporally("==", found.Status.CompletedAt.Time))
	Expect(root.End()).To(BeTemporally("==", found.Status.CompletedAt.Time))

	Expect(collector.Attributes(root.Attributes)).To(And(
		HaveKeyWithValue("kick.request", found.Name), HaveKeyWithValue("kick.phase", "Succeeded"), HaveKeyWithValue("kick.reason", "Succeeded"),
		HaveKeyWithValue("kick.stamp", current.Stamp), HaveKeyWithValue("kick.revision", current.Revision)))
	Expect(root.Events).To(HaveLen(1))
	Expect(collector.At(root.Events[0].TimeUnixNano)).To(BeTemporally("==", changed))
	Expect(collector.Attributes(root.Events[0].Attributes)).To(Equal(map[string]string{"kick.source.kind": "Secret", "kick.source.name": "db"}))
	Expect(root.Status.GetCode()).To(Equal(tracepb.Status_STATUS_CODE_UNSET))
	version, err := exec.CommandContext(ctx, "../../bin/manager", "--version").Output()
	Expect(err).NotTo(HaveOccurred())
	Expect(root.Process).To(And(
		HaveKeyWithValue("service.name", "kick"), HaveKeyWithValue("service.version", strings.TrimSpace(string(version))),
		HaveKeyWithValue("k8s.namespace.name", kickNamespace), HaveKeyWithValue("k8s.pod.name", leader(ctx).Pod)))
}
