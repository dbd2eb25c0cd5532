package integration

import (
	"maps"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
)

// writes are changes of content, by what the API server makes of their date.
var writes = map[string]func(SpecContext, *corev1.Secret){
	"dated": func(ctx SpecContext, s *corev1.Secret) {
		rewrite(ctx, s, "2")
	},
	"twice-in-a-second": func(ctx SpecContext, s *corev1.Secret) { // the server dates both alike
		nextSecond()
		rewrite(ctx, s, "2")
		rewrite(ctx, s, "3")
	},
	"key-removed": func(ctx SpecContext, s *corev1.Secret) { // not dated at all
		change(ctx, s, func(s *corev1.Secret) { delete(s.Data, "spare") })
	},
	"stripped": func(ctx SpecContext, s *corev1.Secret) { // an empty list resets all dates
		change(ctx, s, func(s *corev1.Secret) {
			s.Data["key"] = []byte("2")
			s.ManagedFields = []metav1.ManagedFieldsEntry{{}}
		})
	},
}

// dated is a Deployment with a source of its own.
type dated struct {
	write  string
	source *corev1.Secret
	w      *appsv1.Deployment
}

// datedRows makes a source and its consumer for each kind of write.
func datedRows(namespace, suffix string) (rows []dated, objects []client.Object) {
	for _, write := range slices.Sorted(maps.Keys(writes)) {
		name := write + "-" + suffix
		source := secret(namespace, name, "1")
		source.Data["spare"] = []byte("1")
		row := dated{write: write, source: source, w: deployment(namespace, name, envFromSecret(name))}
		rows, objects = append(rows, row), append(objects, source, row.w)
	}
	return rows, objects
}

// roll makes a native rollout.
func roll(ctx SpecContext, rows []dated) {
	GinkgoHelper()
	for _, row := range rows {
		change(ctx, row.w, func(d *appsv1.Deployment) { d.Spec.Template.Labels["rolled"] = "natively" })
	}
	for _, row := range rows {
		rolledOut(ctx, row.w)
	}
}

// datedStory lets every kind of write happen just after a native rollout, and just before one.
func datedStory(ctx SpecContext, before, after []dated) {
	GinkgoHelper()
	roll(ctx, before)
	for _, row := range slices.Concat(before, after) {
		writes[row.write](ctx, row.source)
	}
	nextSecond()
	roll(ctx, after)
}

// ends checks how many restarts followed the native rollout of each row.
func ends(ctx SpecContext, rows []dated, restarts map[string]int) {
	GinkgoHelper()
	for _, row := range rows {
		phase := v1alpha1.PhaseNoLongerRequired
		if restarts[row.write] > 0 {
			phase = v1alpha1.PhaseSucceeded
		}
		reached(ctx, phase, row.w)
		Expect(revisions(ctx, row.w)).To(Equal(2+restarts[row.write]), "revisions of %s", row.w.Name)
	}
}

// always is one restart for every kind of write.
var always = map[string]int{"dated": 1, "twice-in-a-second": 1, "key-removed": 1, "stripped": 1}

var _ = Describe("A change, however the API server dates it", func() {
	It("is restarted for when it came just after a rollout, and not when one came just after it (M2)", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		before, objects := datedRows(namespace, "after-rollout")
		after, more := datedRows(namespace, "before-rollout")
		create(ctx, append(objects, more...)...)
		for _, row := range slices.Concat(before, after) {
			rolledOut(ctx, row.w)
		}
		create(ctx, everything(namespace))
		for _, row := range slices.Concat(before, after) {
			reached(ctx, v1alpha1.PhaseNoLongerRequired, row.w)
		}
		// KICK holds still until the native rollouts have begun.
		policy := everything(namespace)
		change(ctx, policy, func(p *v1alpha1.KickPolicy) { p.Spec.Restart.QuietPeriod = &metav1.Duration{Duration: quiet} })
		Eventually(func() bool {
			refresh(ctx, policy)
			return policy.Status.ObservedGeneration == policy.Generation
		}).WithContext(ctx).Should(BeTrue())
		datedStory(ctx, before, after)
		ends(ctx, before, always)
		ends(ctx, after, nil)
	}, NodeTimeout(patience*3))

	It("is not lost if it happened while KICK was down, before a rollout or after (M2)", Serial, func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		before, objects := datedRows(namespace, "after-rollout")
		after, more := datedRows(namespace, "before-rollout")
		adopted(ctx, namespace, append(objects, more...)...)
		scaleKick(ctx, 0)
		nextSecond()
		datedStory(ctx, before, after)
		scaleKick(ctx, 2)
		ends(ctx, before, always)
		// What the server did not date may have happened at any time up to its observation: one restart more is the safe
		// side of that.
		ends(ctx, after, map[string]int{"key-removed": 1, "stripped": 1})
		barrier(ctx, namespace)
		ends(ctx, before, always)
		ends(ctx, after, map[string]int{"key-removed": 1, "stripped": 1})
	}, NodeTimeout(patience*4))
})

// quiet is long enough to begin some rollouts on a slow machine.
const quiet = 15 * time.Second
