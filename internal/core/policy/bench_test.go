package policy_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kick-dev/kick/internal/core/policy"
)

// Ten policies of a namespace, one of which selects the workload.
func BenchmarkScopeOf(b *testing.B) {
	var policies []policy.Policy
	for i := range 10 {
		parsed, _ := policy.Parse(policyOf(fmt.Sprintf("p-%d", i), selecting(map[string]string{"app": fmt.Sprintf("app-%d", i)})))
		policies = append(policies, parsed)
	}
	workload := labels.Set{"app": "app-7", "team": "shop", "tier": "front"}
	for b.Loop() {
		policy.ScopeOf(policies, workload)
	}
}

func BenchmarkParse(b *testing.B) {
	object := policyOf("p", metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}})
	for b.Loop() {
		policy.Parse(object)
	}
}
