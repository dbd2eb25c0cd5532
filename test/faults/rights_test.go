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
	"time"

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
	return less(rules, func(rule int, group, resource, verb string) bool {
		return rule == r.rule && group == r.group && resource == r.resource && verb == r.verb
	})
}

// less are some rules but for what is dropped from them.
func less(rules []rbacv1.PolicyRule, drop func(rule int, group, resource, verb string) bool) []rbacv1.PolicyRule {
	var rest []rbacv1.PolicyRule
	for i, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				left := rule
				left.APIGroups, left.Resources = []string{group}, []string{resource}
				left.Verbs = slices.DeleteFunc(slices.Clone(rule.Verbs), func(verb string) bool { return drop(i, group, resource, verb) })
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

// tried is a manager and the workloads by which it is seen whether it does what it owes.
type tried struct {
	m      *Manager
	fleets []*fleet
}

// newTried starts a manager and has it settle on workloads of every kind and of every owner.
func newTried(t *testing.T, m *Manager) *tried {
	t.Helper()
	must(t, m.Start())
	return &tried{m: m, fleets: []*fleet{newMixedFleet(t, newNamespace(t)), newArgoCDFleet(t), newFluxFleet(t)}}
}

// change gives every source a new value.
func (w *tried) change(t *testing.T) {
	t.Helper()
	for _, f := range w.fleets {
		f.change(t, f.names...)
	}
}

// check waits until everything is done that is owed, once, by whatever process.
func (w *tried) check(t *testing.T) {
	t.Helper()
	eventually(t, func() error {
		_ = w.m.Start() // as a kubelet does
		return acted(t.Context(), w.fleets)
	})
	for _, f := range w.fleets {
		f.check(t)
	}
}

// Without a right KICK either works, or says what it lacks; and when it has the right again it does what it owes.
func TestARightIsMissing(t *testing.T) {
	installGitOps(t)
	m := newReplica(t, "manager")
	w := newTried(t, m)
	all := append(
		rightsIn(t, kickUser, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: roleName}}),
		rightsIn(t, kickUser, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: ownNamespace, Name: roleName}})...)
	var needless []string
	for i, missing := range all {
		if !sampled(i, 6) {
			continue
		}
		passed := t.Run(missing.String(), func(t *testing.T) {
			m.Stop()
			giveBack := missing.take(t)
			w.change(t)
			since, log := bed.Audit().Mark(), m.LogSize()
			must(t, m.Start())
			if !missing.told(t, m, since, log, w.fleets...) {
				needless = append(needless, missing.String())
			}
			giveBack()
			w.check(t)
		})
		if !passed { // What is left of it is not to disturb the others.
			m.Kill()
			w = newTried(t, m)
		}
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

// narrowed is a manager that works in some namespaces only, in each of which it can be made to lack something, but for one.
type narrowed struct {
	m *Manager
	// roles are those by which the manager has its rights where a fleet is lacking them.
	roles   []*rbacv1.Role
	lacking []*fleet
	others  *fleet
}

// together is in how many namespaces something is lacking at the same time.
const together = 4

// newNarrowed starts such a manager and has it settle on the workloads there.
func newNarrowed(t *testing.T, credentials, name string) *narrowed {
	t.Helper()
	w := &narrowed{}
	var watched []string
	for range together + 1 {
		namespace := newNamespace(t)
		w.roles = append(w.roles, narrowly(t, namespace))
		watched = append(watched, namespace)
	}
	w.m = newReplicaAs(t, credentials, name, "--leader-elect=false", "--metrics-auth=false", "--watch-namespaces="+strings.Join(watched, ","))
	for _, namespace := range watched[:together] {
		w.lacking = append(w.lacking, newMixedFleet(t, namespace))
	}
	w.others = newMixedFleet(t, watched[together])
	return w
}

// A right that is taken away in one namespace, while KICK works, is told; the other namespaces go on; and when it comes
// back everything is done that was owed, without a restart of KICK. Several are taken at the same time, each in another
// namespace.
func TestARightIsTakenAwayInOneNamespace(t *testing.T) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ownNamespace, Name: narrow}}
	must(t, create(t.Context(), account, binding(metav1.ObjectMeta{Namespace: ownNamespace, Name: "kick-narrow-own"}, roleName)))
	narrowly(t, ownNamespace)
	credentials, err := tokenOf(t.Context(), account)
	must(t, err)
	w := newNarrowed(t, credentials, "manager")
	user := "system:serviceaccount:" + ownNamespace + ":" + narrow
	var todo []int
	count := len(rightsIn(t, user, w.roles[0]))
	for i := range count {
		if sampled(i, 6) {
			todo = append(todo, i)
		}
	}
	var needless []string
	for some := range slices.Chunk(todo, together) {
		var missing []right
		var names []string
		for i, one := range some {
			missing = append(missing, rightsIn(t, user, w.roles[i])[one])
			names = append(names, missing[i].String())
		}
		passed := t.Run(strings.Join(names, ", "), func(t *testing.T) {
			needless = append(needless, w.lack(t, missing)...)
		})
		if !passed { // What is left of it is not to disturb the others.
			w.m.Kill()
			w = newNarrowed(t, credentials, fmt.Sprint("manager-", some[0]))
		}
	}
	t.Logf("took rights of %d away; nothing asked for these meanwhile: %s", count, strings.Join(needless, ", "))
}

// lack takes a right away in each of some namespaces, and gives them back. It returns what nothing asked for meanwhile.
func (w *narrowed) lack(t *testing.T, missing []right) (needless []string) {
	t.Helper()
	var giveBack []func()
	for _, r := range missing {
		giveBack = append(giveBack, r.take(t))
	}
	since, log := bed.Audit().Mark(), w.m.LogSize()
	w.m.Proxy.CutWatches()
	lacking := w.lacking[:len(missing)]
	for _, f := range append(slices.Clone(lacking), w.others) {
		f.change(t, f.names...)
	}
	w.others.check(t)
	for i, r := range missing {
		if !r.told(t, w.m, since, log, lacking[i]) {
			needless = append(needless, r.String())
		}
	}
	for _, back := range giveBack {
		back()
	}
	for _, f := range append(slices.Clone(lacking), w.others) {
		f.check(t)
	}
	if strings.Count(w.m.Logged(0), starting) != 1 {
		t.Error("the manager gave up")
	}
	return needless
}

// starting is what the manager logs once in its life.
const starting = `"msg":"starting"`

// A manager that is started without the rights to read something does not give up: it says what it lacks, is not ready, and
// begins by itself when it has the rights.
func TestRightsAreMissingFromTheStart(t *testing.T) {
	m := newReplica(t, "manager")
	f := newMixedFleet(t, newNamespace(t))
	m.Stop()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: roleName}}
	whole := rightsIn(t, kickUser, role)
	rules := role.DeepCopy().Rules
	t.Cleanup(func() { withhold(t, role, rules, whole) })

	withhold(t, role, rules, whole, "deployments", "secrets", "kickpolicies")
	f.change(t, f.names...)
	log := m.LogSize()
	must(t, m.Start())
	lacks(t, m, log, whole, "deployments")
	// The others are asked for once the workloads are known.
	withhold(t, role, rules, whole, "secrets", "kickpolicies")
	lacks(t, m, log, whole, "secrets", "kickpolicies")
	began := time.Now()
	eventually(t, func() error { // Controllers usually end the process when they have not begun after two minutes.
		if left := lasting(5*time.Second, 130*time.Second) - time.Since(began); left > 0 {
			return fmt.Errorf("the rights are to be missing for another %s", left)
		}
		return nil
	})
	withhold(t, role, rules, whole)
	f.check(t)
	ready(t, m)
	if got := strings.Count(m.Logged(log), starting); got != 1 || !m.Running() {
		t.Errorf("the manager was started once, and %d processes of it say so", got)
	}
}

// withhold gives a role the rules it had, but for the rights to list and to watch some resources, and returns once the API
// server knows.
func withhold(t *testing.T, role *rbacv1.ClusterRole, rules []rbacv1.PolicyRule, whole []right, resources ...string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	reading := func(resource, verb string) bool {
		return slices.Contains(resources, resource) && (verb == "list" || verb == "watch")
	}
	must(t, poll(ctx, patience, func() error {
		if err := k8s.Get(ctx, client.ObjectKeyFromObject(role), role); err != nil {
			return err
		}
		role.Rules = less(rules, func(_ int, _, resource, verb string) bool { return reading(resource, verb) })
		return k8s.Update(ctx, role)
	}))
	for _, r := range whole {
		must(t, poll(ctx, patience, func() error { return r.is(ctx, !reading(r.resource, r.verb)) }))
	}
}

// lacks waits until the manager has said that it may not list some resources, and that it is not ready.
func lacks(t *testing.T, m *Manager, log int64, whole []right, resources ...string) {
	t.Helper()
	for _, r := range whole {
		if r.verb != "list" || !slices.Contains(resources, r.resource) {
			continue
		}
		eventually(t, func() error {
			if !r.namedIn(m.Logged(log)) {
				return fmt.Errorf("the log does not say that there is no right: %s", r)
			}
			return nil
		})
	}
	eventually(t, func() error {
		if m.Ready(t.Context()) == nil {
			return errors.New("the manager is ready and cannot read")
		}
		return nil
	})
}
