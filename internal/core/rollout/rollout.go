// Package rollout tells how far the rollout of a workload is: complete(w) and the evidence under σ(w), §6 of the
// model. It is the one place that knows when a Deployment, StatefulSet or DaemonSet counts as rolled out; the rules
// are those of `kubectl rollout status`.
package rollout

import "time"

// DefaultDeadline is how long a rollout may take before it no longer holds back a newer change, and before KICK
// gives up on its own.
const DefaultDeadline = 15 * time.Minute

// State is the progress of a workload's current rollout.
type State struct {
	// Complete: the controller has seen the present template and every Pod that should run runs it.
	Complete bool
	// Failed: the controller itself gave up on the present template (a Deployment's progress deadline).
	Failed bool
	// Paused: the template may change but nothing is rolled out (Deployment).
	Paused bool
	// Manual: Pods take a new template only when somebody deletes them (update strategy OnDelete).
	Manual bool
	// Partial: a complete rollout still leaves Pods of an older template running (a StatefulSet's partition).
	Partial bool
	// RevisedBy is an instant, in whole seconds, at which the present revision existed; zero if none is known. It is no
	// evidence of what runs, and only tells for which changes the revision need not be looked up.
	RevisedBy time.Time
	// Message says in words what an incomplete rollout waits for.
	Message string
}

// Revision is the ReplicaSet or ControllerRevision that holds the present template.
type Revision struct {
	Name string
	// CreatedAt bounds the start of the Pods of this revision from below, in whole seconds. After a rollback it is
	// old: a weaker bound, and still a true one.
	CreatedAt time.Time
}
