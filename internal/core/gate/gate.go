// Package gate decides whether a restart may run now: G(w, t), §7 of the model. It is an ordered chain of pure checks
// over gathered facts; all have to allow, and the first that blocks is the reason that is shown.
package gate

import (
	"fmt"
	"strings"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/policy"
)

// Input is what the checks look at.
type Input struct {
	Scope policy.Scope
}

// Block says why a restart may not run now.
type Block struct {
	Phase   v1alpha1.Phase
	Reason  string
	Message string
}

// check is one link of the chain: it returns nil to allow.
type check func(Input) *Block

var chain = []check{
	suspended,
}

// Evaluate asks the chain. It returns nil when the restart may run.
func Evaluate(input Input) *Block {
	for _, link := range chain {
		if block := link(input); block != nil {
			return block
		}
	}
	return nil
}

// suspended holds a workload that only suspended policies manage.
func suspended(input Input) *Block {
	if !input.Scope.Suspended() {
		return nil
	}
	return &Block{
		Phase:  v1alpha1.PhaseWaitingForGate,
		Reason: v1alpha1.ReasonPolicySuspended,
		Message: fmt.Sprintf("every policy that selects the workload is suspended: %s",
			strings.Join(input.Scope.Names(), ", ")),
	}
}
