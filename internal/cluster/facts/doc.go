// Package facts gathers what a decision about a workload looks at: what the policies say, what is on record of its sources,
// its rollout, revision and Pods, its GitOps owner. It decides nothing. Controllers and the kubectl plugin share it, so that
// both decide on the same facts.
package facts
