package integration

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/test/testbed"
)

// fullEnv makes the stories about minutes take as long as they are told, instead of a sample.
const fullEnv = "KICK_TEST_FULL"

// lasting is how long a story is watched or how often it is repeated: a sample, or all of it when fullEnv is set.
func lasting[T any](sample, full T) T {
	if os.Getenv(fullEnv) != "" {
		return full
	}
	return sample
}

// kickUser is KICK to the API server.
const kickUser = "system:serviceaccount:" + kickNamespace + ":kick"

// kickWrote lists the writes of KICK about a namespace since the mark: to its objects, and to its ledger.
func kickWrote(namespace string, since testbed.AuditMark) []string {
	GinkgoHelper()
	events, err := bed.Audit().Events(testbed.AuditFilter{
		User: kickUser, From: since,
		Match: func(e testbed.AuditEvent) bool {
			ours := e.Namespace == namespace || e.Resource == "kickledgers" && strings.HasPrefix(e.Name, namespace)
			return ours && e.Verb != "get" && e.Verb != "list" && e.Verb != "watch"
		},
	})
	Expect(err).NotTo(HaveOccurred())
	var writes []string
	for _, e := range events {
		writes = append(writes, strings.Join([]string{e.Verb, e.Resource, e.Subresource, e.Name, strconv.Itoa(e.Code)}, " "))
	}
	return writes
}

var reconcileTotal = regexp.MustCompile(`(?m)^controller_runtime_reconcile_total\{controller="kickrequest",[^}]*\} (\d+)`)

// passes is how often KICK has decided about workloads, of all replicas together.
func passes(ctx context.Context) int {
	GinkgoHelper()
	running, err := bed.Pods(kickNamespace, kickSelector)
	Expect(err).NotTo(HaveOccurred())
	total := 0
	for _, process := range running {
		for _, match := range reconcileTotal.FindAllStringSubmatch(scrape(ctx, process), -1) {
			count, err := strconv.Atoi(match[1])
			Expect(err).NotTo(HaveOccurred())
			total += count
		}
	}
	return total
}

// touch changes an annotation and a label of an object: metadata, and nothing else.
func touch(ctx context.Context, value int, objects ...client.Object) {
	GinkgoHelper()
	patch := client.RawPatch(types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"annotations":{"touched":"%[1]d"},"labels":{"touched":"%[1]d"}}}`, value))
	for _, object := range objects {
		Expect(k8s.Patch(ctx, object, patch)).To(Succeed())
	}
}

var _ = Describe("KICK with nothing to do", func() {
	It("writes nothing in a hundred passes over settled workloads, nor for metadata of their sources and policies", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		db, cfg := secret(namespace, "db", "1"), configMap(namespace, "cfg", "1")
		fresh := []client.Object{
			deployment(namespace, "fresh-d", envFromConfigMap("cfg")), statefulSet(namespace, "fresh-s", envFromConfigMap("cfg")),
		}
		kicked := []client.Object{deployment(namespace, "kicked-d", envFromSecret("db")), daemonSet(namespace, "kicked-l", envFromSecret("db"))}
		bystander := deployment(namespace, "bystander") // consumes nothing, so it never has a request
		create(ctx, db, cfg, bystander)
		create(ctx, append(fresh, kicked...)...)
		rolledOut(ctx, append(fresh, kicked...)...)
		rolledOut(ctx, bystander)
		create(ctx, everything(namespace))
		reached(ctx, v1alpha1.PhaseNoLongerRequired, append(fresh, kicked...)...)
		nextSecond()
		rewrite(ctx, db, "2")
		reached(ctx, v1alpha1.PhaseSucceeded, kicked...)
		settled(ctx, everything(namespace), 5, 2)

		mark, before := bed.Audit().Mark(), passes(ctx)
		round := 0
		Eventually(func() int {
			round++
			touch(ctx, round, fresh...)
			touch(ctx, round, kicked...)
			touch(ctx, round, bystander, db, cfg, everything(namespace))
			return passes(ctx) - before
		}).WithContext(ctx).Should(BeNumerically(">=", 100))
		Expect(kickWrote(namespace, mark)).To(BeEmpty())
	}, NodeTimeout(patience*2))
})

// settled waits for the two writes that KICK makes later than the others: that of the ledger after its changes were
// delivered, and that of the counts in the status of a policy.
func settled(ctx context.Context, policy *v1alpha1.KickPolicy, workloads, sources int32) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(ledgerVersionOrEmpty(ctx, policy.Namespace)).NotTo(BeEmpty())
		refresh(ctx, policy)
		g.Expect(policy.Status.MatchedWorkloads).To(HaveValue(Equal(workloads)))
		g.Expect(policy.Status.ObservedSources).To(HaveValue(Equal(sources)))
	}).WithContext(ctx).Should(Succeed())
}
