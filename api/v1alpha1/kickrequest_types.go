package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// KickRequestSpec names the workload the request is about.
type KickRequestSpec struct {
	// targetRef is the workload, in the request's own namespace. It cannot change.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="targetRef is immutable; KICK makes one request per workload"
	TargetRef TargetRef `json:"targetRef"`

	// manual asks for a restart now, as if a source had changed: it is the one part that people write. Quiet period and
	// minimum interval do not hold it back; windows and GitOps do, unless override is set.
	//
	// +optional
	Manual *ManualRestart `json:"manual,omitempty"`
}

// ManualRestart is a person's wish for a restart.
type ManualRestart struct {
	// requestedAt is when the restart was asked for, with six digits of fraction, at most five minutes from now. Pods that
	// started later need none; a later instant asks again.
	//
	// Example: 2026-08-06T08:20:00.000000Z
	//
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}(Z|[+-](0[0-9]|1[0-4]):[0-5][0-9])$`
	RequestedAt metav1.MicroTime `json:"requestedAt"`

	// requestedBy is the user name of who asks: nobody asks in the name of another.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	RequestedBy string `json:"requestedBy"`

	// reason says why, for those who look at the restart later.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`

	// override lets the restart pass closed windows and GitOps checks. It takes the right to override kickrequests, and is
	// ignored where KICK runs without the webhook that checks it. A suspended or dry policy, a missing source and the limits
	// on concurrent restarts still hold.
	//
	// +optional
	Override bool `json:"override,omitempty"`
}

// TargetRef names one workload object: the UID tells it from an earlier workload of the same name.
type TargetRef struct {
	// apiVersion of the workload.
	//
	// +required
	// +kubebuilder:validation:Enum=apps/v1
	APIVersion string `json:"apiVersion"`

	// kind of the workload.
	//
	// +required
	Kind WorkloadKind `json:"kind"`

	// name of the workload.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// uid of the workload.
	//
	// +required
	UID types.UID `json:"uid"`
}

// Phase is the state of a request in the model's transition system.
//
// +kubebuilder:validation:Enum=Pending;WaitingForGate;WaitingForOwner;WaitingForApplicationSync;WaitingForRollout;Executing;Succeeded;NoLongerRequired;Failed
type Phase string

// The phases of a KickRequest.
const (
	// PhasePending: a change was recorded, nothing is decided yet.
	PhasePending Phase = "Pending"
	// PhaseWaitingForGate: a policy holds the restart back.
	PhaseWaitingForGate Phase = "WaitingForGate"
	// PhaseWaitingForOwner: the GitOps owner of the workload cannot be told.
	PhaseWaitingForOwner Phase = "WaitingForOwner"
	// PhaseWaitingForApplicationSync: the GitOps owner is not in sync.
	PhaseWaitingForApplicationSync Phase = "WaitingForApplicationSync"
	// PhaseWaitingForRollout: a rollout that KICK did not start is in progress, or the workload is paused.
	PhaseWaitingForRollout Phase = "WaitingForRollout"
	// PhaseExecuting: KICK's own restart is being stamped or is rolling out.
	PhaseExecuting Phase = "Executing"
	// PhaseSucceeded: the restart is complete and every Pod carries the change. Terminal.
	PhaseSucceeded Phase = "Succeeded"
	// PhaseNoLongerRequired: the running Pods carry the change without a restart by KICK, or the workload is no
	// longer managed. Terminal.
	PhaseNoLongerRequired Phase = "NoLongerRequired"
	// PhaseFailed: the restart was stamped and its rollout did not complete. Terminal.
	PhaseFailed Phase = "Failed"
)

// SourceChange is the last relevant change of one source, as far as the workload is concerned.
type SourceChange struct {
	// kind of the source: Secret or ConfigMap, or Manual for a restart that a person asked for.
	//
	// +required
	// +kubebuilder:validation:Enum=Secret;ConfigMap;Manual
	Kind SourceKind `json:"kind"`

	// name of the source, in the request's namespace. For a manual restart, who asked for it.
	//
	// +required
	Name string `json:"name"`

	// keys that the workload consumes and that changed, where the policy asks for granularity Key, at most 16.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Keys []string `json:"keys,omitempty"`

	// changedAt is when the content changed, on the API server's clock, with microseconds.
	//
	// +required
	ChangedAt metav1.MicroTime `json:"changedAt"`
}

// Rollout is the rollout a request is driving, or the last one it drove. It is also the evidence by which later
// judgements tell what the Pods of that rollout carry.
type Rollout struct {
	// stamp is the value of the restartedAt annotation that KICK issues, RFC 3339 with nanoseconds. Empty when the
	// Pods were found to carry the change without a restart by KICK.
	//
	// +optional
	Stamp string `json:"stamp,omitempty"`

	// startedAt is when the stamp was decided, or, without a stamp, when the Pods were judged.
	//
	// +required
	StartedAt metav1.MicroTime `json:"startedAt"`

	// revision is the ReplicaSet or ControllerRevision of this rollout, known once it is complete.
	//
	// +optional
	Revision string `json:"revision,omitempty"`

	// issued is true once the stamp was seen on the Pod template. A stamp that is missing after that was removed by
	// somebody.
	//
	// +optional
	Issued bool `json:"issued,omitempty"`

	// manual is true where this restart is one that spec.manual asks for.
	//
	// +optional
	Manual bool `json:"manual,omitempty"`

	// covers lists the change times the decision had seen: Pods of this rollout carry at least this content. The
	// newest 256 are kept.
	//
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	Covers []SourceChange `json:"covers,omitempty"`

	// coversThrough covers, for the sources that covers has no room for, all changes up to this time.
	//
	// +optional
	CoversThrough *metav1.MicroTime `json:"coversThrough,omitempty"`

	// streak counts the restarts in a row that came because sources changed again before the minimum interval had
	// passed. Each of them doubles the interval.
	//
	// +optional
	Streak int32 `json:"streak,omitempty"`

	// attempts counts how often the stamp was issued again because somebody removed it.
	//
	// +optional
	Attempts int32 `json:"attempts,omitempty"`
}

// Owner is the GitOps object that deploys the workload.
type Owner struct {
	// provider is the tool: ArgoCD or Flux.
	//
	// +required
	Provider GitOpsProvider `json:"provider"`

	// kind of the object: Application, Kustomization or HelmRelease.
	//
	// +required
	Kind string `json:"kind"`

	// namespace of the object.
	//
	// +required
	Namespace string `json:"namespace"`

	// name of the object.
	//
	// +required
	Name string `json:"name"`

	// project is the AppProject of an Application, whose sync windows count.
	//
	// +optional
	Project string `json:"project,omitempty"`
}

// Gate is what holds a restart back.
type Gate struct {
	// reason is the first check that blocks, also shown by the conditions.
	//
	// +required
	Reason string `json:"reason"`

	// message says in words what is waited for.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// requeueAt is the next instant at which the schedules of all policies are open, RFC 3339 in the time zone of the
	// window that decides it. Absent when the gate does not wait for an instant.
	//
	// +optional
	RequeueAt string `json:"requeueAt,omitempty"`
}

// KickRequestStatus is where the request stands.
type KickRequestStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase is the state of the request. Succeeded, NoLongerRequired and Failed are terminal; a terminal request
	// is opened again by a change it does not cover.
	//
	// +optional
	Phase Phase `json:"phase,omitempty"`

	// latestObservedDependencyChange is the latest change of any source in scope, with microseconds.
	//
	// +optional
	LatestObservedDependencyChange *metav1.MicroTime `json:"latestObservedDependencyChange,omitempty"`

	// causes lists the changes the request is about, newest first, at most 16.
	//
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Causes []SourceChange `json:"causes,omitempty"`

	// causesOmitted counts the causes beyond those listed.
	//
	// +optional
	CausesOmitted int32 `json:"causesOmitted,omitempty"`

	// owner is the GitOps object that deploys the workload, where a policy asks for one and it is known.
	//
	// +optional
	Owner *Owner `json:"owner,omitempty"`

	// gate says what holds the restart back, while the phase is WaitingForGate, WaitingForOwner or
	// WaitingForApplicationSync.
	//
	// +optional
	Gate *Gate `json:"gate,omitempty"`

	// currentRollout is the rollout the request is driving while its phase is Executing, and afterwards the last
	// one it drove.
	//
	// +optional
	CurrentRollout *Rollout `json:"currentRollout,omitempty"`

	// completedAt is when the request became terminal; it is deleted a while after that (--request-ttl).
	//
	// +optional
	CompletedAt *metav1.MicroTime `json:"completedAt,omitempty"`

	// conditions: Ready, Reconciling, Stalled and Restarted, always present.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// KickRequest is the restart of one workload: made by KICK when a source the workload consumes changes, named
// after the workload, and kept until some time after its end.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=kr,categories=kick
// +kubebuilder:printcolumn:name="Target Kind",type=string,JSONPath=`.spec.targetRef.kind`
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.spec.targetRef.name`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Changed",type=date,JSONPath=`.status.latestObservedDependencyChange`
// +kubebuilder:printcolumn:name="Opens",type=string,JSONPath=`.status.gate.requeueAt`
// +kubebuilder:printcolumn:name="Provider",type=string,JSONPath=`.status.owner.provider`,priority=1
// +kubebuilder:printcolumn:name="Owner",type=string,JSONPath=`.status.owner.name`,priority=1
// +kubebuilder:printcolumn:name="Cause Kind",type=string,JSONPath=`.status.causes[0].kind`,priority=1
// +kubebuilder:printcolumn:name="Cause",type=string,JSONPath=`.status.causes[0].name`,priority=1
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=`.status.currentRollout.revision`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.spec.targetRef.kind) + 1 + size(self.spec.targetRef.name) > 253 || self.metadata.name == self.spec.targetRef.kind.lowerAscii() + '-' + self.spec.targetRef.name",message="metadata.name must be the kind of the target in lower case, a hyphen, and the name of the target"
type KickRequest struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec names the workload.
	//
	// +required
	Spec KickRequestSpec `json:"spec"`

	// status is written by KICK alone.
	//
	// +optional
	Status KickRequestStatus `json:"status,omitzero"`
}

// KickRequestList is a list of KickRequests.
//
// +kubebuilder:object:root=true
type KickRequestList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []KickRequest `json:"items"`
}
