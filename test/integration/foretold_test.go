package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/workload"
	"github.com/kick-dev/kick/internal/kubectl/explain"
)

const (
	// situationsEnv and seedEnv set how many situations are drawn, and from which seed.
	situationsEnv = "KICK_TEST_SITUATIONS"
	seedEnv       = "KICK_TEST_SEED"
	// neighbours is how many situations share a namespace.
	neighbours = 10
)

// fromEnv is a number from the environment, or the one given.
func fromEnv(name string, otherwise int64) int64 {
	GinkgoHelper()
	text, set := os.LookupEnv(name)
	if !set {
		return otherwise
	}
	number, err := strconv.ParseInt(text, 10, 64)
	Expect(err).NotTo(HaveOccurred(), name)
	return number
}

// foretelling is the play of all situations together.
type foretelling struct {
	namespaces []string
	all        []*situation
}

func newForetelling(ctx context.Context, count int, seed int64) *foretelling {
	GinkgoHelper()
	f := &foretelling{}
	numbers := rand.New(rand.NewPCG(uint64(seed), 0)) //nolint:gosec // repeatable on purpose
	for i := range count {
		if i%neighbours == 0 {
			f.namespaces = append(f.namespaces, newNamespace(ctx))
		}
		f.all = append(f.all, drawSituation(numbers, f.namespaces[len(f.namespaces)-1], fmt.Sprintf("s%d", i)))
	}
	return f
}

// prepare makes everything, and lets KICK act where it may.
func (f *foretelling) prepare(ctx context.Context) {
	GinkgoHelper()
	for _, s := range f.all {
		create(ctx, s.sources...)
		if s.neighbour != nil {
			create(ctx, secret(s.namespace, s.neighbour.GetName(), "1"))
		}
	}
	nextSecond()
	for _, s := range f.all {
		create(ctx, s.workload, s.plan.DeepCopy())
		if s.neighbour != nil {
			create(ctx, s.neighbour)
		}
	}
	for _, s := range f.all {
		started(ctx, s.unready, s.workload)
		if s.neighbour != nil {
			started(ctx, true, s.neighbour)
		}
	}
	for _, s := range f.all {
		if s.acting {
			endsIn(ctx, s.workload, s, v1alpha1.ReasonAlreadyFresh)
		} else {
			endsIn(ctx, s.workload, s, v1alpha1.ReasonPolicySuspended)
		}
	}
	nextSecond()
	for _, s := range f.all {
		if s.restarts {
			rewrite(ctx, s.sources[0], "2")
		}
		if s.neighbour != nil {
			rewrite(ctx, secret(s.namespace, s.neighbour.GetName(), ""), "2")
		}
	}
	for _, s := range f.all {
		switch {
		case !s.restarts:
		case s.unready:
			endsIn(ctx, s.workload, s, v1alpha1.ReasonRollingOut)
		case s.onDelete:
			endsIn(ctx, s.workload, s, v1alpha1.ReasonAwaitingManualReplacement)
		default:
			endsIn(ctx, s.workload, s, v1alpha1.ReasonSucceeded)
		}
		if s.neighbour != nil {
			endsIn(ctx, s.neighbour, s, v1alpha1.ReasonRollingOut)
		}
	}
}

// started waits until a new workload runs.
func started(ctx context.Context, unready bool, w client.Object) {
	GinkgoHelper()
	if unready {
		rolledOutByHand(ctx, w)
	} else {
		rolledOut(ctx, w)
	}
}

// endsIn waits until the request of a workload gives the reason.
func endsIn(ctx context.Context, w client.Object, s *situation, reason string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		_, found := stateOf(ctx, w)
		g.Expect(found).To(Equal(reason), "%s", s)
	}).WithContext(ctx).Should(Succeed())
}

// stateOf is the phase and the reason of the request of a workload, both empty where there is none.
func stateOf(ctx context.Context, w client.Object) (v1alpha1.Phase, string) {
	found, err := requestOf(ctx, w)
	if err != nil {
		return "", ""
	}
	ready := meta.FindStatusCondition(found.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		return found.Status.Phase, ""
	}
	return found.Status.Phase, ready.Reason
}

// watch suspends the policies and lets happen what KICK may only watch.
func (f *foretelling) watch(ctx context.Context) {
	GinkgoHelper()
	for _, s := range f.all {
		change(ctx, s.plan.DeepCopy(), func(p *v1alpha1.KickPolicy) { p.Spec.Suspend = true })
	}
	for _, s := range f.all {
		Eventually(func(g Gomega) {
			plan := s.plan.DeepCopy()
			refresh(ctx, plan)
			ready := meta.FindStatusCondition(plan.Status.Conditions, v1alpha1.ConditionReady)
			g.Expect(ready).NotTo(BeNil())
			g.Expect(ready.Reason).To(Equal(v1alpha1.ReasonSuspended), "%s", s)
		}).WithContext(ctx).Should(Succeed())
	}
	nextSecond()
	f.steps(ctx, func(s *situation) []step { return s.watched })
	barrier(ctx, f.namespaces...)
}

func (f *foretelling) steps(ctx context.Context, of func(*situation) []step) {
	GinkgoHelper()
	for _, s := range f.all {
		for _, step := range of(s) {
			step.do(ctx)
		}
	}
}

// leave lets happen what happens while KICK is away, lifts the suspensions and amends the policies.
func (f *foretelling) leave(ctx context.Context) {
	GinkgoHelper()
	scaleKick(ctx, 0)
	withoutWebhooks(ctx, func() {
		f.steps(ctx, func(s *situation) []step { return s.away })
		for _, s := range f.all {
			plan := s.plan.DeepCopy()
			present(ctx, plan, func() {
				plan.Spec.Suspend = false
				s.edit(&plan.Spec)
			})
		}
	})
	f.rest(ctx)
}

// rest waits until nothing moves any more: a few seconds that every short deadline ends in, too.
func (f *foretelling) rest(ctx context.Context) {
	GinkgoHelper()
	last := ""
	Eventually(func(g Gomega) {
		for _, s := range f.all {
			refresh(ctx, s.workload)
			wrapped, _ := workload.Of(s.workload)
			g.Expect(wrapped.Rollout().Message).NotTo(ContainSubstring("has not seen the present spec"), "%s", s)
		}
		var versions []string
		for _, namespace := range f.namespaces {
			var pods corev1.PodList
			g.Expect(k8s.List(ctx, &pods, client.InNamespace(namespace))).To(Succeed())
			for i := range pods.Items {
				versions = append(versions, pods.Items[i].Name+pods.Items[i].ResourceVersion)
			}
		}
		for _, s := range f.all {
			versions = append(versions, s.workload.GetResourceVersion())
		}
		now := strings.Join(versions, " ")
		before := last
		last = now
		g.Expect(now).To(Equal(before), "Pods and workloads still move")
	}).WithContext(ctx).WithPolling(4 * time.Second).Should(Succeed())
}

// foretell asks explain about every workload.
func (f *foretelling) foretell(ctx context.Context) {
	GinkgoHelper()
	f.ask(ctx, f.all, func(s *situation, told explain.Report) { s.foretold = told })
	for _, s := range f.all {
		s.revisions, s.stamp = revisions(ctx, s.workload), stampOf(ctx, s.workload)
	}
}

// ask runs explain for several workloads, two at a time.
func (f *foretelling) ask(ctx context.Context, about []*situation, tell func(*situation, explain.Report)) {
	GinkgoHelper()
	var asking sync.WaitGroup
	var mu sync.Mutex
	var failures []string
	queue := make(chan *situation)
	for range 2 {
		asking.Go(func() {
			defer GinkgoRecover()
			for s := range queue {
				out, complaints, err := kick(ctx, "explain", kubectlName(s.workload), "-n", s.namespace, "-o", "json")
				var told explain.Report
				if err == nil {
					err = json.Unmarshal([]byte(out), &told)
				}
				mu.Lock()
				if err != nil {
					failures = append(failures, fmt.Sprintf("%s: %v: %s", s, err, complaints))
				} else {
					tell(s, told)
				}
				mu.Unlock()
			}
		})
	}
	for _, s := range about {
		queue <- s
	}
	close(queue)
	asking.Wait()
	Expect(failures).To(BeEmpty())
}

// passing tells whether what was foretold goes away by itself within moments, so that what comes after it is to be compared.
func passing(decision explain.Decision) bool {
	return decision.Action == explain.ActionWait &&
		(decision.Phase == "" || decision.Phase == string(v1alpha1.PhasePending) || decision.Reason == v1alpha1.ReasonStamping)
}

// cameTrue tells in what KICK does otherwise than explain said, empty if in nothing.
func (s *situation) cameTrue(ctx context.Context) string {
	phase, reason := stateOf(ctx, s.workload)
	made := revisions(ctx, s.workload) - s.revisions
	state := fmt.Sprintf("the request is %s, %s with %d more revisions", phase, reason, made)
	decision := s.foretold.Decision
	switch decision.Action {
	case explain.ActionRestart:
		if made != 1 || stampOf(ctx, s.workload) == s.stamp || !s.restartEnds(phase, reason) {
			return state
		}
	case explain.ActionUnknown:
		return "an administrator was told that it cannot be told"
	case explain.ActionNothing, explain.ActionWait, explain.ActionFollow:
		switch {
		case made != 0 || stampOf(ctx, s.workload) != s.stamp:
			return state
		case decision.Phase == "" && phase != "" && s.foretold.Request == nil:
			return "there is a request: " + state
		case decision.Phase != "" && (string(phase) != decision.Phase || reason != decision.Reason):
			return state
		}
	}
	return ""
}

// restartEnds tells whether a restart of the workload gets as far as it can.
func (s *situation) restartEnds(phase v1alpha1.Phase, reason string) bool {
	switch {
	case s.onDelete:
		return reason == v1alpha1.ReasonAwaitingManualReplacement
	case s.unready, s.rolling:
		return reason == v1alpha1.ReasonRollingOut || phase == v1alpha1.PhaseFailed
	default:
		return phase == v1alpha1.PhaseSucceeded || s.hurried && reason == v1alpha1.ReasonRolloutDeadlineExceeded
	}
}

// compare waits until everything that was foretold has come true, and returns what has not.
func (f *foretelling) compare(ctx context.Context) []string {
	GinkgoHelper()
	wrong := map[*situation]string{}
	look := func() int {
		clear(wrong)
		for _, s := range f.all {
			if passing(s.foretold.Decision) {
				continue
			}
			if state := s.cameTrue(ctx); state != "" {
				wrong[s] = state
			}
		}
		return len(wrong)
	}
	begun := time.Now()
	for look() > 0 && time.Since(begun) < patience {
		time.Sleep(time.Second)
	}
	barrier(ctx, f.namespaces...)
	look() // What has come true stays so.
	var texts []string
	for s, state := range wrong {
		d := s.foretold.Decision
		texts = append(texts, fmt.Sprintf("%s\n  foretold: %s (%s, %s): %s\n  but %s", s, d.Action, d.Phase, d.Reason, d.Message, state))
	}
	slices.Sort(texts)
	return texts
}

// compareAgain asks explain again, once KICK has done everything: it has to say what the requests say.
func (f *foretelling) compareAgain(ctx context.Context) []string {
	GinkgoHelper()
	var texts []string
	left := f.all
	begun := time.Now()
	for {
		var again []*situation
		texts = nil
		f.ask(ctx, left, func(s *situation, told explain.Report) {
			phase, reason := stateOf(ctx, s.workload)
			d := told.Decision
			if d.Phase == string(phase) && (phase == "" || d.Reason == reason) && !passing(d) && d.Action != explain.ActionRestart ||
				phase == "" && d.Action == explain.ActionNothing {
				return
			}
			again = append(again, s)
			texts = append(texts, fmt.Sprintf("%s\n  is explained as %s (%s, %s): %s\n  and is %s, %s", s, d.Action, d.Phase, d.Reason, d.Message, phase, reason))
		})
		if left = again; len(left) == 0 || time.Since(begun) > patience {
			return texts
		}
		time.Sleep(time.Second)
	}
}

// table counts what was foretold.
func (f *foretelling) table() (string, map[string]int) {
	counts := map[string]int{}
	for _, s := range f.all {
		d := s.foretold.Decision
		counts[strings.Join([]string{string(d.Action), d.Phase, d.Reason}, " ")]++
	}
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		lines = append(lines, fmt.Sprintf("%4d %s", counts[key], key))
	}
	return strings.Join(lines, "\n"), counts
}

var _ = Describe("kubectl kick explain in random situations", func() {
	It("says what KICK then does", Serial, func(ctx SpecContext) {
		count := int(fromEnv(situationsEnv, lasting[int64](40, 200)))
		seed := fromEnv(seedEnv, lasting(1, GinkgoRandomSeed())) // The sample is the same each time.
		AddReportEntry("seed", fmt.Sprintf("%s=%d %s=%d", seedEnv, seed, situationsEnv, count))
		GinkgoWriter.Printf("%s=%d %s=%d\n", seedEnv, seed, situationsEnv, count)
		installGitOps(ctx, append(argoKinds, fluxKinds...)...)
		DeferCleanup(func(ctx SpecContext) { scaleKick(ctx, 2) }, NodeTimeout(patience))

		f := newForetelling(ctx, count, seed)
		By("letting KICK act")
		f.prepare(ctx)
		By("letting it watch")
		f.watch(ctx)
		By("sending it away")
		f.leave(ctx)
		By("asking explain")
		f.foretell(ctx)
		table, kinds := f.table()
		AddReportEntry("foretold", table)
		GinkgoWriter.Println(table)
		By("letting KICK come back")
		scaleKick(ctx, 2)
		wrong := f.compare(ctx)
		By("asking explain again")
		wrong = append(wrong, f.compareAgain(ctx)...)
		Expect(wrong).To(BeEmpty(), "%d of %d, %s=%d:\n%s", len(wrong), count, seedEnv, seed, strings.Join(wrong, "\n"))
		Expect(len(kinds)).To(BeNumerically(">=", min(6, count/4)), "too much alike to prove anything:\n%s", table)
	}, NodeTimeout(patience*10))
})
