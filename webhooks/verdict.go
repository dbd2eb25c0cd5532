package webhooks

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/policy"
)

// write is an update of a workload, reduced to what the guard looks at.
type write struct {
	// old and updated are the values of the annotation restartedAt before and after, nil where it is absent.
	old, updated *string
	// own is true where KICK itself writes, exempt where the writer may restart whatever it likes.
	own, exempt bool
	// momentary is true for a value that names the present moment, as that of kubectl does: no revision carries it yet.
	momentary bool
	// guards are the policies that select the workload.
	guards []guarding
	// history holds the values that revisions of the workload carry. It is read only where the verdict depends on it.
	history     []string
	historyRead bool
}

// guarding is what a policy says about foreign restarts.
type guarding struct {
	policy            string
	mode              v1alpha1.GuardMode
	suspended, dryRun bool
}

// rule names what decided about a write.
type rule string

// The rules, in the order in which they are asked.
const (
	// ruleUnchanged: the annotation is what it was.
	ruleUnchanged rule = "Unchanged"
	// ruleRemoved: the annotation goes, as when a manifest without it replaces the workload.
	ruleRemoved rule = "Removed"
	// ruleOwnAccount: it is KICK's stamp.
	ruleOwnAccount rule = "OwnAccount"
	// ruleExempt: the writer is listed by --guard-exempt-users or --guard-exempt-groups.
	ruleExempt rule = "Exempt"
	// ruleNotGuarded: no policy manages the workload, or none that minds.
	ruleNotGuarded rule = "NotGuarded"
	// ruleKnownRevision: a revision of the workload carries the value; this is how a rollback writes.
	ruleKnownRevision rule = "KnownRevision"
	// ruleForeignRestart: none of the above. Somebody restarts a workload that KICK manages.
	ruleForeignRestart rule = "ForeignRestart"
)

// effect is what comes of a write.
type effect int

const (
	allow effect = iota
	warn
	deny
	// readHistory asks for the history of the workload, and to be judged again.
	readHistory
)

// verdict is the answer to a write: what decided, and the policy, where one did.
type verdict struct {
	effect effect
	rule   rule
	guarding
}

// judge decides about an update of a workload.
func judge(w write) verdict {
	deciding, guarded := strictest(w.guards)
	switch {
	case w.updated == nil && w.old == nil, w.updated != nil && w.old != nil && *w.updated == *w.old:
		return verdict{rule: ruleUnchanged}
	case w.updated == nil:
		return verdict{rule: ruleRemoved}
	case w.own:
		return verdict{rule: ruleOwnAccount}
	case w.exempt:
		return verdict{rule: ruleExempt}
	case !guarded || deciding.mode == v1alpha1.GuardOff:
		return verdict{rule: ruleNotGuarded, guarding: deciding}
	case !w.historyRead && !w.momentary:
		return verdict{effect: readHistory}
	case slices.Contains(w.history, *w.updated):
		return verdict{rule: ruleKnownRevision, guarding: deciding}
	case deciding.mode == v1alpha1.GuardWarn:
		return verdict{effect: warn, rule: ruleForeignRestart, guarding: deciding}
	default:
		return verdict{effect: deny, rule: ruleForeignRestart, guarding: deciding}
	}
}

// moment is how far from the present the value of a restart that is made now may be: kubectl drops the fraction of a second,
// and clocks differ a little.
const moment = 2 * time.Second

// momentary tells whether a value names the present moment in whole seconds, as kubectl writes it. The stamps of KICK have a
// fraction, so that a rollback to one of them is never taken for a new restart, however soon it comes.
func momentary(value *string, now time.Time) bool {
	if value == nil {
		return false
	}
	at, err := time.Parse(time.RFC3339Nano, *value)
	return err == nil && at.Nanosecond() == 0 && now.Sub(at).Abs() <= moment
}

// strictest returns the policy that decides, false if there is none: of those in force the one with the strictest guard.
// Where none is in force, a dry run does not go further than a warning, and after those come suspended policies.
func strictest(policies []guarding) (guarding, bool) {
	ordered := slices.Clone(policies)
	for i := range ordered {
		if ordered[i].dryRun && strictness(ordered[i].mode) > strictness(v1alpha1.GuardWarn) {
			ordered[i].mode = v1alpha1.GuardWarn
		}
	}
	slices.SortFunc(ordered, func(a, b guarding) int {
		return cmp.Or(
			cmp.Compare(absence(a), absence(b)),
			-cmp.Compare(strictness(a.mode), strictness(b.mode)),
			cmp.Compare(a.policy, b.policy))
	})
	if len(ordered) == 0 {
		return guarding{}, false
	}
	return ordered[0], true
}

// absence ranks policies: one counts only where there is none of a lower rank.
func absence(g guarding) int {
	switch {
	case g.suspended:
		return 2
	case g.dryRun:
		return 1
	default:
		return 0
	}
}

// strictness orders the modes. One that is not known is the default, Enforce.
func strictness(mode v1alpha1.GuardMode) int {
	switch mode {
	case v1alpha1.GuardOff:
		return 0
	case v1alpha1.GuardWarn:
		return 1
	default:
		return 2
	}
}

// guardsOf returns what the policies say that select a workload with the labels it has, or with those the write gives
// it: who takes the label away in the same write restarts a managed workload all the same.
func guardsOf(policies []v1alpha1.KickPolicy, old, updated labels.Set) []guarding {
	var guards []guarding
	for i := range policies {
		parsed, _ := policy.Parse(&policies[i]) // One with a broken selector selects nothing.
		if !parsed.SelectsWorkload(old) && !parsed.SelectsWorkload(updated) {
			continue
		}
		spec := &policies[i].Spec
		guards = append(guards, guarding{
			policy: policies[i].Name, mode: spec.Guard, suspended: spec.Suspend, dryRun: spec.DryRun,
		})
	}
	return guards
}
