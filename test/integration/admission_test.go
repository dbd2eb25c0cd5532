package integration

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kick-dev/kick/api/v1alpha1"
)

var _ = Describe("The API", func() {
	DescribeTable("refuses a malformed selector and names its field",
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

	It("refuses a policy that selects no workloads explicitly", func(ctx SpecContext) {
		output, err := bed.Kubectl(ctx, "apply", "--dry-run=server", "-f", rawManifest(
			"apiVersion: kick.dev/v1alpha1\nkind: KickPolicy\nmetadata: {name: p, namespace: default}\nspec: {discovery: {}}\n"))
		Expect(err).To(HaveOccurred())
		Expect(output + err.Error()).To(ContainSubstring("spec.discovery.workloadSelector"))
	})

	It("keeps requests to their names and targets", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		bad := &v1alpha1.KickRequest{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
			Spec:       v1alpha1.KickRequestSpec{TargetRef: v1alpha1.TargetRef{APIVersion: "apps/v1", Kind: v1alpha1.Deployment, Name: "web", UID: "u"}},
		}
		Expect(k8s.Create(ctx, bad)).To(MatchError(ContainSubstring("metadata.name must be the kind of the target")))
		good := bad.DeepCopy()
		good.Name = "deployment-web"
		Expect(k8s.Create(ctx, good)).To(Succeed())
		good.Spec.TargetRef.Name = "other"
		Expect(k8s.Update(ctx, good)).To(MatchError(ContainSubstring("targetRef is immutable")))
	})

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
		Expect(columns(wide)).To(Equal("NAME TARGET KIND TARGET PHASE REASON CHANGED OPENS CAUSE KIND CAUSE REVISION AGE"))
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
