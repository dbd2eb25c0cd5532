package integration

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/test/testbed"
)

// foreigner is somebody with every right on workloads whom KICK has never heard of.
const foreigner = "system:serviceaccount:argocd:argocd-server"

// as is a client of another user who may do everything.
func as(user string) client.Client {
	GinkgoHelper()
	return clientOf(bed.As(user, "system:masters"))
}

func clientOf(config *rest.Config) client.Client {
	GinkgoHelper()
	c, err := client.New(config, client.Options{Scheme: k8s.Scheme()})
	Expect(err).NotTo(HaveOccurred())
	return c
}

// restartPatch is the patch of `kubectl rollout restart`, with a value of one's choice.
func restartPatch(value string) client.Patch {
	return client.RawPatch(types.StrategicMergePatchType, fmt.Appendf(nil,
		`{"spec": {"template": {"metadata": {"annotations": {%q: %q}}}}}`, v1alpha1.RestartedAtAnnotation, value))
}

// restarts are ways in which people and tools restart a workload. Each returns the API server's answer.
var restarts = map[string]func(ctx context.Context, w client.Object) error{
	"kubectl rollout restart": func(ctx context.Context, w client.Object) error {
		_, err := bed.Kubectl(ctx, "rollout", "restart", kubectlName(w), "-n", w.GetNamespace())
		return err
	},
	"the patch of a button": func(ctx context.Context, w client.Object) error {
		return as(foreigner).Patch(ctx, copyOf(w), restartPatch("button"))
	},
	"server-side apply": func(ctx context.Context, w client.Object) error {
		manifest := rawManifest(fmt.Sprintf("apiVersion: apps/v1\nkind: %s\nmetadata: {name: %s, namespace: %s}\n"+
			"spec: {template: {metadata: {annotations: {%s: applied}}}}\n", kindOf(w), w.GetName(), w.GetNamespace(), v1alpha1.RestartedAtAnnotation))
		_, err := bed.Kubectl(ctx, "apply", "--server-side", "--force-conflicts", "-f", manifest)
		return err
	},
	"replacing the object": func(ctx context.Context, w client.Object) error {
		replaced := copyOf(w)
		if err := k8s.Get(ctx, client.ObjectKeyFromObject(w), replaced); err != nil {
			return err
		}
		replaced.SetResourceVersion("") // whatever its controller writes meanwhile
		metav1.SetMetaDataAnnotation(&templateOf(replaced).ObjectMeta, v1alpha1.RestartedAtAnnotation, "replaced")
		return k8s.Update(ctx, replaced)
	},
	"a Helm upgrade, which changes the image, too": func(ctx context.Context, w client.Object) error {
		return k8s.Patch(ctx, copyOf(w), client.RawPatch(types.StrategicMergePatchType, fmt.Appendf(nil,
			`{"spec": {"template": {"metadata": {"annotations": {%q: "upgraded"}}, "spec": {"containers": [{"name": "app", "image": "app:2"}]}}}}`,
			v1alpha1.RestartedAtAnnotation)), client.FieldOwner("helm"))
	},
	"a JSON patch": func(ctx context.Context, w client.Object) error {
		return k8s.Patch(ctx, copyOf(w), client.RawPatch(types.JSONPatchType, fmt.Appendf(nil,
			`[{"op": "add", "path": "/spec/template/metadata/annotations", "value": {%q: "added"}}]`, v1alpha1.RestartedAtAnnotation)))
	},
	"taking the label away in the same write": func(ctx context.Context, w client.Object) error {
		return k8s.Patch(ctx, copyOf(w), client.RawPatch(types.MergePatchType, fmt.Appendf(nil,
			`{"metadata": {"labels": {"app": null}}, "spec": {"template": {"metadata": {"annotations": {%q: "hidden"}}}}}`,
			v1alpha1.RestartedAtAnnotation)))
	},
	"a value that is no time": func(ctx context.Context, w client.Object) error {
		return k8s.Patch(ctx, copyOf(w), restartPatch("no time"))
	},
	"an empty value": func(ctx context.Context, w client.Object) error { return k8s.Patch(ctx, copyOf(w), restartPatch("")) },
}

func copyOf(w client.Object) client.Object { return w.DeepCopyObject().(client.Object) }

func kubectlName(w client.Object) string {
	return strings.ToLower(string(kindOf(w))) + "/" + w.GetName()
}

// labelled is a policy, named after the value, that manages the workloads whose label app has the value.
func labelled(namespace, value string) *v1alpha1.KickPolicy {
	p := everything(namespace)
	p.Name = value
	p.Spec.Discovery.WorkloadSelector = metav1.LabelSelector{MatchLabels: map[string]string{"app": value}}
	return p
}

// guarded waits until KICK has seen a policy, by which time every replica's cache is about to show it, and returns when
// a restart of the workload is refused.
func guarded(ctx context.Context, w client.Object) {
	GinkgoHelper()
	Eventually(func() error {
		return k8s.Patch(ctx, copyOf(w), restartPatch("probe"), client.DryRunAll)
	}).WithContext(ctx).MustPassRepeatedly(4).Should(MatchError(ContainSubstring("guard.kick.dev")))
}

var kinds = []TableEntry{
	Entry("a Deployment", func(namespace, name string) client.Object { return deployment(namespace, name) }, NodeTimeout(patience*3)),
	Entry("a StatefulSet", func(namespace, name string) client.Object { return statefulSet(namespace, name) }, NodeTimeout(patience*3)),
	Entry("a DaemonSet", func(namespace, name string) client.Object { return daemonSet(namespace, name) }, NodeTimeout(patience*3)),
}

var _ = Describe("The guard", func() {
	DescribeTable("refuses every foreign restart of a managed workload and none of another (C092)",
		func(ctx SpecContext, build func(namespace, name string) client.Object) {
			namespace := newNamespace(ctx)
			managed, free := build(namespace, "managed"), build(namespace, "free")
			create(ctx, labelled(namespace, "managed"), managed, free)
			rolledOut(ctx, managed, free)
			guarded(ctx, managed)
			before := managed.GetGeneration()
			for name, restart := range restarts {
				err := restart(ctx, managed)
				Expect(err).To(HaveOccurred(), name)
				Expect(err).To(MatchError(And(ContainSubstring(`admission webhook "guard.kick.dev" denied the request`),
					ContainSubstring("KickPolicy managed"), ContainSubstring("kubectl apply"))), name)
				Expect(restart(ctx, free)).To(Succeed(), name)
			}
			Expect(k8s.Patch(ctx, copyOf(managed), restartPatch("dry"), client.DryRunAll)).To(MatchError(ContainSubstring("guard.kick.dev")))
			Expect(k8s.Patch(ctx, copyOf(free), restartPatch("dry"), client.DryRunAll)).To(Succeed())
			refresh(ctx, managed)
			refresh(ctx, free)
			Expect(managed.GetGeneration()).To(Equal(before))
			Expect(templateOf(free).Annotations).To(HaveKeyWithValue(v1alpha1.RestartedAtAnnotation, Not(Equal("dry"))))
		}, kinds)

	DescribeTable("lets a managed workload go back to where it was (C088)",
		func(ctx SpecContext, build func(namespace, name string) client.Object) {
			namespace := newNamespace(ctx)
			w, source := build(namespace, "web"), secret(namespace, "db", "1")
			envFromSecret("db")(templateOf(w))
			adopted(ctx, namespace, source, w)
			rewrite(ctx, source, "2")
			reached(ctx, v1alpha1.PhaseSucceeded, w)
			refresh(ctx, w)
			first := templateOf(w).Annotations[v1alpha1.RestartedAtAnnotation]
			nextSecond()
			rewrite(ctx, source, "3")
			Eventually(func(g Gomega) {
				refresh(ctx, w)
				g.Expect(templateOf(w).Annotations[v1alpha1.RestartedAtAnnotation]).NotTo(Equal(first))
			}).WithContext(ctx).Should(Succeed())
			reached(ctx, v1alpha1.PhaseSucceeded, w)
			change(ctx, everything(namespace), func(p *v1alpha1.KickPolicy) { p.Spec.Suspend = true }) // KICK looks on
			guarded(ctx, w)

			output, err := bed.Kubectl(ctx, "rollout", "undo", kubectlName(w), "-n", namespace)
			Expect(err).NotTo(HaveOccurred(), output)
			refresh(ctx, w)
			Expect(templateOf(w).Annotations).To(HaveKeyWithValue(v1alpha1.RestartedAtAnnotation, first))
			output, err = bed.Kubectl(ctx, "rollout", "undo", kubectlName(w), "-n", namespace, "--to-revision=1")
			Expect(err).NotTo(HaveOccurred(), output)
			refresh(ctx, w)
			Expect(templateOf(w).Annotations).NotTo(HaveKey(v1alpha1.RestartedAtAnnotation))
			Expect(k8s.Patch(ctx, copyOf(w), restartPatch(first))).To(Succeed(), "a value of its own history")
			Expect(k8s.Patch(ctx, copyOf(w), restartPatch("another"))).To(MatchError(ContainSubstring("guard.kick.dev")))
		}, kinds)

	DescribeTable("minds neither a copy of what is there nor who owns it",
		func(ctx SpecContext, build func(namespace, name string) client.Object) {
			namespace := newNamespace(ctx)
			create(ctx, everything(namespace))
			w := build(namespace, "web")
			templateOf(w).Annotations = map[string]string{v1alpha1.RestartedAtAnnotation: "2020-01-01T00:00:00Z"}
			restored := manifest(copyOf(w))
			output, err := bed.Kubectl(ctx, "apply", "-f", restored)
			Expect(err).NotTo(HaveOccurred(), "a backup is restored: %s", output)
			refresh(ctx, w)
			guarded(ctx, w)
			output, err = bed.Kubectl(ctx, "apply", "-f", restored)
			Expect(err).NotTo(HaveOccurred(), "the same manifest again: %s", output)
			output, err = bed.Kubectl(ctx, "apply", "--server-side", "--force-conflicts", "--field-manager=other", "-f", restored)
			Expect(err).NotTo(HaveOccurred(), output)
			Expect(k8s.Patch(ctx, copyOf(w), client.RawPatch(types.MergePatchType, fmt.Appendf(nil,
				`{"spec": {"template": {"metadata": {"annotations": {%q: null}}}}}`, v1alpha1.RestartedAtAnnotation)))).To(Succeed(), "the value removed")
			refresh(ctx, w)
			Expect(templateOf(w).Annotations).NotTo(HaveKey(v1alpha1.RestartedAtAnnotation))
		}, kinds)

	It("warns or is silent where the policy says so", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		w, policy := deployment(namespace, "web"), everything(namespace)
		policy.Spec.Guard = v1alpha1.GuardWarn
		create(ctx, policy, w)
		warned := &warnings{}
		config := bed.RESTConfig()
		config.WarningHandler = warned
		Eventually(func(g Gomega) {
			warned.texts = nil
			g.Expect(clientOf(config).Patch(ctx, copyOf(w), restartPatch("loud"), client.DryRunAll)).To(Succeed())
			g.Expect(warned.texts).To(ConsistOf(And(ContainSubstring("KickPolicy everything"), ContainSubstring("kubectl apply"))))
		}).WithContext(ctx).MustPassRepeatedly(4).Should(Succeed())
		change(ctx, policy, func(p *v1alpha1.KickPolicy) { p.Spec.Guard = v1alpha1.GuardOff })
		Eventually(func(g Gomega) {
			warned.texts = nil
			g.Expect(clientOf(config).Patch(ctx, copyOf(w), restartPatch("quiet"), client.DryRunAll)).To(Succeed())
			g.Expect(warned.texts).To(BeEmpty())
		}).WithContext(ctx).MustPassRepeatedly(4).Should(Succeed())
	}, NodeTimeout(patience))

	It("writes to the audit log which policy and which rule decided", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		w := deployment(namespace, "web")
		create(ctx, everything(namespace), w)
		guarded(ctx, w)
		mark := bed.Audit().Mark()
		Expect(k8s.Patch(ctx, copyOf(w), restartPatch("x"))).NotTo(Succeed())
		Eventually(func(g Gomega) {
			events, err := bed.Audit().Events(testbed.AuditFilter{Resource: "deployments", Verb: "patch", Namespace: namespace, From: mark})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(events).To(HaveLen(1))
			g.Expect(events[0].Annotations).To(And(
				HaveKeyWithValue("guard.kick.dev/policy", "everything"), HaveKeyWithValue("guard.kick.dev/rule", "ForeignRestart")))
		}).WithContext(ctx).Should(Succeed())
	}, NodeTimeout(patience))

	It("locks nobody out while KICK is down (C093)", Serial, func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		managed, free := deployment(namespace, "managed"), deployment(newNamespace(ctx), "free")
		create(ctx, labelled(namespace, "managed"), managed, free)
		rolledOut(ctx, managed, free)
		guarded(ctx, managed)
		scaleKick(ctx, 0)
		DeferCleanup(func(ctx SpecContext) { scaleKick(ctx, 2) })

		kick := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: kickNamespace, Name: "kick"}}
		refresh(ctx, kick)
		system := deployment("kube-system", "web")
		create(ctx, system)
		DeferCleanup(func(ctx SpecContext) { Expect(k8s.Delete(ctx, system)).To(Succeed()) })
		for _, w := range []*appsv1.Deployment{managed, free, system} {
			everyday(ctx, k8s, w)
		}
		create(ctx, deployment(namespace, "new"))
		for _, w := range []*appsv1.Deployment{managed, free} {
			Expect(k8s.Patch(ctx, copyOf(w), restartPatch("x"), client.DryRunAll)).To(MatchError(ContainSubstring("guard.kick.dev")), "it fails closed")
		}
		for _, w := range []*appsv1.Deployment{system, kick} {
			Expect(k8s.Patch(ctx, copyOf(w), restartPatch("x"))).To(Succeed(), "in an exempt namespace")
		}
		own := as("system:serviceaccount:" + kickNamespace + ":kick")
		Expect(own.Patch(ctx, copyOf(managed), restartPatch("stamp"))).To(Succeed(), "KICK's own stamp")
		scaleKick(ctx, 2)
		guarded(ctx, managed)
	}, NodeTimeout(patience*3))

	It("lets those pass who are exempt", Serial, func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		w := deployment(namespace, "web")
		create(ctx, everything(namespace), w)
		guarded(ctx, w)
		upgrade := func(ctx context.Context, values ...string) {
			GinkgoHelper()
			output, err := bed.Helm(ctx, append([]string{"upgrade", "kick", "../../charts/kick", "--namespace", kickNamespace, "--force-conflicts",
				"--reset-values", "--wait", "--timeout", "3m"}, values...)...)
			Expect(err).NotTo(HaveOccurred(), output)
		}
		upgrade(ctx, "--set", "webhook.guard.exemptUsers={bob,"+foreigner+"}", "--set", "webhook.guard.exemptGroups={on-call}")
		DeferCleanup(func(ctx SpecContext) { upgrade(ctx) })
		Eventually(func() error { return as(foreigner).Patch(ctx, copyOf(w), restartPatch("x"), client.DryRunAll) }).
			WithContext(ctx).MustPassRepeatedly(4).Should(Succeed())
		Expect(clientOf(bed.As("eve", "on-call", "system:masters")).Patch(ctx, copyOf(w), restartPatch("x"), client.DryRunAll)).To(Succeed())
		Expect(as("eve").Patch(ctx, copyOf(w), restartPatch("x"), client.DryRunAll)).To(MatchError(ContainSubstring("guard.kick.dev")))
	}, NodeTimeout(patience*4))
})

// everyday does what people and controllers do to a workload all day long.
func everyday(ctx context.Context, c client.Client, w *appsv1.Deployment) {
	GinkgoHelper()
	for _, patch := range []string{
		`{"spec": {"replicas": 2}}`,
		`{"metadata": {"labels": {"team": "x"}}}`,
		`{"metadata": {"annotations": {"note": "x"}}}`,
		`{"spec": {"template": {"metadata": {"annotations": {"note": "x"}}}}}`,
		`{"spec": {"template": {"spec": {"containers": [{"name": "app", "image": "app:3"}]}}}}`,
		`{"metadata": {"labels": {"team": null}, "annotations": {"note": null}}, "spec": {"replicas": 1}}`,
	} {
		Expect(c.Patch(ctx, copyOf(w), client.RawPatch(types.StrategicMergePatchType, []byte(patch)))).To(Succeed(), patch)
	}
	Expect(c.Status().Patch(ctx, copyOf(w), client.RawPatch(types.MergePatchType, []byte(`{"status": {"collisionCount": 0}}`)))).To(Succeed())
	Expect(c.Patch(ctx, copyOf(w), client.RawPatch(types.StrategicMergePatchType,
		[]byte(`{"spec": {"template": {"metadata": {"annotations": {"note": null}}}}}`)))).To(Succeed())
}

// warnings collects what the API server warns of.
type warnings struct{ texts []string }

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(_ int, _, text string) { w.texts = append(w.texts, text) }

// total adds up the samples whose name and labels match.
func total(text, pattern string) int {
	GinkgoHelper()
	sum := 0.0
	for _, match := range regexp.MustCompile(`(?m)^`+pattern+` (\S+)$`).FindAllStringSubmatch(text, -1) {
		value, err := strconv.ParseFloat(match[1], 64)
		Expect(err).NotTo(HaveOccurred())
		sum += value
	}
	return int(sum)
}
