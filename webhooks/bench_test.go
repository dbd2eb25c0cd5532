package webhooks

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kick-dev/kick/api/v1alpha1"
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
