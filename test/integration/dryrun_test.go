package integration

import (
	"context"
	"errors"
	"os/exec"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
)

// diff asks kubectl what applying an object would change. It is an error if the API server refuses it.
func diff(ctx context.Context, object client.Object) (string, error) {
	GinkgoHelper()
	output, err := bed.Kubectl(ctx, "diff", "-f", manifest(object))
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 && output != "" { // There are differences.
		return output, nil
	}
	return output, err
}

var _ = Describe("kubectl diff", func() {
	It("shows what a write of a managed workload would do, and refuses a restart", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		create(ctx, everything(namespace))
		w := deployment(namespace, "web")
		output, err := bed.Kubectl(ctx, "apply", "-f", manifest(copyOf(w)))
		Expect(err).NotTo(HaveOccurred(), output)
		guarded(ctx, w)

		other := deployment(namespace, "web")
		app(&other.Spec.Template).Image = "app:2"
		Expect(diff(ctx, other)).To(ContainSubstring("+      - image: app:2"))
		other.Spec.Template.Annotations = map[string]string{v1alpha1.RestartedAtAnnotation: "2026-08-06T08:20:00Z"}
		_, err = diff(ctx, other)
		Expect(err).To(MatchError(And(ContainSubstring(`admission webhook "guard.kick.dev" denied the request`), ContainSubstring("KickPolicy everything"))))
		restarted(ctx, 0, w)
		Expect(app(templateOf(w)).Image).To(Equal("app"))
	}, NodeTimeout(patience))

	It("shows what a policy would be, and refuses one without sense", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		policy := everything(namespace)
		Expect(diff(ctx, policy.DeepCopy())).To(ContainSubstring("+kind: KickPolicy"))
		Expect(apierrors.IsNotFound(k8s.Get(ctx, client.ObjectKeyFromObject(policy), policy))).To(BeTrue())
		_, err := diff(ctx, withoutSense(namespace))
		Expect(err).To(MatchError(ContainSubstring("spec.schedule.windows[0].cron")))

		create(ctx, policy)
		changed := everything(namespace)
		changed.Spec.Suspend = true
		Expect(diff(ctx, changed.DeepCopy())).To(ContainSubstring("+  suspend: true"))
		changed.Spec.Schedule = windows(allowing("0 0 * * 7", "1h", ""))
		_, err = diff(ctx, changed)
		Expect(err).To(MatchError(ContainSubstring("spec.schedule.windows[0].cron")))
		refresh(ctx, policy)
		Expect(policy.Generation).To(BeEquivalentTo(1))
	}, NodeTimeout(patience))

	It("shows what a request would be, and refuses one in the name of another", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		w := deployment(namespace, "web")
		create(ctx, w)
		Expect(diff(ctx, asking(w, "admin"))).To(ContainSubstring("+kind: KickRequest"))
		_, err := diff(ctx, asking(w, "alice"))
		Expect(err).To(MatchError(ContainSubstring("spec.manual.requestedBy")))
		_, err = requestOf(ctx, w)
		Expect(apierrors.IsNotFound(err)).To(BeTrue())
	}, NodeTimeout(patience))
})
