package integration

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/test/testbed"
)

// tick is an annotation that a scaler counts up with each of its writes.
const tick = "scaler/tick"

// replicasAt is how many replicas the scaler asks for at a tick: between 2 and 9.
func replicasAt(tick int) int32 { return int32(2 + tick%8) } //nolint:gosec // below 10

// pace is the time between two writes of a scaler: long enough for the Pods to start on a slow machine, since a restart waits for
// a moment in which they all have.
const pace = 15 * glance

// scaler scales a Deployment without a pause.
type scaler struct {
	w    *appsv1.Deployment
	last int // the tick written last
	done chan struct{}
	stop context.CancelFunc
}

func startScaler(w *appsv1.Deployment, last int) *scaler {
	ctx, stop := context.WithCancel(context.Background())
	s := &scaler{w: w.DeepCopy(), last: last, done: make(chan struct{}), stop: stop}
	go s.run(ctx)
	DeferCleanup(s.end)
	return s
}

func (s *scaler) run(ctx context.Context) {
	defer close(s.done)
	for ctx.Err() == nil {
		body := fmt.Sprintf(`{"metadata":{"annotations":{%q:"%d"}},"spec":{"replicas":%d}}`, tick, s.last+1, replicasAt(s.last+1))
		// What was begun is ended, so that the last tick is known.
		if k8s.Patch(context.WithoutCancel(ctx), s.w.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(body))) == nil {
			s.last++
		}
		time.Sleep(pace)
	}
}

// end stops the scaler and returns its last tick.
func (s *scaler) end() int {
	s.stop()
	<-s.done
	return s.last
}

var _ = Describe("Scalers that write all the time", func() {
	It("never see one of their writes undone by a restart (C040)", func(ctx SpecContext) {
		const workloads, rounds = 5, 4
		namespace := newNamespace(ctx)
		source := secret(namespace, "db", "0")
		objects, targets := []client.Object{source}, []client.Object{}
		for i := range workloads {
			w := deployment(namespace, fmt.Sprintf("web-%d", i), envFromSecret("db"))
			objects, targets = append(objects, w), append(targets, w)
		}
		adopted(ctx, namespace, objects...)
		mark := bed.Audit().Mark()
		fields, last := watchFields(ctx, namespace), make([]int, workloads)
		for round := range rounds {
			before := map[string]string{}
			var scalers []*scaler
			for i, w := range targets {
				before[w.GetName()] = stampOf(ctx, w)
				keep(ctx, w)
				scalers = append(scalers, startScaler(w.(*appsv1.Deployment), last[i]))
			}
			rewrite(ctx, source, strconv.Itoa(round+1))
			for _, w := range targets {
				stampedAgain(ctx, w, before[w.GetName()])
			}
			for i, w := range targets {
				last[i] = scalers[i].end()
				rolledOut(ctx, w)
				Expect(*w.(*appsv1.Deployment).Spec.Replicas).To(Equal(replicasAt(last[i])))
			}
			Eventually(func(g Gomega) {
				for _, w := range targets {
					found, err := requestOf(ctx, w)
					g.Expect(err).NotTo(HaveOccurred())
					g.Expect(found.Status.Phase).To(Equal(v1alpha1.PhaseSucceeded))
					g.Expect(found.Status.CurrentRollout.Stamp).To(Equal(stampOf(ctx, w)))
				}
			}).WithContext(ctx).Should(Succeed())
		}
		restarted(ctx, rounds, targets...)
		Expect(fields()).To(BeEmpty())
		verbs, err := bed.Audit().Table(testbed.AuditFilter{User: kickUser, From: mark, Namespace: namespace, Resource: "deployments"})
		Expect(err).NotTo(HaveOccurred())
		for _, row := range verbs {
			Expect(row.Verb).To(BeElementOf("get", "list", "watch", "patch"))
		}
	}, NodeTimeout(patience*4))
})

// keep makes the present Pods of a workload the last to go when it is scaled down, so that it stays stale.
func keep(ctx context.Context, w client.Object) {
	GinkgoHelper()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"100"}}}`, corev1.PodDeletionCost))
	for _, pod := range podsOf(ctx, w) {
		Expect(client.IgnoreNotFound(k8s.Patch(ctx, &pod, patch))).To(Succeed())
	}
}

// watchFields watches the Deployments of a namespace. What it returns ends the watch and lists where a field that belongs
// to a scaler was not what the scaler had last written.
func watchFields(ctx context.Context, namespace string) func() []string {
	GinkgoHelper()
	watching, err := kubernetes.NewForConfig(bed.RESTConfig())
	Expect(err).NotTo(HaveOccurred())
	events, err := watching.AppsV1().Deployments(namespace).Watch(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	var (
		wrong []string
		group sync.WaitGroup
		last  = map[string]int{}
	)
	group.Go(func() {
		for event := range events.ResultChan() {
			d, ok := event.Object.(*appsv1.Deployment)
			if !ok || event.Type == watch.Deleted || !metav1.HasAnnotation(d.ObjectMeta, tick) {
				continue
			}
			now, _ := strconv.Atoi(d.Annotations[tick])
			if now < last[d.Name] || *d.Spec.Replicas != replicasAt(now) {
				wrong = append(wrong, fmt.Sprintf("%s at tick %d, after %d, has %d replicas", d.Name, now, last[d.Name], *d.Spec.Replicas))
			}
			last[d.Name] = now
		}
	})
	return func() []string {
		events.Stop()
		group.Wait()
		return wrong
	}
}
