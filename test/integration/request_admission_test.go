package integration

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/workload"
	"github.com/kick-dev/kick/internal/core/request"
)

// asking is a request by which a user asks for a restart of a workload now.
func asking(w client.Object, user string) *v1alpha1.KickRequest {
	wrapped, _ := workload.Of(w)
	return &v1alpha1.KickRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.GetNamespace(), Name: request.Name(kindOf(w), w.GetName())},
		Spec: v1alpha1.KickRequestSpec{
			TargetRef: wrapped.TargetRef(),
			Manual:    &v1alpha1.ManualRestart{RequestedAt: metav1.NewMicroTime(time.Now().Truncate(time.Microsecond)), RequestedBy: user},
		},
	}
}

// granted gives a user rights on the KickRequests of a namespace.
func granted(ctx context.Context, namespace, user string, verbs ...string) client.Client {
	GinkgoHelper()
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: user},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"kickrequests"}, Verbs: verbs}},
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: role.ObjectMeta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	create(ctx, role, binding)
	return clientOf(bed.As(user))
}

var _ = Describe("A request for a restart by hand", func() {
	It("is taken from whoever may write it, in their own name, now", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		w := deployment(namespace, "web")
		create(ctx, w)
		alice := granted(ctx, namespace, "alice", "get", "create", "update", "patch")
		refused := func(edit func(*v1alpha1.KickRequest), path, text string) {
			GinkgoHelper()
			asked := asking(w, "alice")
			edit(asked)
			Expect(alice.Create(ctx, asked)).To(MatchError(And(ContainSubstring(path), ContainSubstring(text))))
		}
		ago := func(d time.Duration) metav1.MicroTime {
			return metav1.NewMicroTime(time.Now().Add(-d).Truncate(time.Microsecond))
		}
		refused(func(r *v1alpha1.KickRequest) { r.Spec.Manual.RequestedBy = "bob" }, "spec.manual.requestedBy", `write "alice"`)
		refused(func(r *v1alpha1.KickRequest) { r.Spec.Manual.RequestedAt = ago(time.Hour) }, "spec.manual.requestedAt", "within 5 minutes")
		refused(func(r *v1alpha1.KickRequest) { r.Spec.Manual.RequestedAt = ago(-time.Hour) }, "spec.manual.requestedAt", "within 5 minutes")
		refused(func(r *v1alpha1.KickRequest) { r.Spec.TargetRef.UID = "another" }, "spec.targetRef.uid", string(w.UID))
		refused(func(r *v1alpha1.KickRequest) { r.Spec.TargetRef.Name, r.Name = "none", "deployment-none" }, "spec.targetRef.name", "no Deployment")

		asked := asking(w, "alice")
		Expect(alice.Create(ctx, asked)).To(Succeed())
		back := asked.DeepCopy()
		back.Spec.Manual.RequestedAt = ago(time.Minute)
		Expect(alice.Patch(ctx, back, client.MergeFrom(asked))).To(MatchError(ContainSubstring("must not be before")))
		bob := granted(ctx, namespace, "bob", "get", "update", "patch")
		change(ctx, asked, func(r *v1alpha1.KickRequest) { r.Labels = map[string]string{"team": "x"} }) // as the administrator
		relabelled := asked.DeepCopy()
		relabelled.Labels = nil
		Expect(bob.Patch(ctx, relabelled, client.MergeFrom(asked))).To(Succeed(), "who leaves the wish alone need not have made it")
		claimed := asked.DeepCopy()
		claimed.Spec.Manual.Reason = "in the name of alice"
		Expect(bob.Patch(ctx, claimed, client.MergeFrom(asked))).To(MatchError(ContainSubstring("spec.manual.requestedBy")))
	}, NodeTimeout(patience))

	It("overrides for those who have the right, and for nobody else (C076)", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		w := deployment(namespace, "web")
		create(ctx, w)
		alice := granted(ctx, namespace, "alice", "get", "create", "update", "patch")
		olga := granted(ctx, namespace, "olga", "get", "create", "update", "patch", "override")
		asked := asking(w, "alice")
		asked.Spec.Manual.Override = true
		Expect(alice.Create(ctx, asked)).To(MatchError(And(ContainSubstring("spec.manual.override"), ContainSubstring("no right to override kickrequests.kick.dev"))))
		asked = asking(w, "olga")
		asked.Spec.Manual.Override, asked.Spec.Manual.Reason = true, "incident 42"
		Expect(olga.Create(ctx, asked)).To(Succeed())
		again := asked.DeepCopy()
		again.Spec.Manual.RequestedAt, again.Spec.Manual.RequestedBy = metav1.NewMicroTime(time.Now().Truncate(time.Microsecond)), "alice"
		Expect(alice.Patch(ctx, again, client.MergeFrom(asked))).To(MatchError(ContainSubstring("spec.manual.override")), "not even where it stands already")
		again.Spec.Manual.Override = false
		Expect(alice.Patch(ctx, again, client.MergeFrom(asked))).To(Succeed())
	}, NodeTimeout(patience))

	It("is made by the very command that a denial gives, the first time and again (C092)", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		w := statefulSet(namespace, "db")
		create(ctx, everything(namespace), w)
		guarded(ctx, w)
		for range 2 {
			_, denial := bed.Kubectl(ctx, "rollout", "restart", "statefulset/db", "-n", namespace)
			Expect(denial).To(HaveOccurred())
			begin := time.Now().Truncate(time.Second)
			output, err := shell(ctx, commandIn(denial.Error()))
			Expect(err).NotTo(HaveOccurred(), output)
			Expect(output).To(ContainSubstring("kickrequest.kick.dev/statefulset-db serverside-applied"))
			asked, err := requestOf(ctx, w)
			Expect(err).NotTo(HaveOccurred())
			Expect(asked.Spec.Manual).NotTo(BeNil())
			Expect(asked.Spec.Manual.RequestedBy).To(Equal("admin"))
			Expect(asked.Spec.Manual.RequestedAt.Time).To(BeTemporally(">=", begin))
			Expect(asked.Spec.Manual.Override).To(BeFalse())
			nextSecond()
		}
		_, denial := bed.Kubectl(ctx, "rollout", "restart", "statefulset/db", "-n", namespace)
		output, err := shell(ctx, strings.Replace(commandIn(denial.Error()), `"override":false`, `"override":true`, 1))
		Expect(err).NotTo(HaveOccurred(), output)
		asked, err := requestOf(ctx, w)
		Expect(err).NotTo(HaveOccurred())
		Expect(asked.Spec.Manual.Override).To(BeTrue())
	}, NodeTimeout(patience))
})

// commandIn is the command that a denial gives: the line that begins with it.
func commandIn(denial string) string {
	GinkgoHelper()
	for line := range strings.Lines(denial) {
		if strings.HasPrefix(line, "printf ") {
			return line
		}
	}
	Fail("no command in " + denial)
	return ""
}

// shell runs a command as the administrator does at a prompt.
func shell(ctx context.Context, command string) (string, error) {
	GinkgoHelper()
	tools, err := filepath.Abs("../../.cache/testbed/bin")
	Expect(err).NotTo(HaveOccurred())
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Env = append(os.Environ(), "PATH="+tools+":"+os.Getenv("PATH"), "KUBECONFIG="+bed.Kubeconfig())
	output, err := cmd.CombinedOutput()
	return string(output), err
}
