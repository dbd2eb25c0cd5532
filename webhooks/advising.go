package webhooks

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/workload"
)

// Advice returns the warnings that the webhook would give about a policy, for those who ask before it is stored. The reader
// serves policies and workloads; namespace is KICK's own.
func Advice(ctx context.Context, reader client.Reader, clock Clock, namespace string, judged *v1alpha1.KickPolicy) []string {
	validator := &kickPolicyValidator{
		cache: reader, workloads: &workload.Client{Cache: reader}, clock: clock, namespace: namespace,
	}
	return validator.advice(ctx, judged)
}

// Refusal is the error by which the webhook refuses a policy that is created, nil for none. It takes no cluster.
func Refusal(created *v1alpha1.KickPolicy) error {
	return invalidPolicy(created, ValidateKickPolicy(created))
}
