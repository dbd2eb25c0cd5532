package v1alpha1

// Condition types of KickPolicy, KickRequest and KickNotification. Ready, Reconciling and Stalled follow kstatus; unlike most
// users of that vocabulary KICK also writes Reconciling and Stalled when they are False, so that a reader never has
// to tell "absent" from "no".
const (
	// ConditionReady is True when the object is where it should be: a policy is in force, a request ended well.
	ConditionReady = "Ready"
	// ConditionReconciling is True while KICK expects progress without anybody's help.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True when a person has to act.
	ConditionStalled = "Stalled"
)

// ConditionRestarted tells, on a KickRequest, whether the change led to a restart: True after a completed one, False
// when none was needed or it failed, Unknown while undecided.
const ConditionRestarted = "Restarted"

// ConditionScopeExclusive tells, on a KickPolicy, whether it alone selects its workloads. Sharing them is no fault: then
// all policies have to permit a restart.
const ConditionScopeExclusive = "ScopeExclusive"

// Reasons of the condition ScopeExclusive.
const (
	// ReasonSharedWorkloads: another policy selects some of the workloads too; the message names it.
	ReasonSharedWorkloads = "SharedWorkloads"
	// ReasonNoOverlap: no other policy selects any of the workloads.
	ReasonNoOverlap = "NoOverlap"
)

// Reasons shared with other controllers that speak this vocabulary.
const (
	// ReasonSucceeded: a policy is in force; a request's restart is complete.
	ReasonSucceeded = "Succeeded"
	// ReasonProgressing: work is going on and nothing more can be said.
	ReasonProgressing = "Progressing"
)

// Reasons of a KickPolicy.
const (
	// ReasonSuspended: spec.suspend is true. A suspended policy is Ready: it does what was asked.
	ReasonSuspended = "Suspended"
	// ReasonSelectorInvalid: a selector does not parse, so the policy selects nothing.
	ReasonSelectorInvalid = "SelectorInvalid"
	// ReasonScheduleInvalid: a window does not parse, so the policy is closed. On a request (WaitingForGate): a policy of
	// its workload is.
	ReasonScheduleInvalid = "ScheduleInvalid"
	// ReasonReservedNamespace: the policy lives in KICK's own namespace, which is never managed.
	ReasonReservedNamespace = "ReservedNamespace"
)

// Reasons of a KickNotification, beside Succeeded.
const (
	// ReasonSecretMissing: the Secret of spec.secretRef does not exist.
	ReasonSecretMissing = "SecretMissing"
	// ReasonSecretNotPermitted: the Secret lacks the label kick.dev/notification and is not permitted otherwise.
	ReasonSecretNotPermitted = "SecretNotPermitted"
	// ReasonSecretInvalid: the Secret holds no URL, or headers that are none.
	ReasonSecretInvalid = "SecretInvalid"
	// ReasonHostNotPermitted: whoever runs KICK does not permit messages to the host of the URL.
	ReasonHostNotPermitted = "HostNotPermitted"
	// ReasonDeliveryFailing: the receiver does not take a message; it is sent again.
	ReasonDeliveryFailing = "DeliveryFailing"
)

// Reasons of a KickRequest, by the phase in which they appear.
const (
	// ReasonPolicySuspended (WaitingForGate): every policy that selects the workload is suspended.
	ReasonPolicySuspended = "PolicySuspended"
	// ReasonDryRun (WaitingForGate): the Pods are stale, and every policy that selects the workload is a dry run.
	ReasonDryRun = "DryRun"
	// ReasonMissingSource (WaitingForGate): a source or key that new Pods could not start without does not exist.
	ReasonMissingSource = "MissingSource"
	// ReasonMinInterval (WaitingForGate): the workload was restarted a short while ago.
	ReasonMinInterval = "MinInterval"
	// ReasonConcurrencyLimit (WaitingForGate): as many workloads as a policy or the cluster permits are restarting.
	ReasonConcurrencyLimit = "ConcurrencyLimit"
	// ReasonOutsideSchedule (WaitingForGate): the windows of a policy are closed; status.gate tells when they open.
	ReasonOutsideSchedule = "OutsideSchedule"
	// ReasonNeverOpens (WaitingForGate): the windows of the policies do not open within 366 days.
	ReasonNeverOpens = "NeverOpens"
	// ReasonQuietPeriod (WaitingForGate): changes are still coming in and are collected.
	ReasonQuietPeriod = "QuietPeriod"

	// ReasonConfigurationError (WaitingForGate): a sync window of the owner's AppProject, or a setting of Argo CD it
	// depends on, cannot be read. OutsideSchedule is also the reason while sync windows are closed.
	ReasonConfigurationError = "ConfigurationError"

	// ReasonOwnerUnknown (WaitingForOwner): no GitOps object that deploys to this cluster lists the workload.
	ReasonOwnerUnknown = "OwnerUnknown"
	// ReasonMultipleOwners (WaitingForOwner): more than one GitOps object lists the workload.
	ReasonMultipleOwners = "MultipleOwners"
	// ReasonProviderUnavailable (WaitingForOwner): the GitOps tool is not installed, or its objects cannot be read. On a
	// KickPolicy: the tool that spec.gitOps.provider names is not installed.
	ReasonProviderUnavailable = "ProviderUnavailable"
	// ReasonProjectUnknown (WaitingForOwner): the AppProject of the owner does not exist or does not admit it.
	ReasonProjectUnknown = "ProjectUnknown"

	// ReasonOwnerDeleting (WaitingForApplicationSync): the owner is being deleted.
	ReasonOwnerDeleting = "OwnerDeleting"
	// ReasonOwnerSuspended (WaitingForApplicationSync): reconciliation of the owner is switched off, so that its status
	// says nothing.
	ReasonOwnerSuspended = "OwnerSuspended"
	// ReasonSyncInProgress (WaitingForApplicationSync): the owner is at work, or about to be.
	ReasonSyncInProgress = "SyncInProgress"
	// ReasonOutOfSync (WaitingForApplicationSync): the owner differs from its source, or failed to apply it.
	ReasonOutOfSync = "OutOfSync"

	// ReasonRolloutInProgress (WaitingForRollout): a rollout KICK did not start has to end first.
	ReasonRolloutInProgress = "RolloutInProgress"
	// ReasonPaused (WaitingForRollout): the Deployment is paused; KICK waits for its resume.
	ReasonPaused = "Paused"

	// ReasonStamping (Executing): the restart is decided and about to be written to the Pod template.
	ReasonStamping = "Stamping"
	// ReasonRollingOut (Executing): the stamp is on the template, the workload controller replaces the Pods.
	ReasonRollingOut = "RollingOut"
	// ReasonAwaitingManualReplacement (Executing): the stamp is on the template of a workload with update strategy
	// OnDelete; it ends when its Pods have been deleted by somebody.
	ReasonAwaitingManualReplacement = "AwaitingManualReplacement"
	// ReasonRestartDenied (Executing): the API server refuses the stamp, for want of a right or by an admission
	// policy.
	ReasonRestartDenied = "RestartDenied"

	// ReasonAlreadyFresh (NoLongerRequired): every running Pod provably carries the change.
	ReasonAlreadyFresh = "AlreadyFresh"
	// ReasonNotManaged (NoLongerRequired): no policy selects the workload, or no source in scope is left.
	ReasonNotManaged = "NotManaged"

	// ReasonRolloutFailed (Failed): the Deployment exceeded its progress deadline after the stamp.
	ReasonRolloutFailed = "RolloutFailed"
	// ReasonRolloutDeadlineExceeded (Failed): the rollout after the stamp did not complete in time.
	ReasonRolloutDeadlineExceeded = "RolloutDeadlineExceeded"
	// ReasonStampRemoved (Failed): somebody keeps removing the stamp from the Pod template.
	ReasonStampRemoved = "StampRemoved"
)

// Terminal tells whether a request in this phase has ended.
func (p Phase) Terminal() bool {
	switch p {
	case PhaseSucceeded, PhaseNoLongerRequired, PhaseFailed:
		return true
	default:
		return false
	}
}

// Waiting tells whether a request in this phase is held back.
func (p Phase) Waiting() bool {
	switch p {
	case PhaseWaitingForGate, PhaseWaitingForOwner, PhaseWaitingForApplicationSync, PhaseWaitingForRollout:
		return true
	default:
		return false
	}
}
