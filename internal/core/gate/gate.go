// Package gate decides whether a restart may run now: G(w, t), §7 of the model. It is an ordered chain of pure checks
// over gathered facts; all have to allow, and the first that blocks is the reason that is shown.
package gate

import (
	"fmt"
	"strings"
	"time"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/gitops"
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
	// Manual is true where a person asked for the restart, Override where windows and GitOps are not to hold it back.
	Manual, Override bool
	// Last is the restart before this one.
	Last Restart
	// Writers says who writes the sources that the restart is about.
	Writers string

	// Stale is true once Pods are known to be stale. Some checks concern only restarts that would be made otherwise.
	Stale bool
	// Missing names the required sources and keys that do not exist.
	Missing []string
	// Full says which limit on concurrent restarts is reached, empty for none.
	Full string
	// Owners is what the GitOps tools say about the workload.
	Owners gitops.Facts
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

	// passing marks what goes away by itself within moments.
	passing bool
}

// Name of a link of the chain.
type Name string

// The links, in their order.
const (
	LinkSuspend     Name = "suspend"
	LinkDryRun      Name = "dry run"
	LinkSchedule    Name = "schedule"
	LinkMissing     Name = "missing sources"
	LinkOwner       Name = "GitOps owner"
	LinkSyncWindows Name = "sync windows"
	LinkSync        Name = "sync state"
	LinkQuiet       Name = "quiet period"
	LinkMinInterval Name = "minimum interval"
	LinkConcurrency Name = "concurrency"
)

// check is one link of the chain: it returns nil to allow.
type check func(Input) *Block

var chain = []struct {
	name Name
	check
}{
	{LinkSuspend, suspended},
	{LinkDryRun, dryRun},
	{LinkSchedule, outsideSchedule},
	{LinkMissing, missingSource},
	{LinkOwner, owner},
	{LinkSyncWindows, syncWindows},
	{LinkSync, inSync},
	{LinkQuiet, quiet},
	{LinkMinInterval, minInterval},
	{LinkConcurrency, concurrency},
}

// Link is the answer of one link of the chain.
type Link struct {
	Name Name
	// Block says why it holds the restart back, nil where it allows it.
	Block *Block
}

// Links asks the whole chain.
func Links(input Input) []Link {
	links := make([]Link, len(chain))
	for i, link := range chain {
		links[i] = Link{Name: link.name, Block: link.check(input)}
	}
	return links
}

// Evaluate asks the whole chain. It returns nil when the restart may run, and otherwise the first block, whose message
// names the others that will not pass by themselves.
func Evaluate(input Input) *Block {
	var first *Block
	var others []string
	for _, link := range Links(input) {
		switch block := link.Block; {
		case block == nil:
		case first == nil:
			first = block
		case !block.passing:
			others = append(others, block.Reason)
		}
	}
	if len(others) > 0 {
		first.Message += "; it is held back by " + strings.Join(others, ", ") + " too"
	}
	return first
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

// dryRun holds a stale workload that only dry runs manage.
func dryRun(input Input) *Block {
	if !input.Stale || !input.Scope.DryRun() {
		return nil
	}
	return &Block{
		Phase:  v1alpha1.PhaseWaitingForGate,
		Reason: v1alpha1.ReasonDryRun,
		Message: fmt.Sprintf("the workload would be restarted, but every policy that selects it is a dry run: %s",
			strings.Join(input.Scope.Names(), ", ")),
	}
}

// missingSource holds a workload whose new Pods could not start: Pods with old content are better than none.
func missingSource(input Input) *Block {
	if !input.Stale || len(input.Missing) == 0 {
		return nil
	}
	return &Block{
		Phase:  v1alpha1.PhaseWaitingForGate,
		Reason: v1alpha1.ReasonMissingSource,
		Message: fmt.Sprintf("new Pods would not start without %s; create it, or mark the reference as optional",
			strings.Join(input.Missing, ", ")),
	}
}

// concurrency holds a workload while as many others as are permitted are restarting.
func concurrency(input Input) *Block {
	if !input.Stale || input.Full == "" {
		return nil
	}
	return &Block{
		Phase:   v1alpha1.PhaseWaitingForGate,
		Reason:  v1alpha1.ReasonConcurrencyLimit,
		Message: input.Full,
		passing: true,
	}
}
