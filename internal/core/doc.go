// Package core is the parent of KICK's formal core: pure functions over plain values. Nothing below it reads a
// clock, talks to a server or keeps state; time is always an argument.
//
// The packages build on each other in this order, and each holds one part of the model:
//
//	deps         what a Pod template consumes                       deps(w), cons(s)
//	fingerprint  the keyed digest of a source's content             φ(s)
//	observation  what one sight of a source means, and its date     Ω, obs, β, θ
//	policy       which workloads and sources the policies cover     D(w), managed
//	schedule     time windows                                       open(t)
//	rollout      how far a workload's rollout is                    complete(w), bounds on σ(w)
//	freshness    whether running Pods provably carry a change       Λ(w), σ(w), stale(w)
//	gitops       what Argo CD and Flux say about a workload         own(w), synced
//	gate         may a restart run now                              G(w, t)
//	request      the state machine of a KickRequest                 Φ, δ, ensure, μ
//
// docs/model.md explains the model and maps every symbol to its package and test.
package core
