// Package gate decides whether a restart may run now: G(w, t), §7 of the model. It is an ordered chain of pure checks
// over gathered facts; all have to allow, and the first that blocks is the reason that is shown.
package gate

import (
	"fmt"
	"strings"
	"time"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/policy"
)

// Input is what the checks look at.
type Input struct {
	Scope policy.Scope
	Now   time.Time
	// Latest is the time of the latest change that the restart is about, zero if it is decided already.
	Latest time.Time
	// Since is when the restart was first asked for.
	Since time.Time
}

// Block says why a restart may not run now.
type Block struct {
	Phase   v1alpha1.Phase
	Reason  string
	Message string
	// OpensAt is when the gate opens, RFC 3339 in the time zone of the window that decides it; empty if not known.
	OpensAt string
	// RecheckAt is when to ask again if nothing happens before; zero for no need.
	RecheckAt time.Time
}

// check is one link of the chain: it returns nil to allow.
type check func(Input) *Block

var chain = []check{
	suspended,
	outsideSchedule,
	quiet,
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
