package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
)

// right is one verb on one resource, in the ClusterRole or in the Role of the manager.
type right struct {
	role                  string
	group, resource, verb string
}

func (r right) String() string { return fmt.Sprintf("%s %s %s", r.role, r.verb, r.resource) }

// rules returns the role and its rules.
func (r right) rules(ctx context.Context) (client.Object, *[]rbacv1.PolicyRule, error) {
	if r.role == "Role" {
		role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: ownNamespace, Name: roleName}}
		return role, &role.Rules, k8s.Get(ctx, client.ObjectKeyFromObject(role), role)
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: roleName}}
	return role, &role.Rules, k8s.Get(ctx, client.ObjectKeyFromObject(role), role)
}

// rights are all that the manager has.
func rights(t *testing.T) []right {
	t.Helper()
	var all []right
	for _, role := range []string{"ClusterRole", "Role"} {
		_, rules, err := right{role: role}.rules(t.Context())
		must(t, err)
		for _, rule := range *rules {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					all = append(all, right{role, rule.APIGroups[0], resource, verb})
				}
			}
		}
	}
	return all
}

// without are the rules but for the right.
func (r right) without(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var rest []rbacv1.PolicyRule
	for _, rule := range rules {
		for _, resource := range rule.Resources {
			left := rule
			left.Resources = []string{resource}
			left.Verbs = slices.DeleteFunc(slices.Clone(rule.Verbs), func(verb string) bool {
				return rule.APIGroups[0] == r.group && resource == r.resource && verb == r.verb
			})
			if len(left.Verbs) > 0 {
				rest = append(rest, left)
			}
		}
	}
	return rest
}

// take removes a right and returns what gives it back.
func (r right) take(t *testing.T) (giveBack func()) {
	t.Helper()
	role, rules, err := r.rules(t.Context())
	must(t, err)
	whole := slices.Clone(*rules)
	*rules = r.without(whole)
	must(t, k8s.Update(t.Context(), role))
	return func() {
		err := poll(context.WithoutCancel(t.Context()), patience, func() error {
			role, rules, err := r.rules(context.WithoutCancel(t.Context()))
			if err != nil {
				return err
			}
			*rules = whole
			return k8s.Update(context.WithoutCancel(t.Context()), role)
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// named tells whether the log, or the condition of a request, names the resource of a missing right.
func (r right) named(ctx context.Context, log, namespace, workload string) bool {
	resource, _, _ := strings.Cut(r.resource, "/")
	for line := range strings.Lines(log) {
		if strings.Contains(line, "forbidden") && strings.Contains(line, resource) {
			return true
		}
	}
	found, err := requestOf(ctx, namespace, workload)
	if err != nil {
		return false
	}
	ready := meta.FindStatusCondition(found.Status.Conditions, v1alpha1.ConditionReady)
	return ready != nil && strings.Contains(ready.Message, resource)
}

// Without a right KICK either works, or says what it lacks; and when it has the right again it does what it owes.
func TestARightIsMissing(t *testing.T) {
	m := alone(t)
	f := newFleet(t, 1)
	for i, missing := range rights(t) {
		if !full() && i%4 != 0 {
			continue
		}
		t.Run(missing.String(), func(t *testing.T) {
			giveBack := missing.take(t)
			m.Kill()
			f.change(t, "w0")
			since := m.LogSize()
			must(t, m.Start())
			eventually(t, func() error {
				if missing.named(t.Context(), m.Logged(since), f.namespace, "w0") {
					return nil
				}
				generation, err := generationOf(t.Context(), f.namespace, "w0")
				if err == nil && generation == 1+f.stamps["w0"] {
					return settled(t.Context(), f.namespace, "w0", "w0", v1alpha1.PhaseSucceeded)
				}
				return errors.Join(err, errors.New("the manager neither acts nor tells"))
			})
			giveBack()
			eventually(t, func() error { // as a kubelet does
				if err := m.Start(); err != nil {
					return err
				}
				return settled(t.Context(), f.namespace, "w0", "w0", v1alpha1.PhaseSucceeded)
			})
			f.check(t)
		})
	}
}
