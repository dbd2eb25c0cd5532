package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// KickPolicySpec says which workloads of the policy's namespace KICK manages.
type KickPolicySpec struct {
	// suspend holds back every restart this policy would allow. Changes are still observed; the requests wait, in
	// phase WaitingForGate with reason PolicySuspended, and go on as soon as suspend is false again.
	//
	// +optional
	// +kubebuilder:default=false
	Suspend bool `json:"suspend,omitempty"`

	// dryRun judges every change and says what would be restarted, but restarts nothing: the request of a stale workload
	// waits, in phase WaitingForGate with reason DryRun, and goes on as soon as dryRun is false. Where another policy that
	// is neither suspended nor dry selects the same workload, that one decides. The guard of a dry policy only warns.
	//
	// +optional
	// +kubebuilder:default=false
	DryRun bool `json:"dryRun,omitempty"`

	// discovery selects the workloads to manage and the sources whose changes count.
	//
	// +required
	Discovery Discovery `json:"discovery"`

	// schedule says when restarts may run. Without windows they may run at any time.
	//
	// +optional
	Schedule Schedule `json:"schedule,omitzero"`

	// gitOps makes restarts wait for the tool that deploys the workload.
	//
	// +optional
	// +kubebuilder:default={}
	GitOps GitOps `json:"gitOps,omitzero"`

	// restart says how gently restarts are made.
	//
	// +optional
	// +kubebuilder:default={}
	Restart Restart `json:"restart,omitzero"`

	// guard says what happens when somebody other than KICK sets the annotation kubectl.kubernetes.io/restartedAt on the
	// Pod template of a workload the policy selects: Enforce refuses the write and tells how to ask KICK for a restart,
	// Warn lets it pass with that text as a warning, Off lets it pass. Removing the annotation and going back to a value
	// that one of the workload's revisions carries (kubectl rollout undo) passes. In YAML, "Off" needs its quotes.
	//
	// +optional
	// +kubebuilder:default=Enforce
	Guard GuardMode `json:"guard,omitempty"`
}

// GuardMode says what happens to foreign restarts of managed workloads.
//
// +kubebuilder:validation:Enum=Enforce;Warn;Off
type GuardMode string

// The modes of the guard.
const (
	// GuardEnforce refuses foreign restarts.
	GuardEnforce GuardMode = "Enforce"
	// GuardWarn lets them pass with a warning.
	GuardWarn GuardMode = "Warn"
	// GuardOff lets them pass.
	GuardOff GuardMode = "Off"
)

// GitOps says whether restarts wait for Argo CD or Flux.
type GitOps struct {
	// provider is the tool that deploys the workloads. With ArgoCD or Flux each workload has to belong to exactly one
	// object of that tool, and with Auto to exactly one object of either; a workload of none waits. None asks nobody.
	//
	// +optional
	// +kubebuilder:default=None
	Provider GitOpsProvider `json:"provider,omitempty"`

	// requireReconciled makes restarts wait until the owner is in sync. With false only its freeze windows, the sync
	// windows of its Argo CD project, hold restarts back.
	//
	// +optional
	// +kubebuilder:default=true
	RequireReconciled *bool `json:"requireReconciled,omitempty"`
}

// GitOpsProvider names a tool that deploys workloads.
//
// +kubebuilder:validation:Enum=None;Auto;ArgoCD;Flux
type GitOpsProvider string

// The providers.
const (
	// ProviderNone: nobody is asked.
	ProviderNone GitOpsProvider = "None"
	// ProviderAuto: whichever tool claims the workload is asked.
	ProviderAuto GitOpsProvider = "Auto"
	// ProviderArgoCD: an Argo CD Application has to own the workload.
	ProviderArgoCD GitOpsProvider = "ArgoCD"
	// ProviderFlux: a Flux Kustomization or HelmRelease has to own the workload.
	ProviderFlux GitOpsProvider = "Flux"
)

// Restart says how gently restarts are made.
type Restart struct {
	// quietPeriod is how long no change may have come before a workload is restarted, so that changes that belong
	// together lead to one restart. 0s acts at once.
	//
	// Example: 30s
	//
	// +optional
	// +kubebuilder:default="5s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(h|m|s))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="must be a duration such as 90s"
	QuietPeriod *metav1.Duration `json:"quietPeriod,omitempty"`

	// maxQuiet bounds the wait for quiet, counted from the first change.
	//
	// Example: 5m
	//
	// +optional
	// +kubebuilder:default="60s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(h|m|s))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="must be a duration such as 90s"
	MaxQuiet *metav1.Duration `json:"maxQuiet,omitempty"`

	// minInterval is the shortest time between two restarts of one workload. It doubles, up to an hour, each time
	// its sources change again before it has passed, and goes back to its first value after an hour without a change.
	// 0s sets no limit.
	//
	// Example: 2m
	//
	// +optional
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(h|m|s))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="must be a duration such as 90s"
	MinInterval *metav1.Duration `json:"minInterval,omitempty"`

	// maxConcurrent is how many workloads of the policy may be restarting at the same time: stamped, and their rollout
	// not complete. Without it only the limit of the whole cluster (--max-concurrent-restarts) counts.
	//
	// Example: 5
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxConcurrent *int32 `json:"maxConcurrent,omitempty"`

	// rolloutDeadline is how long a rollout may take. After that one that KICK did not start no longer holds a restart
	// back, and KICK's own counts as failed.
	//
	// Example: 1h
	//
	// +optional
	// +kubebuilder:default="15m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(h|m|s))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be positive, such as 15m"
	RolloutDeadline *metav1.Duration `json:"rolloutDeadline,omitempty"`
}

// Schedule is a set of time windows.
type Schedule struct {
	// windows permit or forbid restarts while they are active. As soon as one Allow window is listed, restarts may run
	// only while an Allow window is active; with Deny windows alone they may run at any other time. A Deny window
	// always wins.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Windows []Window `json:"windows,omitempty"`
}

// WindowKind says what a window does while it is active.
//
// +kubebuilder:validation:Enum=Allow;Deny
type WindowKind string

// The kinds of windows.
const (
	// WindowAllow permits restarts.
	WindowAllow WindowKind = "Allow"
	// WindowDeny forbids restarts.
	WindowDeny WindowKind = "Deny"
)

// Window is a recurring span of time.
type Window struct {
	// kind says whether the window permits restarts (Allow) or forbids them (Deny).
	//
	// +required
	Kind WindowKind `json:"kind"`

	// cron says when the window begins, in the five fields of cron: minute, hour, day of month, month, day of week. If
	// both days are restricted, either may match. Days of the week are 0 (Sunday) to 6.
	//
	// Example: 0 2 * * 1-5
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Cron string `json:"cron"`

	// duration is how long the window lasts, in elapsed time, with the units h, m and s. It may be longer than a day.
	//
	// Example: 2h30m
	//
	// +required
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(h|m|s))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be positive, such as 2h"
	Duration string `json:"duration"`

	// timeZone is the IANA time zone on whose clocks cron is read. The default is UTC, whatever zone KICK runs in. A
	// start that is skipped when clocks go forward happens when the skipped time ends; one that is repeated when they
	// go back happens twice.
	//
	// Example: Europe/Berlin
	//
	// +optional
	// +kubebuilder:default=UTC
	// +kubebuilder:validation:MaxLength=64
	TimeZone string `json:"timeZone,omitempty"`
}

// Discovery selects workloads and sources by their labels, within the policy's namespace.
type Discovery struct {
	// workloadSelector selects Deployments, StatefulSets and DaemonSets by their own labels (not those of their
	// Pods). The empty selector {} selects every one of them in the namespace, so it has to be written out.
	//
	// Example: {matchLabels: {app: web}}
	//
	// +required
	WorkloadSelector metav1.LabelSelector `json:"workloadSelector"`

	// dependencySelector narrows the Secrets and ConfigMaps whose changes count, by the labels of the Secret or
	// ConfigMap. Without it every source that a selected workload consumes counts.
	//
	// Example: {matchLabels: {tier: db}}
	//
	// +optional
	DependencySelector *metav1.LabelSelector `json:"dependencySelector,omitempty"`

	// granularity says what of a source counts: with Source any change of its content, with Key only changes of the keys
	// that the workload consumes: those named by secretKeyRef, configMapKeyRef, the items of a volume, or the subPath of
	// its mounts. envFrom and volumes mounted as a whole consume every key, as does a source of more than 256 keys.
	//
	// +optional
	// +kubebuilder:default=Source
	Granularity Granularity `json:"granularity,omitempty"`
}

// Granularity says what of a source counts.
//
// +kubebuilder:validation:Enum=Source;Key
type Granularity string

// The granularities.
const (
	// GranularitySource: any change of the content of a source counts.
	GranularitySource Granularity = "Source"
	// GranularityKey: changes of the keys that a workload consumes count.
	GranularityKey Granularity = "Key"
)

// KickPolicyStatus is what KICK reports about a policy.
type KickPolicyStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// matchedWorkloads is the number of workloads the policy selects. It is sampled: written when the policy is
	// reconciled and at most once a minute, so it may lag behind the cluster.
	//
	// +optional
	MatchedWorkloads *int32 `json:"matchedWorkloads,omitempty"`

	// observedSources is the number of distinct Secrets and ConfigMaps in the namespace that the selected workloads
	// consume and the dependency selector admits. Sampled like matchedWorkloads.
	//
	// +optional
	ObservedSources *int32 `json:"observedSources,omitempty"`

	// conditions: Ready, Reconciling, Stalled and ScopeExclusive, always present, with the reasons of this API group.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// KickPolicy selects workloads that KICK restarts when the content of a Secret or ConfigMap they consume changes.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=kp,categories=kick
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Workloads",type=integer,JSONPath=`.status.matchedWorkloads`
// +kubebuilder:printcolumn:name="Sources",type=integer,JSONPath=`.status.observedSources`
// +kubebuilder:printcolumn:name="Provider",type=string,JSONPath=`.spec.gitOps.provider`,priority=1
// +kubebuilder:printcolumn:name="Suspended",type=boolean,JSONPath=`.spec.suspend`,priority=1
// +kubebuilder:printcolumn:name="Dry Run",type=boolean,JSONPath=`.spec.dryRun`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type KickPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what the user asks for.
	//
	// +required
	Spec KickPolicySpec `json:"spec"`

	// status is written by KICK alone.
	//
	// +optional
	Status KickPolicyStatus `json:"status,omitzero"`
}

// KickPolicyList is a list of KickPolicies.
//
// +kubebuilder:object:root=true
type KickPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []KickPolicy `json:"items"`
}
