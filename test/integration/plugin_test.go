package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/kubectl/explain"
	"github.com/kick-dev/kick/test/testbed"
)

// kick runs the plugin as a user does, and returns what it prints.
func kick(ctx context.Context, arguments ...string) (stdout, stderr string, err error) {
	GinkgoHelper()
	plugin, err := filepath.Abs("../../bin/kubectl-kick")
	Expect(err).NotTo(HaveOccurred())
	Expect(plugin).To(BeAnExistingFile(), "run `make build`")
	command := exec.CommandContext(ctx, plugin, arguments...)
	command.Env = []string{"KUBECONFIG=" + bed.Kubeconfig(), "HOME=" + GinkgoT().TempDir(), "PATH=" + os.Getenv("PATH")}
	var out, complaints bytes.Buffer
	command.Stdout, command.Stderr = &out, &complaints
	err = command.Run()
	return out.String(), complaints.String(), err
}

// shows runs the plugin and returns what it prints to standard output.
func shows(ctx context.Context, arguments ...string) string {
	GinkgoHelper()
	out, complaints, err := kick(ctx, arguments...)
	Expect(err).NotTo(HaveOccurred(), "%s%s", out, complaints)
	return out
}

func explained(ctx context.Context, w client.Object, arguments ...string) explain.Report {
	GinkgoHelper()
	out := shows(ctx, append([]string{"explain", kubectlName(w), "-n", w.GetNamespace(), "-o", "json"}, arguments...)...)
	var report explain.Report
	Expect(json.Unmarshal([]byte(out), &report)).To(Succeed(), out)
	return report
}

// member gives a user one of the cluster's roles in a namespace, and returns the flags that act as that user.
func member(ctx context.Context, namespace, user, role string) []string {
	GinkgoHelper()
	create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
	return []string{"--as", user}
}

// nextNight is a schedule that opens in some hours.
func nextNight() (v1alpha1.Schedule, string) {
	opening := time.Now().UTC().Truncate(time.Minute).Add(6 * time.Hour)
	return windows(v1alpha1.Window{Kind: v1alpha1.WindowAllow, Cron: at(opening), Duration: "1h"}), opening.Format(time.RFC3339)
}

// pluginSituation is a state a workload may be in, with what KICK has to do about it.
type pluginSituation struct {
	workload client.Object
	// policy is changed by edit once it is no longer suspended.
	edit func(*v1alpha1.KickPolicySpec)
	// before is done while KICK looks on.
	before func(ctx context.Context)
	// unasked is true for a workload that gets no request.
	unasked bool

	action        explain.Action
	phase         v1alpha1.Phase
	reason        string
	restarts      int
	viewerDecides bool
}

const secretValue = "hunter2-nobody-may-see-this"

func pluginSituations(namespace string) map[string]*pluginSituation {
	night, _ := nextNight()
	all := map[string]*pluginSituation{
		"stale":     {action: explain.ActionRestart, phase: v1alpha1.PhaseSucceeded, reason: v1alpha1.ReasonSucceeded, restarts: 1},
		"orders":    {workload: statefulSet(namespace, "orders", envFromSecret("orders")), action: explain.ActionRestart, phase: v1alpha1.PhaseSucceeded, reason: v1alpha1.ReasonSucceeded, restarts: 1},
		"agent":     {workload: daemonSet(namespace, "agent", envFromSecret("agent")), action: explain.ActionRestart, phase: v1alpha1.PhaseSucceeded, reason: v1alpha1.ReasonSucceeded, restarts: 1},
		"replaced":  {action: explain.ActionNothing, phase: v1alpha1.PhaseNoLongerRequired, reason: v1alpha1.ReasonAlreadyFresh, viewerDecides: true},
		"night":     {edit: func(s *v1alpha1.KickPolicySpec) { s.Schedule = night }, action: explain.ActionWait, phase: v1alpha1.PhaseWaitingForGate, reason: v1alpha1.ReasonOutsideSchedule, viewerDecides: true},
		"dry":       {edit: func(s *v1alpha1.KickPolicySpec) { s.DryRun = true }, action: explain.ActionWait, phase: v1alpha1.PhaseWaitingForGate, reason: v1alpha1.ReasonDryRun, viewerDecides: true},
		"paused":    {action: explain.ActionWait, phase: v1alpha1.PhaseWaitingForRollout, reason: v1alpha1.ReasonPaused, viewerDecides: true},
		"missing":   {action: explain.ActionWait, phase: v1alpha1.PhaseWaitingForGate, reason: v1alpha1.ReasonMissingSource},
		"unowned":   {edit: func(s *v1alpha1.KickPolicySpec) { s.GitOps.Provider = v1alpha1.ProviderFlux }, action: explain.ActionWait, phase: v1alpha1.PhaseWaitingForOwner, reason: v1alpha1.ReasonProviderUnavailable, viewerDecides: true},
		"gathering": {action: explain.ActionWait, phase: v1alpha1.PhaseWaitingForGate, reason: v1alpha1.ReasonQuietPeriod, viewerDecides: true},
		"ignored":   {unasked: true, action: explain.ActionNothing},
		"free":      {unasked: true, action: explain.ActionNothing},
	}
	all["gathering"].edit = func(s *v1alpha1.KickPolicySpec) {
		s.Restart.QuietPeriod, s.Restart.MaxQuiet = &metav1.Duration{Duration: time.Hour}, &metav1.Duration{Duration: 2 * time.Hour}
	}
	all["missing"].workload = deployment(namespace, "missing", envFromSecret("missing"), envFromSecret("missing-too"))
	for name, situation := range all {
		if situation.workload == nil {
			situation.workload = deployment(namespace, name, envFromSecret(name))
		}
	}
	all["replaced"].before = func(ctx context.Context) {
		nextSecond()
		deletePods(ctx, all["replaced"].workload)
		rolledOut(ctx, all["replaced"].workload)
	}
	all["paused"].before = func(ctx context.Context) {
		change(ctx, all["paused"].workload.(*appsv1.Deployment), func(d *appsv1.Deployment) { d.Spec.Paused = true })
	}
	all["missing"].before = func(ctx context.Context) { Expect(k8s.Delete(ctx, secret(namespace, "missing-too", ""))).To(Succeed()) }
	return all
}

var _ = Describe("kubectl kick explain", func() {
	It("says what KICK then does, and no value", Serial, func(ctx SpecContext) {
		removeGitOps(ctx, fluxKinds...) // One of the policies asks a tool that is not there.
		namespace := newNamespace(ctx)
		all := pluginSituations(namespace)
		create(ctx, secret(namespace, "missing-too", "1"))
		for name, situation := range all {
			source := secret(namespace, name, "1")
			if name == "ignored" {
				source.Labels["kick.dev/ignore"] = "true"
			}
			create(ctx, source, situation.workload)
			if name != "free" {
				plan := labelled(namespace, name)
				plan.Spec.Suspend = true
				create(ctx, plan)
			}
		}
		for _, situation := range all {
			rolledOut(ctx, situation.workload)
		}
		for name, situation := range all {
			if !situation.unasked {
				Eventually(func() error { _, err := requestOf(ctx, situation.workload); return err }).WithContext(ctx).Should(Succeed(), name)
			}
		}
		nextSecond()
		for name, situation := range all {
			rewrite(ctx, secret(namespace, name, ""), secretValue)
			if !situation.unasked {
				found := blocked(ctx, v1alpha1.ReasonPolicySuspended, situation.workload)
				Expect(found.Status.Phase).To(Equal(v1alpha1.PhaseWaitingForGate), name)
			}
		}
		for _, situation := range all {
			if situation.before != nil {
				situation.before(ctx)
			}
		}
		viewer := member(ctx, namespace, "victor", "view")

		By("stopping KICK, and letting the restarts go")
		scaleKick(ctx, 0)
		DeferCleanup(func(ctx SpecContext) { scaleKick(ctx, 2) }, NodeTimeout(patience))
		withoutWebhooks(ctx, func() {
			for name, situation := range all {
				if name == "free" {
					continue
				}
				change(ctx, labelled(namespace, name), func(p *v1alpha1.KickPolicy) {
					p.Spec.Suspend = false
					if situation.edit != nil {
						situation.edit(&p.Spec)
					}
				})
			}
		})
		for name, situation := range all {
			report := explained(ctx, situation.workload)
			Expect(report.Decision.Action).To(Equal(situation.action), "%s: %+v", name, report)
			for _, as := range []string{"text", "json", "yaml"} {
				Expect(shows(ctx, "explain", kubectlName(situation.workload), "-n", namespace, "-o", as)).NotTo(ContainSubstring(secretValue))
			}
			seen := explained(ctx, situation.workload, viewer...)
			Expect(seen.Unseen).To(ContainElement(ContainSubstring("the ledger")), name)
			if situation.viewerDecides {
				Expect(seen.Decision.Action).To(Equal(situation.action), "%s, as seen by a viewer: %+v", name, seen)
				Expect(seen.Decision.Reason).To(Equal(situation.reason), name)
			} else if !situation.unasked {
				Expect(seen.Decision.Action).To(Equal(explain.ActionUnknown), "%s, as seen by a viewer: %+v", name, seen)
			}
			if situation.unasked {
				continue
			}
			if situation.action != explain.ActionRestart {
				Expect(report.Decision.Phase).To(Equal(string(situation.phase)), name)
				Expect(report.Decision.Reason).To(Equal(situation.reason), name)
			}
		}

		By("letting KICK decide")
		scaleKick(ctx, 2)
		for name, situation := range all {
			if situation.unasked {
				continue
			}
			Eventually(func(g Gomega) {
				found, err := requestOf(ctx, situation.workload)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(found.Status.Phase).To(Equal(situation.phase), name)
				g.Expect(conditionOf(found, v1alpha1.ConditionReady).Reason).To(Equal(situation.reason), name)
			}).WithContext(ctx).Should(Succeed())
		}
		for name, situation := range all {
			if name != "paused" {
				Expect(revisions(ctx, situation.workload)).To(Equal(1+situation.restarts), name)
			}
		}
		report := explained(ctx, all["stale"].workload)
		Expect(report.Verdict.Outcome).To(Equal(explain.Fresh))
		Expect(report.Evidence).NotTo(BeEmpty())
	}, NodeTimeout(patience*6))

	It("is not led astray by a write that changes no content", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		w, db := deployment(namespace, "web", envFromSecret("db")), secret(namespace, "db", "1")
		adopted(ctx, namespace, db, w)
		version := settledLedger(ctx, namespace)
		change(ctx, db, func(s *corev1.Secret) { s.Annotations = map[string]string{"example.com/refreshed": "true"} })
		Eventually(func() explain.Action { return explained(ctx, w).Decision.Action }).WithContext(ctx).Should(Equal(explain.ActionNothing))
		Expect(ledgerVersion(ctx, namespace)).To(Equal(version), "the write is not on record")
		restarted(ctx, 0, w)
	}, NodeTimeout(patience*2))

	It("says that it cannot tell without the ledger, and what a name must look like", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		adopted(ctx, namespace, secret(namespace, "db", "1"), deployment(namespace, "first", envFromSecret("db")))
		nextSecond()
		w := deployment(namespace, "late", envFromSecret("db")) // It came after its source was observed, so it gets no request.
		create(ctx, w)
		rolledOut(ctx, w)
		barrier(ctx, namespace)
		report := explained(ctx, w, member(ctx, namespace, "victor", "view")...)
		Expect(report.Decision.Action).To(Equal(explain.ActionUnknown))
		Expect(report.Unseen).To(ContainElement(ContainSubstring("you may not list kickledgers")))
		Expect(explained(ctx, w).Decision.Action).To(Equal(explain.ActionNothing))
		_, complaints, err := kick(ctx, "explain", "pod/web", "-n", namespace)
		Expect(err).To(HaveOccurred())
		Expect(complaints).To(ContainSubstring("deployment, statefulset or daemonset"))
		_, complaints, err = kick(ctx, "explain", "deployment/gone", "-n", namespace)
		Expect(err).To(HaveOccurred())
		Expect(complaints).To(ContainSubstring("deployment/gone is not in namespace " + namespace))
	}, NodeTimeout(patience*2))
})

var _ = Describe("kubectl kick status", func() {
	It("shows what waits, for what, and until when", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		source, w := secret(namespace, "db", "1"), deployment(namespace, "web", envFromSecret("db"))
		adopted(ctx, namespace, source, w)
		viewer := member(ctx, namespace, "victor", "view")
		Eventually(func() string {
			_, complaints, _ := kick(ctx, append([]string{"status", "-n", namespace}, viewer...)...)
			return complaints
		}).WithContext(ctx).Should(ContainSubstring("Nothing waits"))
		night, opens := nextNight()
		change(ctx, everything(namespace), func(p *v1alpha1.KickPolicy) { p.Spec.Schedule = night })
		rewrite(ctx, source, "2")
		blocked(ctx, v1alpha1.ReasonOutsideSchedule, w)
		Expect(shows(ctx, append([]string{"status", "-n", namespace}, viewer...)...)).To(And(
			ContainSubstring("deployment/web"), ContainSubstring("OutsideSchedule"), ContainSubstring(opens), ContainSubstring("Secret/db")))
		Expect(shows(ctx, "status", "-A")).To(And(ContainSubstring("NAMESPACE"), ContainSubstring(namespace)))
		var list v1alpha1.KickRequestList
		Expect(json.Unmarshal([]byte(shows(ctx, "status", "deployment/web", "-n", namespace, "-o", "json")), &list)).To(Succeed())
		Expect(list.Items).To(HaveLen(1))

		By("telling when a quiet period is over")
		change(ctx, everything(namespace), func(p *v1alpha1.KickPolicy) {
			p.Spec.Schedule = v1alpha1.Schedule{}
			p.Spec.Restart.QuietPeriod, p.Spec.Restart.MaxQuiet = lasts(time.Hour), lasts(2*time.Hour)
		})
		over := blocked(ctx, v1alpha1.ReasonQuietPeriod, w).Status.Causes[0].ChangedAt.Add(time.Hour).UTC().Format(time.RFC3339)
		Expect(shows(ctx, append([]string{"status", "-n", namespace}, viewer...)...)).To(MatchRegexp(`deployment/web .*QuietPeriod +` + over + ` \(in`))
		change(ctx, everything(namespace), func(p *v1alpha1.KickPolicy) {
			p.Spec.Schedule = night
			p.Spec.Restart.QuietPeriod, p.Spec.Restart.MaxQuiet = lasts(0), lasts(0)
		})
		blocked(ctx, v1alpha1.ReasonOutsideSchedule, w)

		By("watching it go")
		plugin, err := filepath.Abs("../../bin/kubectl-kick")
		Expect(err).NotTo(HaveOccurred())
		command := exec.CommandContext(ctx, plugin, "status", "-n", namespace, "-w")
		command.Env = []string{"KUBECONFIG=" + bed.Kubeconfig(), "HOME=" + GinkgoT().TempDir()}
		output := gbytes.NewBuffer()
		printed := func() string { return string(output.Contents()) }
		command.Stdout, command.Stderr = output, output
		Expect(command.Start()).To(Succeed())
		Eventually(printed).WithContext(ctx).Should(ContainSubstring("OutsideSchedule"))
		change(ctx, everything(namespace), func(p *v1alpha1.KickPolicy) { p.Spec.Schedule = v1alpha1.Schedule{} })
		Eventually(printed).WithContext(ctx).Should(And(ContainSubstring("RollingOut"), ContainSubstring("Succeeded")))
		Expect(command.Process.Signal(os.Interrupt)).To(Succeed())
		Expect(command.Wait()).To(Succeed(), "an interrupt is how a watch ends")
	}, NodeTimeout(patience*2))
})

var _ = Describe("kubectl kick restart", func() {
	It("asks in the user's own name, and waits until the restart is live", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		source, w := secret(namespace, "db", "1"), deployment(namespace, "web", envFromSecret("db"), podLabel(testbed.LabelStartDelay, "2s"))
		w.Spec.Replicas = ptr.To[int32](2)
		adopted(ctx, namespace, source, w)
		editor := member(ctx, namespace, "edith", "edit")
		asked := func(arguments ...string) []string {
			return append(append([]string{"restart", "deployment/web", "-n", namespace}, arguments...), editor...)
		}
		nextSecond()
		Expect(shows(ctx, asked("--reason", "new licence", "--wait", "--timeout", patience.String())...)).To(And(
			ContainSubstring("asked for a restart"), ContainSubstring("RollingOut"), ContainSubstring("Succeeded")))
		live(ctx, w)
		restarted(ctx, 1, w)
		found, err := requestOf(ctx, w)
		Expect(err).NotTo(HaveOccurred())
		Expect(found.Spec.Manual.RequestedBy).To(Equal("edith"))
		Expect(found.Spec.Manual.Reason).To(Equal("new licence"))

		By("overriding, which takes a right of its own")
		night, _ := nextNight()
		change(ctx, everything(namespace), func(p *v1alpha1.KickPolicy) { p.Spec.Schedule = night })
		_, complaints, err := kick(ctx, asked("--override")...)
		Expect(err).To(HaveOccurred())
		Expect(complaints).To(ContainSubstring("override"))
		_, complaints, err = kick(ctx, asked("--wait", "--timeout", "3s")...)
		Expect(err).To(HaveOccurred())
		Expect(complaints).To(ContainSubstring("gave up waiting"))
		nextSecond()
		Expect(shows(ctx, "restart", "deployment/web", "-n", namespace, "--override", "--wait", "--timeout", patience.String())).To(ContainSubstring("Succeeded"))
		restarted(ctx, 2, w)

		By("showing it all on one axis")
		for _, as := range []string{"svg", "html", "text"} {
			Expect(shows(ctx, append([]string{"timeline", "deployment/web", "-n", namespace, "-o", as}, editor...)...)).To(And(
				ContainSubstring("deployment/web"), ContainSubstring("restart"), ContainSubstring("rollout")))
		}
		drawn := shows(ctx, "timeline", "-n", namespace, "-o", "svg")
		for decoder := xml.NewDecoder(strings.NewReader(drawn)); ; {
			if _, err := decoder.Token(); errors.Is(err, io.EOF) {
				break
			} else {
				Expect(err).NotTo(HaveOccurred())
			}
		}
		Expect(shows(ctx, append([]string{"calendar", "everything", "-n", namespace, "--days", "3"}, editor...)...)).To(And(
			ContainSubstring("Openings"), ContainSubstring("█")))
	}, NodeTimeout(patience*3))

	It("is not for workloads that nobody manages", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		create(ctx, deployment(namespace, "web"))
		_, complaints, err := kick(ctx, "restart", "deployment/web", "-n", namespace)
		Expect(err).To(HaveOccurred())
		Expect(complaints).To(ContainSubstring("no KickPolicy"))
	}, NodeTimeout(patience))
})

var _ = Describe("kubectl kick preview", func() {
	It("lists workloads, overlaps and who is stale, and stores nothing", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		stale, fresh := deployment(namespace, "stale", envFromSecret("stale")), deployment(namespace, "fresh", envFromSecret("fresh"))
		other := deployment(namespace, "other")
		create(ctx, secret(namespace, "stale", "1"), secret(namespace, "fresh", "1"), labelled(namespace, "fresh"))
		nextSecond()
		create(ctx, stale, fresh, other)
		rolledOut(ctx, stale, fresh, other)
		nextSecond()
		rewrite(ctx, secret(namespace, "stale", ""), secretValue)
		plan := labelled(namespace, "new")
		plan.Spec.Discovery.WorkloadSelector = metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"stale", "fresh"}},
		}}
		var opens string
		plan.Spec.Schedule, opens = nextNight()
		out := shows(ctx, "preview", "-f", manifest(plan))
		Expect(out).To(And(ContainSubstring("would be new"), ContainSubstring("opens "+opens), ContainSubstring("Workloads it would manage: 2"),
			MatchRegexp(`deployment/stale +Stale +wait: OutsideSchedule +- +Secret/stale`),
			MatchRegexp(`deployment/fresh +Fresh +nothing +fresh +Secret/fresh`), ContainSubstring("KickPolicy fresh selects Deployment fresh, too")))
		Expect(out).NotTo(Or(ContainSubstring("deployment/other"), ContainSubstring(secretValue)))
		var list v1alpha1.KickPolicyList
		Expect(k8s.List(ctx, &list, client.InNamespace(namespace))).To(Succeed())
		Expect(list.Items).To(HaveLen(1))
	}, NodeTimeout(patience))

	It("refuses with the words of the API server and the webhook, without a cluster", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		// Where the shape is wrong the API server goes on to say that it has not checked the rest.
		unchecked := regexp.MustCompile(`\[(.*), <nil>: Invalid value: null: some validation rules were not checked.*\]`)
		for name, edit := range map[string]func(*v1alpha1.KickPolicySpec){
			"a schedule": func(s *v1alpha1.KickPolicySpec) {
				s.Schedule = windows(v1alpha1.Window{Kind: v1alpha1.WindowAllow, Cron: "60 25 * * *", Duration: "0s", TimeZone: "Mars/Base"})
			},
			"a selector": func(s *v1alpha1.KickPolicySpec) { s.Discovery.WorkloadSelector = expression("app", "In") },
			"the shape":  func(s *v1alpha1.KickPolicySpec) { s.Guard = "Sometimes" },
			"a duration": func(s *v1alpha1.KickPolicySpec) { s.Restart.MaxConcurrent = ptr.To[int32](0) },
		} {
			plan := everything(namespace)
			edit(&plan.Spec)
			refusal := k8s.Create(ctx, plan.DeepCopy())
			Expect(refusal).To(HaveOccurred(), name)
			encoded, err := yaml.Marshal(plan)
			Expect(err).NotTo(HaveOccurred())
			object := map[string]any{}
			Expect(yaml.Unmarshal(encoded, &object)).To(Succeed())
			object["apiVersion"], object["kind"] = v1alpha1.GroupVersion.String(), "KickPolicy"
			delete(object, "status")
			file := filepath.Join(GinkgoT().TempDir(), "policy.yaml")
			encoded, err = yaml.Marshal(object)
			Expect(err).NotTo(HaveOccurred())
			Expect(os.WriteFile(file, encoded, 0o600)).To(Succeed())
			_, complaints, err := kick(ctx, "preview", "--offline", "-f", file, "--kubeconfig", os.DevNull)
			Expect(err).To(HaveOccurred(), name)
			words := strings.TrimPrefix(refusal.Error(), `admission webhook "kickpolicy.kick.dev" denied the request: `)
			Expect(complaints).To(ContainSubstring(unchecked.ReplaceAllString(words, "$1")), name)
		}
	}, NodeTimeout(patience))
})

var _ = Describe("kubectl kick doctor", Serial, func() {
	It("finds nothing wrong with a fresh installation", func(ctx SpecContext) {
		Eventually(func(g Gomega) {
			out, complaints, err := kick(ctx, "doctor")
			g.Expect(err).NotTo(HaveOccurred(), "%s%s", out, complaints)
			g.Expect(out).To(And(ContainSubstring("0 problems"), ContainSubstring("leads"), ContainSubstring("refused a policy without sense")))
		}).WithContext(ctx).Should(Succeed())
	}, NodeTimeout(patience))

	It("finds a registration that is gone, and says how it comes back", func(ctx SpecContext) {
		withoutWebhooks(ctx, func() {
			Eventually(func(g Gomega) {
				out, _, err := kick(ctx, "doctor")
				g.Expect(err).To(HaveOccurred(), "a problem is an exit code")
				g.Expect(out).To(And(MatchRegexp(`PROBLEM +Webhooks +guard.kick.dev is not registered`), ContainSubstring("helm upgrade --install kick"),
					ContainSubstring("it asks no webhook")))
			}).WithContext(ctx).Should(Succeed())
		})
	}, NodeTimeout(patience))

	It("finds a right that is missing", func(ctx SpecContext) {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "kick-manager"}}
		refresh(ctx, role)
		whole := role.DeepCopy()
		DeferCleanup(func(ctx SpecContext) {
			change(ctx, role, func(r *rbacv1.ClusterRole) { r.Rules = whole.Rules })
		})
		change(ctx, role, func(r *rbacv1.ClusterRole) {
			for i := range r.Rules {
				if len(r.Rules[i].APIGroups) == 1 && r.Rules[i].APIGroups[0] == "apps" && strings.Contains(fmt.Sprint(r.Rules[i].Resources), "deployments") {
					r.Rules[i].Verbs = []string{"get", "list", "watch"}
				}
			}
		})
		Eventually(func(g Gomega) {
			out, _, err := kick(ctx, "doctor")
			g.Expect(err).To(HaveOccurred())
			g.Expect(out).To(And(MatchRegexp(`PROBLEM +Rights`), ContainSubstring("patch deployments.apps"), ContainSubstring("brings the roles back")))
		}).WithContext(ctx).Should(Succeed())
	}, NodeTimeout(patience))

	It("says what it may not see", func(ctx SpecContext) {
		out, _, err := kick(ctx, "doctor", "--as", "nobody-special", "-o", "json")
		Expect(err).NotTo(HaveOccurred(), out)
		var findings []map[string]string
		Expect(json.Unmarshal([]byte(out), &findings)).To(Succeed())
		Expect(findings).To(ContainElement(And(HaveKeyWithValue("check", "Ledger"), HaveKeyWithValue("status", "not seen"))))
	}, NodeTimeout(patience))
})

var _ = Describe("kubectl kick migrate", func() {
	It("prints policies that can be applied, and under which KICK restarts what Reloader did", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		source, w, free := secret(namespace, "db", "1"), deployment(namespace, "web", envFromSecret("db")), deployment(namespace, "free", envFromSecret("db"))
		w.Annotations = map[string]string{"reloader.stakater.com/auto": "true", "reloader.stakater.com/rollout-strategy": "restart"}
		create(ctx, source, w, free)
		rolledOut(ctx, w, free)
		out := shows(ctx, append([]string{"migrate", "-n", namespace}, member(ctx, namespace, "victor", "view")...)...)
		Expect(out).To(And(ContainSubstring("deployment/web"), ContainSubstring("deletes Pods")))
		applied, err := bed.Kubectl(ctx, "apply", "-f", rawManifest(out))
		Expect(err).NotTo(HaveOccurred(), applied)
		plan := &v1alpha1.KickPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "reload"}}
		settled(ctx, plan, 1, 1)
		rewrite(ctx, source, "2")
		reached(ctx, v1alpha1.PhaseSucceeded, w)
		restarted(ctx, 1, w)
		restarted(ctx, 0, free)
	}, NodeTimeout(patience*2))
})
