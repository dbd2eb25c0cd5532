// Package testbed runs a real Kubernetes control plane on one machine, without
// root, containers or a network: etcd, API server, controller manager and
// scheduler are the real ones, KWOK plays the Nodes and most Pods, and the
// Pods of chosen images run as processes, with the rights, mounts, probes and
// restarts that a kubelet would give them. Admission webhooks are called
// through their Services, and cert-manager's controllers may run beside it.
//
// A testbed belongs to the process that starts it: nothing of it is left when
// that process ends, in whatever way. Several may run side by side.
package testbed
