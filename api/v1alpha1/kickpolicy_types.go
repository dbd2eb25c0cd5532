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

	// discovery selects the workloads to manage and the sources whose changes count.
	//
	// +required
	Discovery Discovery `json:"discovery"`
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
}

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

	// conditions: Ready, Reconciling and Stalled, always present, with the reasons of this API group.
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
// +kubebuilder:printcolumn:name="Suspended",type=boolean,JSONPath=`.spec.suspend`,priority=1
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
