package webhooks

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/policy"
)

func BenchmarkJudge(b *testing.B) {
	facts := foreign(func(*write) {})
	for b.Loop() {
		judge(facts)
	}
}

// All of a call but the transport and the cache: decoding both objects, the verdict, the answer.
func BenchmarkTheGuard(b *testing.B) {
	cached := interceptor.Funcs{List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
		if policies, ok := list.(*v1alpha1.KickPolicyList); ok {
			policies.Items = []v1alpha1.KickPolicy{*managing()}
		}
		return nil
	}}
	g, request := newGuard(b, cached), restart(b)
	for b.Loop() {
		g.Handle(b.Context(), request)
	}
}

// The faults and the advice about a policy with a week of windows, beside ten workloads.
func BenchmarkJudgeAPolicy(b *testing.B) {
	judged := scheduled(
		open("0 2 * * 1-5", "2h", "Europe/Berlin"), open("0 0 * * 0", "24h", "Europe/Berlin"),
		window(v1alpha1.WindowDeny, "0 0 24 12 *", "72h", "Europe/Berlin"),
	)
	around := surroundings{now: noon}
	for range 10 {
		around.workloads = append(around.workloads, app("web"))
	}
	for b.Loop() {
		if faults := ValidateKickPolicy(judged); len(faults) > 0 {
			b.Fatal(faults)
		}
		parsed, _ := policy.Parse(judged)
		advise(judged, parsed, around)
	}
}
