package faults

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/test/testbed"
)

// right is one verb on one resource in one rule of a role.
type right struct {
	role client.Object // *rbacv1.ClusterRole or *rbacv1.Role
	// user is who has the role.
	user                  string
	rule                  int
	names                 []string
	group, resource, verb string
}

// String names the right, and the kind of the role it is in.
func (r right) String() string {
	kind := "Role"
	if _, ok := r.role.(*rbacv1.ClusterRole); ok {
		kind = "ClusterRole"
	}
	return strings.TrimSuffix(fmt.Sprintf("%s %s %s.%s", kind, r.verb, r.resource, r.group), ".")
}

// rulesOf are the rules of a role.
func rulesOf(role client.Object) *[]rbacv1.PolicyRule {
	if role, ok := role.(*rbacv1.ClusterRole); ok {
		return &role.Rules
	}
	return &role.(*rbacv1.Role).Rules
}

// rightsIn are all that a role gives, as the API server has it.
func rightsIn(t *testing.T, user string, role client.Object) []right {
	t.Helper()
	must(t, k8s.Get(t.Context(), client.ObjectKeyFromObject(role), role))
	var all []right
	for i, rule := range *rulesOf(role) {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					all = append(all, right{role, user, i, rule.ResourceNames, group, resource, verb})
				}
			}
		}
	}
	return all
}

// sampled tells whether the i-th right belongs to what the ordinary run takes away.
func sampled(i, stride int) bool { return full() || i%stride == 0 }

// without are the rules but for the right.
func (r right) without(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var rest []rbacv1.PolicyRule
	for i, rule := range rules {
		if i != r.rule {
			rest = append(rest, rule)
			continue
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				left := rule
				left.APIGroups, left.Resources = []string{group}, []string{resource}
				left.Verbs = slices.DeleteFunc(slices.Clone(rule.Verbs), func(verb string) bool {
					return group == r.group && resource == r.resource && verb == r.verb
				})
				if len(left.Verbs) > 0 {
					rest = append(rest, left)
				}
			}
		}
	}
	return rest
}

// take removes a right and returns, once the API server knows, what gives it back.
func (r right) take(t *testing.T) (giveBack func()) {
	t.Helper()
	var whole []rbacv1.PolicyRule
	write := func(change func(*[]rbacv1.PolicyRule), allowed bool) error {
		ctx := context.WithoutCancel(t.Context())
		return errors.Join(poll(ctx, patience, func() error {
			if err := k8s.Get(ctx, client.ObjectKeyFromObject(r.role), r.role); err != nil {
				return err
			}
			change(rulesOf(r.role))
			return k8s.Update(ctx, r.role)
		}), poll(ctx, patience, func() error { return r.is(ctx, allowed) }))
	}
	must(t, write(func(rules *[]rbacv1.PolicyRule) { whole, *rules = *rules, r.without(*rules) }, false))
	given := false
	giveBack = func() {
		if given {
			return
		}
		given = true
		if err := write(func(rules *[]rbacv1.PolicyRule) { *rules = whole }, true); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(giveBack)
	return giveBack
}

// is tells why the API server does not yet allow, or refuse, what the right is about.
func (r right) is(ctx context.Context, allowed bool) error {
	resource, subresource, _ := strings.Cut(r.resource, "/")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: r.user,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: r.role.GetNamespace(), Verb: r.verb, Group: r.group, Resource: resource, Subresource: subresource,
		},
	}}
	if len(r.names) > 0 {
		review.Spec.ResourceAttributes.Name = r.names[0]
	}
	if err := k8s.Create(ctx, review); err != nil {
		return err
	}
	if review.Status.Allowed != allowed {
		return fmt.Errorf("%s: the API server still says %t", r, !allowed)
	}
	return nil
}

// namedIn tells whether a text says that just this right is missing.
func (r right) namedIn(text string) bool {
	said := regexp.MustCompile(fmt.Sprintf(`cannot %s resource \\*"%s\\*" in API group \\*"%s\\*"`,
		regexp.QuoteMeta(r.verb), regexp.QuoteMeta(r.resource), regexp.QuoteMeta(r.group)))
	return said.MatchString(text)
}

// named tells whether the log, or a condition of a request, names the missing right.
func (r right) named(ctx context.Context, log string, fleets []*fleet) bool {
	if r.namedIn(log) {
		return true
	}
	for _, f := range fleets {
		for _, name := range f.names {
			found, err := f.of[name].request(ctx)
			if err != nil {
				continue
			}
			for _, condition := range found.Status.Conditions {
				if r.namedIn(condition.Message) {
					return true
				}
			}
		}
	}
	return false
}

// refused counts how often the API server has refused what the right is about.
func (r right) refused(since testbed.AuditMark) (int, error) {
	resource, subresource, _ := strings.Cut(r.resource, "/")
	return bed.Audit().Count(testbed.AuditFilter{User: r.user, From: since, Verb: r.verb, Resource: resource, Match: func(e testbed.AuditEvent) bool {
		return e.Code == http.StatusForbidden && e.Group == r.group && e.Subresource == subresource &&
			(r.role.GetNamespace() == "" || e.Namespace == r.role.GetNamespace())
	}})
}

// told waits until KICK either has done what is to be done, or has been refused and says so, and fails if a refusal is
// told nowhere. It returns whether there was one.
func (r right) told(t *testing.T, m *Manager, since testbed.AuditMark, log int64, fleets ...*fleet) bool {
	t.Helper()
	eventually(t, func() error {
		_ = m.Start() // as a kubelet does
		if r.named(t.Context(), m.Logged(log), fleets) {
			return nil
		}
		if err := acted(t.Context(), fleets); err != nil {
			return fmt.Errorf("the manager neither acts nor tells: %w", err)
		}
		return nil
	})
	refusals, err := r.refused(since)
	must(t, err)
	if refusals > 0 {
		eventually(t, func() error {
			if !r.named(t.Context(), m.Logged(log), fleets) {
				return fmt.Errorf("%d refusals are told nowhere", refusals)
			}
			return nil
		})
	}
	return refusals > 0
}

// acted tells which change in some fleets has not been acted on, if there is one.
func acted(ctx context.Context, fleets []*fleet) error {
	for _, f := range fleets {
		if err := f.acted(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Without a right KICK either works, or says what it lacks; and when it has the right again it does what it owes.
func TestARightIsMissing(t *testing.T) {
	installGitOps(t)
	m := newReplica(t, "manager")
	fleets := []*fleet{newMixedFleet(t, newNamespace(t)), newArgoCDFleet(t), newFluxFleet(t)}
	all := append(
		rightsIn(t, kickUser, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: roleName}}),
		rightsIn(t, kickUser, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: ownNamespace, Name: roleName}})...)
	var needless []string
	for i, missing := range all {
		if !sampled(i, 6) {
			continue
		}
		t.Run(missing.String(), func(t *testing.T) {
			m.Stop()
			giveBack := missing.take(t)
			for _, f := range fleets {
				f.change(t, f.names...)
			}
			since, log := bed.Audit().Mark(), m.LogSize()
			must(t, m.Start())
			if !missing.told(t, m, since, log, fleets...) {
				needless = append(needless, missing.String())
			}
			giveBack()
			eventually(t, func() error {
				_ = m.Start() // as a kubelet does
				return acted(t.Context(), fleets)
			})
			for _, f := range fleets {
				f.check(t)
			}
		})
	}
	t.Logf("took rights of %d away; nothing asked for these meanwhile: %s", len(all), strings.Join(needless, ", "))
}

// narrow is an account that has the manager's rights in some namespaces only, as with the chart's watchNamespaces.
const narrow = "kick-narrow"

// narrowly gives the account rights in a namespace: those of the ClusterRole.
func narrowly(t *testing.T, namespace string) *rbacv1.Role {
	t.Helper()
	wide := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: roleName}}
	must(t, k8s.Get(t.Context(), client.ObjectKeyFromObject(wide), wide))
	meta := metav1.ObjectMeta{Namespace: namespace, Name: narrow}
	role := &rbacv1.Role{ObjectMeta: meta, Rules: wide.Rules}
	must(t, create(t.Context(), role, binding(meta, narrow)))
	return role
}

// binding lets the account have a Role.
func binding(meta metav1.ObjectMeta, role string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ownNamespace, Name: narrow}},
	}
}

// A right that is taken away in one namespace, while KICK works, is told; the other namespaces go on; and when it comes
// back everything is done that was owed, without a restart of KICK.
func TestARightIsTakenAwayInOneNamespace(t *testing.T) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ownNamespace, Name: narrow}}
	must(t, create(t.Context(), account, binding(metav1.ObjectMeta{Namespace: ownNamespace, Name: "kick-narrow-own"}, roleName)))
	narrowly(t, ownNamespace)
	lacking, others := newNamespace(t), newNamespace(t)
	role := narrowly(t, lacking)
	narrowly(t, others)
	credentials, err := tokenOf(t.Context(), account)
	must(t, err)
	m := newReplicaAs(t, credentials, "manager", "--leader-elect=false", "--metrics-auth=false", "--watch-namespaces="+lacking+","+others)
	f, g := newMixedFleet(t, lacking), newMixedFleet(t, others)
	var needless []string
	all := rightsIn(t, "system:serviceaccount:"+ownNamespace+":"+narrow, role)
	for i, missing := range all {
		if !sampled(i, 6) {
			continue
		}
		t.Run(missing.String(), func(t *testing.T) {
			giveBack := missing.take(t)
			since, log := bed.Audit().Mark(), m.LogSize()
			m.Proxy.CutWatches()
			f.change(t, f.names...)
			g.change(t, g.names...)
			g.check(t)
			if !missing.told(t, m, since, log, f) {
				needless = append(needless, missing.String())
			}
			giveBack()
			f.check(t)
			g.check(t)
			if strings.Count(m.Logged(0), `"msg":"starting"`) != 1 {
				t.Error("the manager gave up")
			}
		})
	}
	t.Logf("took rights of %d away; nothing asked for these meanwhile: %s", len(all), strings.Join(needless, ", "))
}
