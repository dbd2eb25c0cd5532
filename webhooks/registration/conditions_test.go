package registration_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/cel-go/cel"

	"github.com/kick-dev/kick/webhooks/registration"
)

const kick = "system:serviceaccount:kick-system:kick"

// called tells whether the API server would call a webhook: it would if all conditions hold. Objects are JSON, empty for
// none.
func called(t *testing.T, webhook, user, operation, old, updated string) bool {
	t.Helper()
	env, err := cel.NewEnv(cel.OptionalTypes(), cel.Variable("object", cel.DynType), cel.Variable("oldObject", cel.DynType),
		cel.Variable("request", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	conditions := registration.MatchConditions(webhook, kick)
	if len(conditions) == 0 {
		t.Fatalf("%s is always called", webhook)
	}
	for _, condition := range conditions {
		ast, issues := env.Compile(condition.Expression)
		if issues.Err() != nil {
			t.Fatalf("%s: %v", condition.Name, issues.Err())
		}
		program, err := env.Program(ast)
		if err != nil {
			t.Fatal(err)
		}
		holds, _, err := program.Eval(map[string]any{
			"object": object(t, updated), "oldObject": object(t, old),
			"request": map[string]any{"operation": operation, "userInfo": map[string]any{"username": user}},
		})
		if err != nil {
			t.Fatalf("%s: %v", condition.Name, err)
		}
		if holds.Value() == false {
			return false
		}
	}
	return true
}

func object(t *testing.T, text string) any {
	t.Helper()
	if text == "" {
		return nil
	}
	var decoded map[string]any
	if err := json.Unmarshal([]byte(text), &decoded); err != nil {
		t.Fatal(err)
	}
	return decoded
}

// annotated is a workload whose template carries the annotations; replicas make it differ.
func annotated(replicas, annotations string) string {
	return `{"spec": {"replicas": ` + replicas + `, "template": {"metadata": {"annotations": ` + annotations + `}}}}`
}

func TestTheGuardIsCalledOnlyWhenARestartIsWritten(t *testing.T) {
	const bare = `{"spec": {"replicas": 1, "template": {}}}`
	var (
		none  = annotated("1", `{}`)
		one   = annotated("1", `{"kubectl.kubernetes.io/restartedAt": "1"}`)
		two   = annotated("1", `{"kubectl.kubernetes.io/restartedAt": "2"}`)
		empty = annotated("1", `{"kubectl.kubernetes.io/restartedAt": ""}`)
	)
	for name, tc := range map[string]struct {
		user, old, updated string
		want               bool
	}{
		"a first value":                     {"alice", none, one, true},
		"another value":                     {"alice", one, two, true},
		"a first value where nothing was":   {"alice", bare, one, true},
		"an empty value":                    {"alice", none, empty, true},
		"a value made empty":                {"alice", one, empty, true},
		"a value again":                     {"alice", empty, one, true},
		"the same value":                    {"alice", one, one, false},
		"the value removed":                 {"alice", one, none, false},
		"all annotations removed":           {"alice", one, bare, false},
		"another annotation":                {"alice", none, annotated("1", `{"a": "b"}`), false},
		"another annotation beside a value": {"alice", one, annotated("1", `{"a": "b", "kubectl.kubernetes.io/restartedAt": "1"}`), false},
		"no template annotation at all":     {"alice", bare, bare, false},
		"replicas":                          {"alice", none, annotated("2", `{}`), false},
		"replicas beside a value":           {"alice", one, annotated("2", `{"kubectl.kubernetes.io/restartedAt": "1"}`), false},
		"no spec":                           {"alice", `{}`, `{}`, false},
		"KICK's stamp":                      {kick, one, two, false},
		"a namesake of KICK elsewhere":      {"system:serviceaccount:other:kick", one, two, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := called(t, registration.Guard, tc.user, "UPDATE", tc.old, tc.updated); got != tc.want {
				t.Errorf("called: %v, want %v", got, tc.want)
			}
		})
	}
}

// Whatever happens to metadata (labels, finalizers, owners) must not depend on KICK.
func TestTheValidatorsAreCalledOnlyWhenASpecIsWritten(t *testing.T) {
	const (
		first    = `{"metadata": {}, "spec": {"suspend": true}}`
		second   = `{"metadata": {}, "spec": {"suspend": false}}`
		labelled = `{"metadata": {"labels": {"a": "b"}}, "spec": {"suspend": true}}`
	)
	for name, tc := range map[string]struct {
		webhook, user, operation, old, updated string
		want                                   bool
	}{
		"a policy created":          {registration.KickPolicy, "alice", "CREATE", "", first, true},
		"a policy changed":          {registration.KickPolicy, "alice", "UPDATE", first, second, true},
		"a policy labelled":         {registration.KickPolicy, "alice", "UPDATE", first, labelled, false},
		"a request created":         {registration.KickRequest, "alice", "CREATE", "", first, true},
		"a request created by KICK": {registration.KickRequest, kick, "CREATE", "", first, false},
		"a request changed":         {registration.KickRequest, "alice", "UPDATE", first, second, true},
		"a request labelled":        {registration.KickRequest, "alice", "UPDATE", first, labelled, false},
		"a policy created by KICK":  {registration.KickPolicy, kick, "CREATE", "", first, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := called(t, tc.webhook, tc.user, tc.operation, tc.old, tc.updated); got != tc.want {
				t.Errorf("called: %v, want %v", got, tc.want)
			}
		})
	}
}

func TestTheGuardKeepsOutOfTheNamespacesThatBringKICKBack(t *testing.T) {
	selector := registration.NamespaceSelector(registration.Guard, "kick-system")
	if selector == nil || len(selector.MatchExpressions) != 1 {
		t.Fatalf("selector %v", selector)
	}
	for _, namespace := range []string{"kube-system", "kube-node-lease", "kick-system"} {
		if !slices.Contains(selector.MatchExpressions[0].Values, namespace) {
			t.Errorf("the guard is called in %s", namespace)
		}
	}
	if selector := registration.NamespaceSelector(registration.KickPolicy, "kick-system"); selector != nil {
		t.Errorf("policies are checked in some namespaces only: %v", selector)
	}
}
