package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/deps"
	"github.com/kick-dev/kick/internal/core/freshness"
	"github.com/kick-dev/kick/internal/core/policy"
	"github.com/kick-dev/kick/internal/core/request"
	"github.com/kick-dev/kick/internal/core/rollout"
)

// Input is what a report is made of. Its facts have to be as complete as they can be: live workload, revision, Pods, room.
type Input struct {
	Namespace string
	Kind      v1alpha1.WorkloadKind
	Name      string
	Now       time.Time
	Settings  request.Settings
	// Request of the workload, nil for none.
	Request *v1alpha1.KickRequest
	Facts   request.Facts
	// References are the sources that the Pod template consumes.
	References []deps.Reference
	// Standings of the sources that do not simply count, with the reason.
	Standings map[deps.Source]Standed
	// Unseen is what could not be read.
	Unseen []string
	// Blind is true where the change times could not be read at all, so that nothing can be decided.
	Blind bool
	// Guessed is true where sources could not be looked at: whether they exist, and whether KICK has read them, is not known.
	Guessed bool
}

// Standed is the standing of a source with its reason.
type Standed struct {
	Standing Standing
	Detail   string
}

// Of makes the report.
func Of(in Input) Report {
	r := Report{
		Namespace: in.Namespace, Workload: strings.ToLower(string(in.Kind)) + "/" + in.Name, Now: in.Now, Unseen: in.Unseen,
		Policies: in.Facts.Scope.Names(), Force: forceOf(in.Facts.Scope), Rollout: rolloutOf(in.Facts.Evidence.Rollout),
		Sources: sourcesOf(in),
	}
	if !in.Facts.Scope.Managed() {
		r.Policies = nil
	}
	var status v1alpha1.KickRequestStatus
	if in.Request != nil {
		status = in.Request.Status
		r.Request = requestOf(in.Request)
	}
	if !in.Facts.Scope.Managed() && in.Request == nil {
		r.Verdict = Verdict{Undecided, "nobody asks: no policy selects the workload"}
		r.Decision = Decision{Action: ActionNothing, Message: "no KickPolicy of the namespace selects the workload"}
		return r
	}
	explanation := request.Explain(status, in.Facts, in.Settings, in.Now)
	r.Evidence = evidenceOf(explanation.Evidence)
	if latest := explanation.Latest; !latest.IsZero() {
		r.LatestChange = &latest
	}
	r.Verdict = verdictOf(in, explanation)
	r.Gate = linksOf(in, explanation)
	r.Decision = decisionOf(in, explanation)
	return r
}

func forceOf(scope policy.Scope) string {
	switch {
	case !scope.Managed():
		return ""
	case scope.Suspended():
		return "Suspended"
	case scope.DryRun():
		return "DryRun"
	default:
		return "Acting"
	}
}

func requestOf(object *v1alpha1.KickRequest) *Request {
	shown := &Request{Name: object.Name, Phase: string(cmp.Or(object.Status.Phase, v1alpha1.PhasePending))}
	if ready := meta.FindStatusCondition(object.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
		shown.Reason, shown.Message = ready.Reason, ready.Message
	}
	return shown
}

func rolloutOf(state rollout.State) string {
	switch {
	case state.Paused:
		return "paused"
	case state.Complete && state.Partial:
		return "complete, but for Pods that a partition keeps on an older template"
	case state.Complete:
		return "complete"
	case state.Failed:
		return "failed: " + state.Message
	default:
		return "in progress: " + state.Message
	}
}

func sourcesOf(in Input) []Source {
	var sources []Source
	for _, reference := range in.References {
		source := Source{
			Name: reference.String(), Standing: Counts, ReadBy: readBy(reference), Writers: in.Facts.Writers[reference.Source],
		}
		if stand, odd := in.Standings[reference.Source]; odd {
			source.Standing, source.Detail = stand.Standing, stand.Detail
		}
		if at, known := in.Facts.Changes[reference.Source]; known {
			source.ChangedAt = &at
		}
		if keys := in.Facts.Keys[reference.Source]; keys != nil {
			for key := range keys {
				source.Keys = append(source.Keys, key)
			}
			slices.Sort(source.Keys)
		}
		sources = append(sources, source)
	}
	if manual := in.Facts.Manual; manual != nil {
		at := manual.RequestedAt.Time
		detail := cmp.Or(manual.Reason, "no reason given")
		if manual.Override {
			detail += "; past windows and GitOps"
		}
		sources = append(sources, Source{
			Name: "Manual/" + manual.RequestedBy, Standing: Counts, ChangedAt: &at, Detail: detail, ReadBy: []string{"every container"},
		})
	}
	return sources
}

func readBy(reference deps.Reference) []string {
	var readers []string
	for _, reader := range reference.Readers {
		name := reader.Container
		if name == "" {
			name = "every container"
		}
		readers = append(readers, name+" ("+channel(reader.Channel)+")")
	}
	return readers
}

func channel(c deps.Channel) string {
	if c == deps.Volume {
		return "volume"
	}
	return "env"
}

func evidenceOf(lines []freshness.Line) []Evidence {
	var evidence []Evidence
	for _, line := range lines {
		evidence = append(evidence, Evidence{
			Source: line.String(), ChangedAt: line.ChangedAt, Proof: line.Proof, Text: proofText(line), Lines: readingLines(line),
		})
	}
	return evidence
}

func proofText(line freshness.Line) string {
	switch line.Proof {
	case freshness.ByStamp:
		return "carried: KICK issued the present restartedAt for the state up to " + stamp(line.Bound)
	case freshness.ByAge:
		return "carried: the workload is no older; it was created at " + stamp(line.Bound)
	case freshness.ByRevision:
		return "carried: the revision that all Pods have is no older; it was made at " + stamp(line.Bound)
	case freshness.ByPods:
		if len(line.Readings) == 0 {
			return "carried: no running container reads it"
		}
		return "carried: every container that reads it started no earlier"
	default:
		if len(line.Readings) == 0 {
			return "not proved: the Pods were not looked at"
		}
		return "not carried: a container that reads it started before the change"
	}
}

func readingLines(line freshness.Line) []string {
	var lines []string
	for _, reading := range line.Readings {
		says := "started before the change"
		if reading.Carries {
			says = "started no earlier than the change"
		}
		text := fmt.Sprintf("Pod %s, container %s (%s): started at %s", reading.Pod, reading.Container, channel(reading.Channel),
			reading.StartedAt.UTC().Format(time.RFC3339))
		if !reading.Bound.Equal(reading.StartedAt) {
			text += ", and its volume counts as of " + reading.Bound.UTC().Format(time.RFC3339)
		}
		lines = append(lines, text+": "+says)
	}
	return lines
}

func verdictOf(in Input, explanation request.Explanation) Verdict {
	switch {
	case in.Blind:
		return Verdict{Undecided, "when the sources changed cannot be seen"}
	case !in.Facts.Scope.Managed():
		return Verdict{Undecided, "nobody asks: no policy selects the workload any more"}
	case !in.Facts.Evidence.PodsRead && explanation.Stale:
		return Verdict{Undecided, "the Pods cannot be seen"}
	case len(explanation.Evidence) == 0:
		return Verdict{Undecided, "no change of a source that counts is on record"}
	case explanation.Stale && !in.Facts.Evidence.Rollout.Complete:
		return Verdict{Undecided, "some change is not proved to be carried, and the Pods are judged when the rollout is complete"}
	case !explanation.Stale && toRead(in) != "":
		return Verdict{Undecided, "every change that KICK has read is carried, and " + toRead(in)}
	case explanation.Stale:
		return Verdict{Stale, "some container does not provably carry the last change of a source it reads"}
	default:
		return Verdict{Fresh, "every running container carries the last change of each source it reads"}
	}
}

func decisionOf(in Input, explanation request.Explanation) Decision {
	if in.Blind {
		return Decision{Action: ActionUnknown, Message: "this cannot be told without the ledger" + lastWord(in.Request)}
	}
	if in.Request == nil {
		if unneeded, ok := withoutRequest(in); ok {
			return unneeded
		}
	}
	step := explanation.Step
	if step.Need != request.NeedNothing {
		return Decision{Action: ActionUnknown, Message: "this cannot be told without what could not be seen" + lastWord(in.Request)}
	}
	decision := Decision{Action: ActionWait, Phase: string(step.Status.Phase)}
	if ready := meta.FindStatusCondition(step.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
		decision.Reason, decision.Message = ready.Reason, ready.Message
	}
	switch {
	case step.Stamp != "" && in.Guessed:
		return Decision{Action: ActionUnknown, Message: "as far as can be seen it is time to restart, but whether every source exists " +
			"that new Pods need cannot be seen" + lastWord(in.Request)}
	case step.Stamp != "":
		decision.Action = ActionRestart
	case toRead(in) != "" && untilRead(step.Status.Phase, decision.Reason):
		return Decision{Action: ActionWait, Message: toRead(in)}
	case step.Status.Phase.Terminal():
		decision.Action = ActionNothing
	case decision.Reason == v1alpha1.ReasonRollingOut:
		decision.Action = ActionFollow
	}
	if !step.RecheckAt.IsZero() && decision.Action != ActionNothing {
		decision.RecheckAt = &step.RecheckAt
	}
	return decision
}

// withoutRequest decides about a workload that has no request: whether it needs one.
func withoutRequest(in Input) (Decision, bool) {
	stale, need := request.Warranted(in.Facts)
	switch {
	case need != request.NeedNothing:
		return Decision{Action: ActionUnknown, Message: "this cannot be told without what could not be seen"}, true
	case stale:
		return Decision{}, false
	case toRead(in) != "":
		return Decision{Action: ActionWait, Message: toRead(in)}, true
	case !in.Facts.Evidence.Rollout.Complete:
		return Decision{Action: ActionNothing, Message: "a change leads to a request; Pods are judged when the rollout is complete"}, true
	default:
		return Decision{Action: ActionNothing, Message: "there is no request, and none is needed; the next change leads to one"}, true
	}
}

// untilRead tells whether a state may not last once more is read: a request may be opened again, or what is missing found.
func untilRead(phase v1alpha1.Phase, reason string) bool {
	return phase.Terminal() || reason == v1alpha1.ReasonMissingSource
}

// toRead says what KICK has yet to read before it can decide for good, empty for nothing.
func toRead(in Input) string {
	if len(in.Facts.Unread) > 0 {
		return "KICK is about to read " + strings.Join(in.Facts.Unread, ", ")
	}
	for _, reference := range in.References {
		// Where the ledger could not be read this is not known of any source.
		if in.Standings[reference.Source].Standing == Unobserved {
			return fmt.Sprintf("KICK has yet to read the %s %s for the first time", reference.Kind, reference.Name)
		}
	}
	return ""
}

// lastWord is what KICK itself says in the request.
func lastWord(object *v1alpha1.KickRequest) string {
	if object == nil {
		return ""
	}
	said := requestOf(object)
	return fmt.Sprintf("; KICK's own word is %s, %s: %s", said.Phase, said.Reason, said.Message)
}

func stamp(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000000Z07:00") }
