package gate

import (
	"time"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/gitops"
	"github.com/kick-dev/kick/internal/core/policy"
)

// ownerRecheck is how often a restart that waits for an owner is decided anew although no event of the owner came. It only
// matters where one was lost.
const ownerRecheck = 10 * time.Minute

// unreadableRecheck is the same where the owner cannot be read, of which no event tells the end: a right may be missing.
const unreadableRecheck = time.Minute

// owner holds until every policy that asks a GitOps tool knows the one object that deploys the workload, and until that
// object is reconciled at all.
func owner(input Input) *Block {
	return input.ask(func(p policy.Policy, facts *gitops.Facts) *gitops.Hold {
		known, hold := facts.Owner(p.Provider)
		if hold != nil || !p.RequireReconciled {
			return hold
		}
		return known.Active()
	})
}

// syncWindows holds while the sync windows of the owner are closed.
func syncWindows(input Input) *Block {
	return input.ask(func(p policy.Policy, facts *gitops.Facts) *gitops.Hold {
		known, hold := facts.Owner(p.Provider)
		if hold != nil {
			return nil // The link before says so.
		}
		return known.Windows(input.Now, input.Manual)
	})
}

// inSync holds while the owner works, or differs from its source.
func inSync(input Input) *Block {
	return input.ask(func(p policy.Policy, facts *gitops.Facts) *gitops.Hold {
		known, hold := facts.Owner(p.Provider)
		if hold != nil || !p.RequireReconciled {
			return nil
		}
		return known.Synced()
	})
}

// ask puts a question to the tool of each policy, and returns the first hold.
func (i Input) ask(question func(policy.Policy, *gitops.Facts) *gitops.Hold) *Block {
	if i.Override {
		return nil
	}
	for _, p := range i.Scope.Policies {
		if p.Provider == v1alpha1.ProviderNone {
			continue
		}
		owners := i.Owners // The pointer is to take that to the heap, and not the whole input of every check.
		if hold := question(p, &owners); hold != nil {
			return i.blockOf(hold)
		}
	}
	return nil
}

func (i Input) blockOf(hold *gitops.Hold) *Block {
	block := &Block{
		Phase: ownerPhase(hold.Reason), Reason: hold.Reason, Message: hold.Message, RecheckAt: hold.RecheckAt,
		passing: hold.Reason == v1alpha1.ReasonSyncInProgress,
	}
	if !hold.OpensAt.IsZero() {
		block.OpensAt = hold.OpensAt.Format(time.RFC3339)
	}
	switch {
	case !block.RecheckAt.IsZero():
	case hold.Reason == v1alpha1.ReasonProviderUnavailable:
		block.RecheckAt = i.Now.Add(unreadableRecheck)
	default:
		block.RecheckAt = i.Now.Add(ownerRecheck)
	}
	return block
}

// ownerPhase is the phase in which a reason to wait for an owner is shown.
func ownerPhase(reason string) v1alpha1.Phase {
	switch reason {
	case v1alpha1.ReasonOutsideSchedule, v1alpha1.ReasonConfigurationError:
		return v1alpha1.PhaseWaitingForGate
	case v1alpha1.ReasonOwnerDeleting, v1alpha1.ReasonOwnerSuspended, v1alpha1.ReasonSyncInProgress, v1alpha1.ReasonOutOfSync:
		return v1alpha1.PhaseWaitingForApplicationSync
	default:
		return v1alpha1.PhaseWaitingForOwner
	}
}

// OwnerOf is the owner that a request shows, nil where no policy asks for one or it cannot be told.
func OwnerOf(scope policy.Scope, facts *gitops.Facts) *v1alpha1.Owner {
	for _, p := range scope.Policies {
		if p.Provider == v1alpha1.ProviderNone {
			continue
		}
		if known, hold := facts.Owner(p.Provider); hold == nil {
			return known.Status()
		}
	}
	return nil
}
