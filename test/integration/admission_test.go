package integration

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
)

var _ = Describe("The API", func() {
	DescribeTable("refuses a malformed selector and names its field (C096)",
		func(ctx SpecContext, selector metav1.LabelSelector, path string) {
			policy := everything(newNamespace(ctx))
			policy.Spec.Discovery.WorkloadSelector = selector
			err := k8s.Create(ctx, policy)
			Expect(errors.IsInvalid(err)).To(BeTrue(), "%v", err)
			Expect(err).To(MatchError(ContainSubstring(path)))
		},
		Entry("an unknown operator", expression("app", "Foo", "x"), "spec.discovery.workloadSelector.matchExpressions[0].operator"),
		Entry("In without values", expression("app", "In"), "spec.discovery.workloadSelector.matchExpressions[0].values"),
		Entry("Exists with values", expression("app", "Exists", "x"), "spec.discovery.workloadSelector.matchExpressions[0].values"),
		Entry("a value with spaces", metav1.LabelSelector{MatchLabels: map[string]string{"app": "my web"}}, "spec.discovery.workloadSelector.matchLabels"),
		Entry("an invalid key", metav1.LabelSelector{MatchLabels: map[string]string{"a b": "x"}}, "spec.discovery.workloadSelector.matchLabels"),
	)

	It("refuses a policy that selects no workloads explicitly (C096)", func(ctx SpecContext) {
		output, err := bed.Kubectl(ctx, "apply", "--dry-run=server", "-f", rawManifest(
			"apiVersion: kick.dev/v1alpha1\nkind: KickPolicy\nmetadata: {name: p, namespace: default}\nspec: {discovery: {}}\n"))
		Expect(err).To(HaveOccurred())
		Expect(output + err.Error()).To(ContainSubstring("spec.discovery.workloadSelector"))
	})

	It("keeps requests to their names and targets", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		w := deployment(namespace, "web")
		create(ctx, w)
		bad := &v1alpha1.KickRequest{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
			Spec:       v1alpha1.KickRequestSpec{TargetRef: v1alpha1.TargetRef{APIVersion: "apps/v1", Kind: v1alpha1.Deployment, Name: "web", UID: w.UID}},
		}
		Expect(k8s.Create(ctx, bad)).To(MatchError(ContainSubstring("metadata.name must be the kind of the target")))
		good := bad.DeepCopy()
		good.Name = "deployment-web"
		Expect(k8s.Create(ctx, good)).To(Succeed())
		other := good.DeepCopy()
		other.Spec.TargetRef.Name = "other"
		Expect(k8s.Patch(ctx, other, client.MergeFrom(good))).To(MatchError(ContainSubstring("targetRef is immutable")))
	})

	// One object that Go cannot decode would keep KICK from listing any of its kind, so the schema has to refuse it.
	DescribeTable("refuses what KICK could not read",
		func(ctx SpecContext, kind, name, spec, path string) {
			output, err := bed.Kubectl(ctx, "apply", "--dry-run=server", "-f", rawManifest(fmt.Sprintf(
				"apiVersion: kick.dev/v1alpha1\nkind: %s\nmetadata: {name: %s, namespace: default}\nspec: %s\n", kind, name, spec)))
			Expect(err).To(HaveOccurred(), output)
			Expect(err).To(MatchError(ContainSubstring(path)))
			Expect(err).NotTo(MatchError(ContainSubstring("admission webhook")))
		},
		Entry("a quiet period beyond all times", "KickPolicy", "p", restraint("quietPeriod: 9999999999h"), "spec.restart.quietPeriod"),
		Entry("a bound of it beyond all times", "KickPolicy", "p", restraint("maxQuiet: 9999999999h"), "spec.restart.maxQuiet"),
		Entry("an interval beyond all times", "KickPolicy", "p", restraint("minInterval: 9999999999h"), "spec.restart.minInterval"),
		Entry("a deadline beyond all times", "KickPolicy", "p", restraint("rolloutDeadline: 9999999999h"), "spec.restart.rolloutDeadline"),
		Entry("a number beyond 32 bits", "KickPolicy", "p", restraint("maxConcurrent: 3000000000"), "spec.restart.maxConcurrent"),
		Entry("an instant without a fraction", "KickRequest", "deployment-web", manually("2026-08-06T08:20:00Z"), "spec.manual.requestedAt"),
		Entry("an instant with nanoseconds", "KickRequest", "deployment-web", manually("2026-08-06T08:20:00.123456789Z"), "spec.manual.requestedAt"),
		Entry("an instant in no zone on earth", "KickRequest", "deployment-web", manually("2026-08-06T08:20:00.000000+99:99"), "spec.manual.requestedAt"),
		Entry("an instant on no day", "KickRequest", "deployment-web", manually("2026-02-30T08:20:00.000000Z"), "spec.manual.requestedAt"),
	)

	It("warns of a policy that is legal and unwise", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		w := deployment(namespace, "web")
		w.Annotations = map[string]string{"argocd.argoproj.io/tracking-id": "web:apps/Deployment:" + namespace + "/web"}
		create(ctx, w, labelled(namespace, "web"))
		warned := &warnings{}
		config := bed.RESTConfig()
		config.WarningHandler = warned
		policy := everything(namespace)
		policy.Spec.Schedule = windows(
			v1alpha1.Window{Kind: v1alpha1.WindowAllow, Cron: "0 2 * * *", Duration: "25h"},
			v1alpha1.Window{Kind: v1alpha1.WindowDeny, Cron: "0 0 * * *", Duration: "24h"},
		)
		policy.Spec.Restart.QuietPeriod = &metav1.Duration{Duration: 10 * time.Minute}
		Eventually(func(g Gomega) { // the caches of all replicas show the workload and the other policy
			warned.texts = nil
			g.Expect(clientOf(config).Create(ctx, policy.DeepCopy(), client.DryRunAll)).To(Succeed())
			g.Expect(warned.texts).To(ConsistOf(
				ContainSubstring("{} selects every"),
				ContainSubstring("KickPolicy web selects Deployment web, too"),
				ContainSubstring("never open within the next 366 days"),
				HavePrefix("spec.schedule.windows[0]: begins again"),
				HavePrefix("spec.schedule.windows[1]: begins again"),
				HavePrefix("spec.restart.maxQuiet: 1m0s is less than the quietPeriod of 10m0s"),
				HavePrefix("spec.gitOps.provider: None, but Deployment web carries the marks of ArgoCD"),
			))
		}).WithContext(ctx).MustPassRepeatedly(4).Should(Succeed())
	}, NodeTimeout(patience))

	It("does not hold the faults of a stored policy against those who mend it, and lets nobody add to them", Serial, func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		policy := everything(namespace)
		policy.Spec.Schedule = windows(allowing("0 0 * * 7", "1h", ""), allowing("0 2 * * *", "1h", ""))
		withoutWebhooks(ctx, func() {
			Eventually(func() error { return k8s.Create(ctx, policy.DeepCopy()) }).WithContext(ctx).Should(Succeed())
		})
		Eventually(func() error { return k8s.Create(ctx, policy.DeepCopy(), client.DryRunAll) }).WithContext(ctx).
			MustPassRepeatedly(4).Should(MatchError(ContainSubstring("spec.schedule.windows[0].cron")))

		change(ctx, policy, func(p *v1alpha1.KickPolicy) {
			p.Labels = map[string]string{"team": "x"}
			p.Finalizers = []string{"example.com/x"}
		})
		change(ctx, policy, func(p *v1alpha1.KickPolicy) { p.Finalizers = nil })
		change(ctx, policy, func(p *v1alpha1.KickPolicy) { p.Spec.Suspend = true })
		worse := policy.DeepCopy()
		worse.Spec.Schedule.Windows[1].Cron = "0 0 30 2 *"
		Expect(k8s.Patch(ctx, worse, client.MergeFrom(policy))).To(MatchError(And(
			ContainSubstring("spec.schedule.windows[1].cron"), Not(ContainSubstring("spec.schedule.windows[0].cron")))))
		change(ctx, policy, func(p *v1alpha1.KickPolicy) { p.Spec.Schedule.Windows = p.Spec.Schedule.Windows[:1] })
		mended := policy.DeepCopy()
		mended.Spec.Schedule.Windows[0].Cron = "0 0 * * 0"
		Expect(k8s.Patch(ctx, mended, client.MergeFrom(policy), client.DryRunAll)).To(Succeed())
		Expect(k8s.Delete(ctx, policy)).To(Succeed())
	}, NodeTimeout(patience*2))

	It("shows requests and policies in columns that read well", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		source, w := secret(namespace, "db", "1"), deployment(namespace, "web", envFromSecret("db"))
		adopted(ctx, namespace, source, w)
		rewrite(ctx, source, "2")
		reached(ctx, v1alpha1.PhaseSucceeded, w)

		narrow, err := bed.Kubectl(ctx, "get", "kickrequests", "-A")
		Expect(err).NotTo(HaveOccurred())
		Expect(columns(narrow)).To(Equal("NAMESPACE NAME TARGET KIND TARGET PHASE REASON CHANGED OPENS AGE"))
		Expect(narrow).To(MatchRegexp(namespace + ` +deployment-web +Deployment +web +Succeeded +Succeeded +\d+s`))
		wide, err := bed.Kubectl(ctx, "get", "kr", "-n", namespace, "-o", "wide")
		Expect(err).NotTo(HaveOccurred())
		Expect(columns(wide)).To(Equal("NAME TARGET KIND TARGET PHASE REASON CHANGED OPENS PROVIDER OWNER CAUSE KIND CAUSE REVISION AGE"))
		Expect(wide).To(MatchRegexp(`deployment-web .* Secret +db +web-[0-9a-z]+ `))

		policies, err := bed.Kubectl(ctx, "get", "kp", "-n", namespace)
		Expect(err).NotTo(HaveOccurred())
		Expect(columns(policies)).To(Equal("NAME READY REASON WORKLOADS SOURCES AGE"))
		Expect(policies).To(MatchRegexp(`everything +True +Succeeded +\d+ +\d+ `))
	}, NodeTimeout(patience*2))
})

func expression(key, operator string, values ...string) metav1.LabelSelector {
	return metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: key, Operator: metav1.LabelSelectorOperator(operator), Values: values},
	}}
}

// columns is the header of a table.
func columns(table string) string {
	header, _, _ := strings.Cut(table, "\n")
	return strings.Join(strings.Fields(header), " ")
}

// restraint is the spec of a policy, in YAML, with one setting of how restarts are made.
func restraint(setting string) string {
	return "{discovery: {workloadSelector: {}}, restart: {" + setting + "}}"
}

// manually is the spec of a request, in YAML, for a restart at an instant.
func manually(at string) string {
	return fmt.Sprintf("{targetRef: {apiVersion: apps/v1, kind: Deployment, name: web, uid: u}, manual: {requestedBy: admin, requestedAt: %q}}", at)
}

// withoutWebhooks does something while KICK's webhooks are not registered.
func withoutWebhooks(ctx context.Context, do func()) {
	GinkgoHelper()
	registered := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "kick"}}
	refresh(ctx, registered)
	Expect(k8s.Delete(ctx, registered)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		registered.ObjectMeta = metav1.ObjectMeta{Name: registered.Name, Labels: registered.Labels, Annotations: registered.Annotations}
		Expect(client.IgnoreAlreadyExists(k8s.Create(ctx, registered))).To(Succeed())
	})
	do()
	registered.ObjectMeta = metav1.ObjectMeta{Name: registered.Name, Labels: registered.Labels, Annotations: registered.Annotations}
	Expect(k8s.Create(ctx, registered)).To(Succeed())
}
