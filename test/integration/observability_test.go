package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/policy"
)

var metricName = regexp.MustCompile(`\bkick_[a-z_]+`)

// distinct are the matches of an expression in a text, each once.
func distinct(expression *regexp.Regexp, text string) []string {
	found := expression.FindAllString(text, -1)
	slices.Sort(found)
	return slices.Compact(found)
}

// scrapeAll reads the metrics of every replica.
func scrapeAll(ctx SpecContext) string {
	GinkgoHelper()
	var all strings.Builder
	running, err := bed.Pods(kickNamespace, kickSelector)
	Expect(err).NotTo(HaveOccurred())
	for _, process := range running {
		all.WriteString(scrape(ctx, process))
	}
	return all.String()
}

var _ = Describe("The metrics of a running KICK", func() {
	It("hold what the alerts are about, and nothing that is not documented", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		create(ctx, everything(namespace))
		barrier(ctx, namespace)
		exported := scrapeAll(ctx)

		rendered, err := bed.Helm(ctx, "template", "kick", "../../charts/kick", "--api-versions", "cert-manager.io/v1",
			"--set", "metrics.prometheusRule.enabled=true", "--show-only", "templates/monitoring.yaml")
		Expect(err).NotTo(HaveOccurred(), rendered)
		queries := strings.Join(regexp.MustCompile(`(?m)^ *expr: .*$`).FindAllString(rendered, -1), "\n")
		used := distinct(metricName, queries)
		Expect(len(used)).To(BeNumerically(">", 5), queries)
		for _, name := range used {
			Expect(exported).To(MatchRegexp(`(?m)^`+name+`[ {]`), "the metric %s, which an alert uses", name)
		}

		page, err := os.ReadFile("../../docs/metrics.md")
		Expect(err).NotTo(HaveOccurred())
		for _, line := range distinct(regexp.MustCompile(`(?m)^# TYPE kick_\S+ \w+$`), exported) {
			fields := strings.Fields(line)
			Expect(string(page)).To(ContainSubstring("| `"+fields[2]+"` | "+fields[3]+" |"), "metric %s in docs/metrics.md", fields[2])
		}
	}, NodeTimeout(patience*2))

	It("say which version runs, and that one replica leads", func(ctx SpecContext) {
		version, err := exec.CommandContext(ctx, "../../bin/manager", "--version").Output()
		Expect(err).NotTo(HaveOccurred())
		Eventually(func(g Gomega) {
			exported := scrapeAll(ctx)
			g.Expect(exported).To(ContainSubstring(`version="` + strings.TrimSpace(string(version)) + `"} 1`))
			g.Expect(regexp.MustCompile(`(?m)^kick_leader 1$`).FindAllString(exported, -1)).To(HaveLen(1))
		}).WithContext(ctx).Should(Succeed())
	}, NodeTimeout(patience))
})

// logged are the lines of KICK's logs that hold all of the texts.
func logged(texts ...string) []string {
	GinkgoHelper()
	logs, err := filepath.Glob(filepath.Join(bed.Dir(), "logs", "pods", kickNamespace+"_*.log"))
	Expect(err).NotTo(HaveOccurred())
	Expect(logs).NotTo(BeEmpty())
	var found []string
	for _, path := range logs {
		text, err := os.ReadFile(path)
		Expect(err).NotTo(HaveOccurred())
		for line := range strings.Lines(string(text)) {
			if !slices.ContainsFunc(texts, func(part string) bool { return !strings.Contains(line, part) }) {
				found = append(found, line)
			}
		}
	}
	return found
}

var _ = Describe("Which source restarted which workload", func() {
	It("can be told from the request, an event, the metrics and the log (C127)", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		const before, after = "value-of-before", "value-of-after"
		var uses []use
		var sources []client.Object
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			sources, uses = append(sources, secret(namespace, name, before)), append(uses, envOfKey(name, "key"))
		}
		w := deployment(namespace, "web", uses...)
		create(ctx, sources...)
		create(ctx, w)
		rolledOut(ctx, w)
		create(ctx, policyWith(namespace, func(s *v1alpha1.KickPolicySpec) { s.Discovery.Granularity = v1alpha1.GranularityKey }))
		reached(ctx, v1alpha1.PhaseNoLongerRequired, w)
		const counter = `kick_restarts_total\{kind="Deployment",outcome="succeeded"\}`
		succeeded := total(scrapeAll(ctx), counter)
		rewrite(ctx, sources[2], after)
		reached(ctx, v1alpha1.PhaseSucceeded, w)

		found, err := requestOf(ctx, w)
		Expect(err).NotTo(HaveOccurred())
		Expect(found.Status.Causes).To(ConsistOf(And(
			HaveField("Kind", v1alpha1.Secret), HaveField("Name", "c"), HaveField("Keys", []string{"key"}), HaveField("ChangedAt.Time", Not(BeZero())))))
		changed, stamped := found.Status.Causes[0].ChangedAt, found.Status.CurrentRollout.StartedAt
		Expect(stamped.Time).To(BeTemporally(">=", changed.Time))
		Expect(found.Status.CompletedAt.Time).To(BeTemporally(">=", stamped.Time))
		Expect(found.Status.CurrentRollout.Stamp).To(Equal(stampOf(ctx, w)))

		Eventually(func() []string { return eventsOn(ctx, namespace, "Kicked") }).WithContext(ctx).Should(ConsistOf("restarting because of Secret c"))
		Expect(total(scrapeAll(ctx), counter)).To(BeNumerically(">", succeeded))
		named := []string{`"request":"` + namespace + `/deployment-web"`, `"workload":"`}
		Eventually(func() []string { return logged(append(named, `"to":"Succeeded"`, `"reason":"Succeeded"`)...) }).WithContext(ctx).Should(HaveLen(1))
		Expect(logged(append(named, `"msg":"restarted the workload"`)...)).To(HaveLen(1))
		Expect(logged(before)).To(BeEmpty())
		Expect(logged(after)).To(BeEmpty())
	}, NodeTimeout(patience*2))
})

var _ = Describe("Why nothing happens", func() {
	It("can be told from status alone (C131)", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		only := func(name string, edit func(*v1alpha1.KickPolicySpec)) *v1alpha1.KickPolicy {
			p := policyWith(namespace, func(s *v1alpha1.KickPolicySpec) {
				s.Discovery.WorkloadSelector = *selecting(name)
				edit(s)
			})
			p.Name = name
			return p
		}
		as := func(*v1alpha1.KickPolicySpec) {}
		nothing, excluded, unused := only("nothing", as), only("excluded", as), only("unused", as)
		suspended := only("suspended", func(s *v1alpha1.KickPolicySpec) { s.Suspend = true })
		closed := only("closed", func(s *v1alpha1.KickPolicySpec) {
			later := at(time.Now().UTC().Add(6 * time.Hour))
			s.Schedule = windows(v1alpha1.Window{Kind: v1alpha1.WindowAllow, Cron: later, Duration: "1h"})
		})

		platform := secret(namespace, "platform", "1")
		platform.Labels[policy.IgnoreLabel] = "true"
		other, shared := secret(namespace, "other", "1"), secret(namespace, "shared", "1")
		left, reads := deployment(namespace, "excluded", envFromSecret("platform")), deployment(namespace, "unused", envFromSecret("other"))
		held, late := deployment(namespace, "suspended", envFromSecret("shared")), deployment(namespace, "closed", envFromSecret("shared"))
		create(ctx, platform, other, shared, left, reads, held, late)
		rolledOut(ctx, left, reads, held, late)
		create(ctx, nothing, excluded, unused, suspended, closed)
		reached(ctx, v1alpha1.PhaseNoLongerRequired, reads)

		rewrite(ctx, platform, "2")
		rewrite(ctx, shared, "2")
		settled(ctx, nothing, 0, 0)
		settled(ctx, excluded, 1, 0)
		settled(ctx, unused, 1, 1)
		blocked(ctx, v1alpha1.ReasonPolicySuspended, held)
		Expect(blocked(ctx, v1alpha1.ReasonOutsideSchedule, late).Status.Gate.RequeueAt).NotTo(BeEmpty())
		reached(ctx, v1alpha1.PhaseNoLongerRequired, reads)
		restarted(ctx, 0, left, reads, held, late)
	}, NodeTimeout(patience*3))
})
