package controllers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/source"
	"github.com/kick-dev/kick/internal/cluster/workload"
	"github.com/kick-dev/kick/internal/core/deps"
	"github.com/kick-dev/kick/internal/core/policy"
)

// survey is what a policy covers.
type survey struct {
	workloads, sources int32
	// shared are the other policies that select some of its workloads, with the number of those.
	shared map[string]int
}

func (r *kickPolicyReconciler) survey(ctx context.Context, namespace string, parsed policy.Policy) (survey, error) {
	found := survey{shared: map[string]int{}}
	policies, err := r.scopes.Policies(ctx, namespace)
	if err != nil || namespace == r.scopes.Reserved {
		return found, err
	}
	list, err := r.workloads.InNamespace(ctx, namespace)
	if err != nil {
		return found, err
	}
	admitted := map[deps.Source]bool{}
	for _, w := range list {
		if !parsed.SelectsWorkload(w.Labels()) {
			continue
		}
		found.workloads++
		for _, other := range policies {
			if other.Name != parsed.Name && other.SelectsWorkload(w.Labels()) {
				found.shared[other.Name]++
			}
		}
		if err := r.admit(ctx, w, parsed, admitted); err != nil {
			return found, err
		}
	}
	found.sources = int32(len(admitted)) //nolint:gosec // a count of objects in one namespace
	return found, nil
}

// admit adds the existing sources of a workload that count for the policy.
func (r *kickPolicyReconciler) admit(
	ctx context.Context, w *workload.Workload, parsed policy.Policy, admitted map[deps.Source]bool,
) error {
	for _, reference := range w.References() {
		metadata, err := r.sources.Metadata(ctx, source.Key{Namespace: w.Key.Namespace, Source: reference.Source})
		if err != nil {
			return err
		}
		if metadata != nil && parsed.AdmitsSource(labels.Set(metadata.Labels)) {
			admitted[reference.Source] = true
		}
	}
	return nil
}

// maxShared is how many other policies a message names.
const maxShared = 8

// setExclusive says which other policies select workloads of this one. It is an observation and no fault.
func (r *kickPolicyReconciler) setExclusive(status *v1alpha1.KickPolicyStatus, present *v1alpha1.KickPolicy, shared map[string]int) {
	condition := metav1.Condition{
		Type: v1alpha1.ConditionScopeExclusive, Status: metav1.ConditionTrue,
		Reason: v1alpha1.ReasonNoOverlap, Message: "no other policy selects a workload of this one",
	}
	if len(shared) > 0 {
		condition.Status, condition.Reason = metav1.ConditionFalse, v1alpha1.ReasonSharedWorkloads
		var others []string
		for _, name := range slices.Sorted(maps.Keys(shared)) {
			if len(others) == maxShared {
				others = append(others, fmt.Sprintf("%d more policies", len(shared)-maxShared))
				break
			}
			others = append(others, fmt.Sprintf("%s (%d)", name, shared[name]))
		}
		condition.Message = "other policies, all of which have to permit a restart, select workloads of this one too: " +
			strings.Join(others, ", ")
	}
	r.set(status, present, condition)
}
