// Package explain puts the decision about one workload into words: what it is based on, what it is, and what could not be
// seen. It computes nothing that the core decides.
package explain

import (
	"time"

	"github.com/kick-dev/kick/internal/core/freshness"
)

// Report is the whole decision about one workload, read-only.
type Report struct {
	Namespace string `json:"namespace"`
	Workload  string `json:"workload"`
	// Now is the time of the API server at which the decision was made.
	Now time.Time `json:"now"`
	// Policies that decide about the workload, by name, and what they are: Acting, DryRun or Suspended.
	Policies []string `json:"policies,omitempty"`
	Force    string   `json:"force,omitempty"`
	Request  *Request `json:"request,omitempty"`
	Sources  []Source `json:"sources,omitempty"`
	// Evidence of the Pods, newest change first.
	Evidence []Evidence `json:"evidence,omitempty"`
	Rollout  string     `json:"rollout"`
	// LatestChange of any source that counts.
	LatestChange *time.Time `json:"latestChange,omitempty"`
	Verdict      Verdict    `json:"verdict"`
	Gate         []Link     `json:"gate,omitempty"`
	Decision     Decision   `json:"decision"`
	// Unseen is what could not be seen, and what that means for the above.
	Unseen []string `json:"unseen,omitempty"`
}

// Request is what is stored of the workload's KickRequest.
type Request struct {
	Name    string `json:"name"`
	Phase   string `json:"phase"`
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
}

// Standing says whether the changes of a source count.
type Standing string

// The standings.
const (
	Counts     Standing = "Counts"
	Ignored    Standing = "Ignored"
	NotCovered Standing = "NotCovered"
	Missing    Standing = "Missing"
	Unobserved Standing = "Unobserved"
	Unread     Standing = "Unread"
	Unseen     Standing = "Unseen"
)

// Source is one Secret or ConfigMap that the workload consumes, or a person who asked for a restart.
type Source struct {
	Name     string   `json:"name"`
	Standing Standing `json:"standing"`
	// ChangedAt is when what the workload consumes of it last changed.
	ChangedAt *time.Time `json:"changedAt,omitempty"`
	// Keys are those that count, empty for all.
	Keys []string `json:"keys,omitempty"`
	// ReadBy are the containers, with the way by which they read it.
	ReadBy  []string `json:"readBy,omitempty"`
	Writers string   `json:"writers,omitempty"`
	Detail  string   `json:"detail,omitempty"`
}

// Evidence says whether the Pods carry one change, and by what that is known.
type Evidence struct {
	Source    string          `json:"source"`
	ChangedAt time.Time       `json:"changedAt"`
	Proof     freshness.Proof `json:"proof"`
	Text      string          `json:"text"`
	Lines     []string        `json:"lines,omitempty"`
}

// Outcome of the judgement of the Pods.
type Outcome string

// The outcomes.
const (
	Fresh     Outcome = "Fresh"
	Stale     Outcome = "Stale"
	Undecided Outcome = "Undecided"
)

// Verdict on the Pods.
type Verdict struct {
	Outcome Outcome `json:"outcome"`
	Text    string  `json:"text"`
}

// Link is one link of the gate.
type Link struct {
	Name   string `json:"name"`
	Open   bool   `json:"open"`
	Reason string `json:"reason,omitempty"`
	Detail string `json:"detail"`
	// OpensAt is when it opens, if that is known.
	OpensAt string `json:"opensAt,omitempty"`
}

// Action is what KICK does next.
type Action string

// The actions.
const (
	ActionNothing Action = "Nothing"
	ActionWait    Action = "Wait"
	ActionRestart Action = "Restart"
	ActionFollow  Action = "Follow"
	ActionUnknown Action = "Unknown"
)

// Decision is the next step.
type Decision struct {
	Action  Action `json:"action"`
	Phase   string `json:"phase,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message"`
	// RecheckAt is when it is decided again if nothing happens before.
	RecheckAt *time.Time `json:"recheckAt,omitempty"`
}
