// Package properties has no code of its own. Its tests drive the whole core against a small model of a cluster: an API
// server, the workload controllers and the kubelets. The model knows what every running container has really read,
// which KICK cannot know, so the promises I1 to I8 are checked against the truth and not against the core's own evidence.
//
//	agenda      what is going to happen, in the order of time
//	cluster     the API server: sources, policies, requests, the ledger, watches
//	workload    Deployments, StatefulSets, DaemonSets, and the controllers that roll them out
//	kubelet     Pods, and what their containers read
//	shape       Pod templates, made from a list of what their containers read
//	manager     KICK around the core: it gathers, stores and acts, and may die at every write
//	judge       the invariants, checked at each write of the manager
//	machine     random histories
//
// `make soak-model` runs many more of them; -rapid.checks and -rapid.steps set how many and how long.
package properties
