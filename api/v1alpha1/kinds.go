package v1alpha1

// WorkloadKind is a kind of workload KICK restarts, all of them in apps/v1.
//
// +kubebuilder:validation:Enum=Deployment;StatefulSet;DaemonSet
type WorkloadKind string

// The workload kinds KICK knows.
const (
	Deployment  WorkloadKind = "Deployment"
	StatefulSet WorkloadKind = "StatefulSet"
	DaemonSet   WorkloadKind = "DaemonSet"
)

// SourceKind is a kind of object whose content workloads consume, both of them in v1.
type SourceKind string

// The source kinds KICK observes.
const (
	Secret    SourceKind = "Secret"
	ConfigMap SourceKind = "ConfigMap"
	// Manual stands, among the causes of a restart, for a person who asked for it.
	Manual SourceKind = "Manual"
)

// RestartedAtAnnotation is the Pod template annotation whose change makes the workload controllers roll a new
// revision. Kubernetes documents it as the mark of `kubectl rollout restart`.
const RestartedAtAnnotation = "kubectl.kubernetes.io/restartedAt"

// FieldManager is the name under which KICK writes to workloads. It must not begin with "kubectl", because Flux
// removes fields of such managers when it applies.
const FieldManager = "kick"
