package request_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/deps"
	"github.com/kick-dev/kick/internal/core/request"
	"github.com/kick-dev/kick/internal/core/rollout"
)

func TestStatusIsBounded(t *testing.T) {
	w := newWorld(t)
	for i := range 300 {
		name := strings.Repeat("n", 200) + string(rune('a'+i%26)) + strings.Repeat("x", i/26)
		w.facts.Changes[deps.Source{Kind: v1alpha1.Secret, Name: name}] = at(60 + float64(i)/1000)
		w.references = append(w.references, deps.Reference{
			Source: deps.Source{Kind: v1alpha1.Secret, Name: name}, Readers: []deps.Reader{{Container: "app"}},
		})
	}
	w.kick()
	if got := len(w.status.Causes); got != 16 || w.status.CausesOmitted != 285 {
		t.Errorf("%d causes, %d omitted, want 16 and 285", got, w.status.CausesOmitted)
	}
	if got := len(w.status.CurrentRollout.Covers); got != 256 {
		t.Errorf("%d covers, want 256", got)
	}
	w.pass(10)
	w.complete()
	w.decide()
	w.decide()
	w.expect("Executing/Stamping", "Succeeded/Succeeded", "Succeeded/Succeeded")
}

func TestMoreSourcesThanTheListHoldsAreCovered(t *testing.T) {
	w := newWorld(t)
	for i := range 400 {
		source := deps.Source{Kind: v1alpha1.ConfigMap, Name: fmt.Sprint("cfg-", i)}
		w.facts.Changes[source] = at(60)
		w.references = append(w.references, deps.Reference{Source: source, Readers: []deps.Reader{{Container: "app"}}})
	}
	w.facts.Evidence.Rollout.Partial = true
	w.kick()
	w.facts.Evidence.Rollout = rollout.State{Complete: true, Partial: true} // the Pod below the partition is still the old one
	w.decide()
	if open := request.Uncovered(&w.status, w.facts.Changes); len(open) > 0 {
		t.Errorf("%d changes are not covered", len(open))
	}
	before := w.status.CompletedAt
	w.pass(10)
	w.decide()
	if !w.status.CompletedAt.Equal(before) {
		t.Error("the request was opened and ended again")
	}
	w.expect("Executing/Stamping", "Succeeded/Succeeded", "Succeeded/Succeeded")
}

func TestConditionsAreAlwaysPresentAndOneOfTheTrioIsTrue(t *testing.T) {
	w := newWorld(t)
	check := func() {
		t.Helper()
		var truths []string
		for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled} {
			condition := meta.FindStatusCondition(w.status.Conditions, kind)
			if condition == nil {
				t.Fatalf("%s: no condition %s", w.status.Phase, kind)
			}
			if condition.Status == metav1.ConditionTrue {
				truths = append(truths, kind)
			}
		}
		if len(truths) != 1 || meta.FindStatusCondition(w.status.Conditions, v1alpha1.ConditionRestarted) == nil {
			t.Errorf("%s: true conditions %v", w.status.Phase, truths)
		}
	}
	w.manage(true)
	w.decide()
	check()
	w.manage(false)
	w.kick()
	check()
	w.complete()
	w.decide()
	check()
}
