// Package v1alpha1 holds the kick.dev/v1alpha1 API: KickPolicy says which workloads KICK restarts and for
// which sources, KickRequest is one workload's restart from first sight to its end, KickLedger is what KICK
// remembers of the sources it has seen, KickNotification sends messages about restarts.
//
// The package depends on apimachinery alone, so that clients may import it without a controller library.
//
// +kubebuilder:object:generate=true
// +groupName=kick.dev
package v1alpha1
