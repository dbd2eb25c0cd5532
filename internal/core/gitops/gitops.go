// Package gitops judges what Argo CD and Flux say about a workload: who owns it, whether sync windows are open, whether
// the owner is in sync. It works on facts that were read elsewhere, and it picks no favourite: a label or an annotation is
// a claim, and only an object that targets this cluster and lists the workload in its own inventory is an owner.
package gitops

import (
	"time"

	"github.com/kick-dev/kick/api/v1alpha1"
)

// Workload is what a workload says about itself.
type Workload struct {
	Kind      v1alpha1.WorkloadKind
	Namespace string
	Name      string
	// Labels and Annotations of its own metadata.
	Labels      map[string]string
	Annotations map[string]string
}

// ID names a workload in the inventory of an owner.
type ID struct {
	Kind      v1alpha1.WorkloadKind
	Namespace string
	Name      string
}

// ID of the workload.
func (w Workload) ID() ID { return ID{Kind: w.Kind, Namespace: w.Namespace, Name: w.Name} }

// WorkloadsGroup is the API group of the workloads that KICK manages.
const WorkloadsGroup = "apps"

// IDOf returns the ID of an entry of an inventory, and false for an object that is no workload.
func IDOf(group, kind, namespace, name string) (ID, bool) {
	if group != WorkloadsGroup {
		return ID{}, false
	}
	switch v1alpha1.WorkloadKind(kind) {
	case v1alpha1.Deployment, v1alpha1.StatefulSet, v1alpha1.DaemonSet:
		return ID{Kind: v1alpha1.WorkloadKind(kind), Namespace: namespace, Name: name}, true
	default:
		return ID{}, false
	}
}

// Facts are what the tools of the cluster say about one workload. The zero value knows nothing and blocks whatever
// asks it.
type Facts struct {
	Workload Workload
	ArgoCD   ArgoCD
	Flux     Flux
}

// Presence tells whether the objects of a tool can be read.
type Presence int

// The presences. The zero value is Unreadable, so that facts nobody gathered permit nothing.
const (
	// Unreadable: the tool may be there, but its objects cannot be read.
	Unreadable Presence = iota
	// Absent: the API server does not serve the kinds of the tool, which therefore owns nothing.
	Absent
	// Readable: the objects are at hand.
	Readable
)

// Availability is the presence of a tool.
type Availability struct {
	Presence Presence
	// Message says why the objects are Unreadable.
	Message string
}

// Hold says why a restart has to wait for a tool.
type Hold struct {
	// Reason is one of the reasons of a KickRequest.
	Reason  string
	Message string
	// OpensAt is when sync windows open, zero if not known.
	OpensAt time.Time
	// RecheckAt is when to ask again if nothing happens before, zero for no need.
	RecheckAt time.Time
}

func hold(reason, message string) *Hold { return &Hold{Reason: reason, Message: message} }
