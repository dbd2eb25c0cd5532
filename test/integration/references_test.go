package integration

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
)

var _ = Describe("A change of content", func() {
	It("restarts its consumer once, by whatever way it is consumed", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		consumers := map[client.Object]client.Object{ // workload → its only source
			deployment(namespace, "env-secret", envOfSecretKey("env-secret")):                               secret(namespace, "env-secret", "1"),
			deployment(namespace, "env-config", envOfConfigMapKey("env-config")):                            configMap(namespace, "env-config", "1"),
			deployment(namespace, "from-secret", envFromSecret("from-secret")):                              secret(namespace, "from-secret", "1"),
			deployment(namespace, "from-config", envFromConfigMap("from-config")):                           configMap(namespace, "from-config", "1"),
			deployment(namespace, "volume-secret", secretVolume("volume-secret")):                           secret(namespace, "volume-secret", "1"),
			deployment(namespace, "volume-config", configMapVolume("volume-config", "")):                    configMap(namespace, "volume-config", "1"),
			deployment(namespace, "sub-path", configMapVolume("sub-path", "key")):                           configMap(namespace, "sub-path", "1"),
			deployment(namespace, "projected", projected(projectedSecret("projected"))):                     secret(namespace, "projected", "1"),
			deployment(namespace, "optional", optionalSecret("optional")):                                   secret(namespace, "optional", "1"),
			deployment(namespace, "twice", envFromSecret("twice"), secretVolume("twice")):                   secret(namespace, "twice", "1"),
			deployment(namespace, "init", initContainer("init", "")):                                        secret(namespace, "init", "1"),
			deployment(namespace, "sidecar", initContainer("sidecar", corev1.ContainerRestartPolicyAlways)): secret(namespace, "sidecar", "1"),
			statefulSet(namespace, "stateful", envFromSecret("stateful")):                                   secret(namespace, "stateful", "1"),
			daemonSet(namespace, "daemon", envFromSecret("daemon")):                                         secret(namespace, "daemon", "1"),
		}
		var objects []client.Object
		for w, source := range consumers {
			objects = append(objects, source, w)
		}
		adopted(ctx, namespace, objects...)
		for w := range consumers {
			restarted(ctx, 0, w)
		}

		for _, source := range consumers {
			rewrite(ctx, source, "2")
		}
		for w, source := range consumers {
			reached(ctx, v1alpha1.PhaseSucceeded, w)
			restarted(ctx, 1, w)
			found, err := requestOf(ctx, w)
			Expect(err).NotTo(HaveOccurred())
			Expect(found.Status.Causes).To(HaveLen(1))
			Expect(found.Status.Causes[0].Name).To(Equal(source.GetName()))
			Expect(found.Status.CurrentRollout.Stamp).To(Equal(templateOf(w).Annotations[v1alpha1.RestartedAtAnnotation]))
		}
	}, NodeTimeout(patience*4))

	It("of binaryData counts (C004)", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		source := configMap(namespace, "cfg", "text")
		source.BinaryData = map[string][]byte{"blob": {0, 1, 2, 0xff}}
		w := deployment(namespace, "web", configMapVolume("cfg", ""))
		adopted(ctx, namespace, source, w)
		change(ctx, source, func(c *corev1.ConfigMap) { c.BinaryData["blob"] = []byte{0, 1, 3, 0xff} })
		reached(ctx, v1alpha1.PhaseSucceeded, w)
		restarted(ctx, 1, w)
	}, NodeTimeout(patience*2))

	It("in a projected volume counts, for each of its sources (C012)", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		cfg, db := configMap(namespace, "cfg", "1"), secret(namespace, "db", "1")
		w := daemonSet(namespace, "log", projected(
			projectedConfigMap("cfg"), projectedSecret("db"),
			corev1.VolumeProjection{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
				{Path: "name", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}},
			}}},
			corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
		))
		adopted(ctx, namespace, cfg, db, w)
		rewrite(ctx, cfg, "2")
		reached(ctx, v1alpha1.PhaseSucceeded, w)
		restarted(ctx, 1, w)
		rewrite(ctx, db, "2")
		Eventually(func(g Gomega) {
			found, err := requestOf(ctx, w)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found.Status.Phase).To(Equal(v1alpha1.PhaseSucceeded))
			g.Expect(causesOf(found)).To(Equal("Secret/db"))
		}).WithContext(ctx).Should(Succeed())
		restarted(ctx, 2, w)
	}, NodeTimeout(patience*2))

	It("used by an init container or a sidecar alone counts (C013)", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		a, b := secret(namespace, "a", "1"), secret(namespace, "b", "1")
		w := deployment(namespace, "web", initContainer("a", ""), initContainer("b", corev1.ContainerRestartPolicyAlways),
			func(t *corev1.PodTemplateSpec) { t.Spec.InitContainers[1].Name = "sidecar" })
		adopted(ctx, namespace, a, b, w)
		rewrite(ctx, a, "2")
		reached(ctx, v1alpha1.PhaseSucceeded, w)
		restarted(ctx, 1, w)
		rewrite(ctx, b, "2")
		Eventually(func() string {
			found, _ := requestOf(ctx, w)
			return causesOf(found) + " " + string(found.Status.Phase)
		}).WithContext(ctx).Should(Equal("Secret/b Succeeded"))
		restarted(ctx, 2, w)
	}, NodeTimeout(patience*2))

	It("of a Secret is not taken for one of the ConfigMap of that name, nor for one in another namespace (C021)", func(ctx SpecContext) {
		a, b := newNamespace(ctx), newNamespace(ctx)
		secretA, secretB := secret(a, "db", "1"), secret(b, "db", "1")
		configB := configMap(b, "db", "1")
		inA, inB := deployment(a, "web", envFromSecret("db")), deployment(b, "web", envFromSecret("db"))
		ofConfig := deployment(b, "config", envFromConfigMap("db"))
		adopted(ctx, a, secretA, inA)
		adopted(ctx, b, secretB, configB, inB, ofConfig)
		rewrite(ctx, secretB, "2")
		reached(ctx, v1alpha1.PhaseSucceeded, inB)
		barrier(ctx, a)
		barrier(ctx, b)
		restarted(ctx, 1, inB)
		restarted(ctx, 0, inA, ofConfig)
		rewrite(ctx, configB, "2")
		reached(ctx, v1alpha1.PhaseSucceeded, ofConfig)
		restarted(ctx, 1, inB, ofConfig)
	}, NodeTimeout(patience*3))

	It("restarts the right one of three workloads of one name, also if the name is as long as names get (C053)", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		sources := []*corev1.Secret{secret(namespace, "d", "1"), secret(namespace, "s", "1"), secret(namespace, "l", "1")}
		d, s, l := deployment(namespace, "web", envFromSecret("d")), statefulSet(namespace, "web", envFromSecret("s")),
			daemonSet(namespace, "web", envFromSecret("l"))
		for _, w := range []client.Object{d, s, l} { // one name, so their Pods are told apart by the kind
			templateOf(w).Labels["app"] = string(kindOf(w))
		}
		d.Spec.Selector.MatchLabels["app"], s.Spec.Selector.MatchLabels["app"], l.Spec.Selector.MatchLabels["app"] =
			string(v1alpha1.Deployment), string(v1alpha1.StatefulSet), string(v1alpha1.DaemonSet)
		// The longest names: of what the DaemonSet controller can make a revision of, and of all.
		long, longSource := daemonSet(namespace, longName(242), envFromSecret("long")), secret(namespace, "long", "1")
		longest := deployment(namespace, longName(253), envFromSecret("long"))
		adopted(ctx, namespace, sources[0], sources[1], sources[2], longSource, d, s, l, long, longest)
		rewrite(ctx, sources[1], "2")
		rewrite(ctx, longSource, "2")
		reached(ctx, v1alpha1.PhaseSucceeded, s, long, longest)
		barrier(ctx, namespace)
		restarted(ctx, 1, s, long, longest)
		restarted(ctx, 0, d, l)
	}, NodeTimeout(patience*2))
})

// longName is a name of that many characters.
func longName(length int) string {
	name := make([]byte, length)
	for i := range name {
		name[i] = 'a' + byte(i%26)
	}
	return string(name)
}

var _ = Describe("What is no change of content", func() {
	It("leaves everything alone: metadata, equal values, owner references (C001)", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		source, w := secret(namespace, "db", "same"), deployment(namespace, "web", envFromSecret("db"))
		adopted(ctx, namespace, source, w)
		var before v1alpha1.KickRequestList
		Expect(k8s.List(ctx, &before, client.InNamespace(namespace))).To(Succeed())
		version := settledLedger(ctx, namespace)

		for i := range 8 {
			touch := string(rune('a' + i))
			change(ctx, source, func(s *corev1.Secret) { s.Annotations = map[string]string{"touched": touch} })
			change(ctx, source, func(s *corev1.Secret) { s.Labels["touched"] = touch })
			change(ctx, source, func(s *corev1.Secret) { s.StringData = map[string]string{"key": "same"} })
		}
		change(ctx, source, func(s *corev1.Secret) { s.OwnerReferences = ownedBy(w) })
		Expect(ledgerVersion(ctx, namespace)).To(Equal(version), "the ledger was written for metadata")

		barrier(ctx, namespace)
		restarted(ctx, 0, w)
		for i := range before.Items {
			after := &v1alpha1.KickRequest{}
			Expect(k8s.Get(ctx, client.ObjectKeyFromObject(&before.Items[i]), after)).To(Succeed())
			Expect(after.ResourceVersion).To(Equal(before.Items[i].ResourceVersion), "request %s was written", after.Name)
		}
	}, NodeTimeout(patience*2))

	It("includes image pull secrets and service accounts (C023)", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		source, w := secret(namespace, "pull", "1"), deployment(namespace, "web", pullSecret("pull"))
		adopted(ctx, namespace, source, w)
		rewrite(ctx, source, "2")
		account := &corev1.ServiceAccount{}
		Eventually(func() error {
			return k8s.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "default"}, account)
		}).Should(Succeed())
		change(ctx, account, func(s *corev1.ServiceAccount) { s.Annotations = map[string]string{"role": "other"} })
		barrier(ctx, namespace)
		restarted(ctx, 0, w)
		_, err := requestOf(ctx, w)
		Expect(client.IgnoreNotFound(err)).To(Succeed())
		Expect(err).To(HaveOccurred(), "a request was made")
	}, NodeTimeout(patience*2))

	It("includes the deletion of a source, but not its return with other content (C002)", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		source, w := secret(namespace, "db", "1"), deployment(namespace, "web", envFromSecret("db"))
		adopted(ctx, namespace, source, w)

		Expect(k8s.Delete(ctx, source)).To(Succeed())
		barrier(ctx, namespace)
		restarted(ctx, 0, w)

		create(ctx, secret(namespace, "db", "2"))
		reached(ctx, v1alpha1.PhaseSucceeded, w)
		restarted(ctx, 1, w)

		Expect(k8s.Delete(ctx, secret(namespace, "db", ""))).To(Succeed())
		create(ctx, secret(namespace, "db", "2"))
		barrier(ctx, namespace)
		restarted(ctx, 1, w)

		_, err := bed.Kubectl(ctx, "replace", "--force", "-f", manifest(secret(namespace, "db", "3")))
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() int { return revisions(ctx, w) }).WithContext(ctx).Should(Equal(3))
		reached(ctx, v1alpha1.PhaseSucceeded, w)
		barrier(ctx, namespace)
		restarted(ctx, 2, w)
	}, NodeTimeout(patience*3))
})

// ledgerVersionOrEmpty is the version of a ledger in which nothing is pending, empty before that.
func ledgerVersionOrEmpty(ctx context.Context, namespace string) string {
	ledger := &v1alpha1.KickLedger{}
	if err := k8s.Get(ctx, client.ObjectKey{Namespace: kickNamespace, Name: namespace}, ledger); err != nil {
		return ""
	}
	for _, record := range ledger.Records {
		if record.Pending {
			return ""
		}
	}
	return ledger.ResourceVersion
}

// settledLedger returns the version of a ledger once nothing in it is pending and it is not written any more.
func settledLedger(ctx context.Context, namespace string) string {
	GinkgoHelper()
	version := ""
	Eventually(func(g Gomega) {
		before := version
		version = ledgerVersionOrEmpty(ctx, namespace)
		g.Expect(version).NotTo(BeEmpty(), "changes are pending")
		g.Expect(version).To(Equal(before), "it is still written")
	}).WithContext(ctx).WithPolling(2 * time.Second).Should(Succeed())
	return version
}
