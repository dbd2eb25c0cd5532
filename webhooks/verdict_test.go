package webhooks

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kick-dev/kick/api/v1alpha1"
)

func enforcing(name string) guarding { return guarding{policy: name, mode: v1alpha1.GuardEnforce} }

func with(guard guarding, edit func(*guarding)) guarding {
	edit(&guard)
	return guard
}

func mode(mode v1alpha1.GuardMode) func(*guarding) { return func(g *guarding) { g.mode = mode } }

func suspended(g *guarding) { g.suspended = true }

func dry(g *guarding) { g.dryRun = true }

// foreign is a foreign restart of a managed workload; each row changes one thing about it.
func foreign(edit func(*write)) write {
	w := write{
		old: new("1"), updated: new("2"), guards: []guarding{enforcing("web")},
		history: []string{"0", "1"}, historyRead: true,
	}
	edit(&w)
	return w
}

func TestAMoment(t *testing.T) {
	now := time.Date(2026, 8, 6, 12, 0, 0, 900e6, time.UTC)
	for value, want := range map[string]bool{
		"2026-08-06T12:00:00Z":           true, // kubectl's
		"2026-08-06T14:00:00+02:00":      true,
		"2026-08-06T12:00:02Z":           true,  // a clock that is ahead
		"2026-08-06T12:00:00.123456789Z": false, // KICK's
		"2026-08-06T11:59:59Z":           true,
		"2026-08-06T11:59:58Z":           false,
		"2026-08-06T12:00:03Z":           false,
		"2026-08-06T14:00:00Z":           false,
		"now":                            false,
		"":                               false,
	} {
		if got := momentary(&value, now); got != want {
			t.Errorf("%q is of this moment: %v, want %v", value, got, want)
		}
	}
	if momentary(nil, now) {
		t.Error("no value is of this moment")
	}
}

func TestTheGuardRefusesForeignRestartsAndNothingElse(t *testing.T) {
	guards := func(guards ...guarding) func(*write) { return func(w *write) { w.guards = guards } }
	for name, tc := range map[string]struct {
		edit   func(*write)
		effect effect
		rule   rule
		policy string
	}{
		"a foreign restart":                         {func(*write) {}, deny, ruleForeignRestart, "web"},
		"a first value":                             {func(w *write) { w.old = nil }, deny, ruleForeignRestart, "web"},
		"a value from an empty one":                 {func(w *write) { w.old = new("") }, deny, ruleForeignRestart, "web"},
		"an empty value":                            {func(w *write) { w.updated = new("") }, deny, ruleForeignRestart, "web"},
		"a value from the year 2100":                {func(w *write) { w.updated = new("2100-01-01T00:00:00Z") }, deny, ruleForeignRestart, "web"},
		"no time at all":                            {func(w *write) { w.updated = new("garbage\x00") }, deny, ruleForeignRestart, "web"},
		"the same value":                            {func(w *write) { w.updated = new("1") }, allow, ruleUnchanged, ""},
		"no value before and after":                 {func(w *write) { w.old, w.updated = nil, nil }, allow, ruleUnchanged, ""},
		"the value removed":                         {func(w *write) { w.updated = nil }, allow, ruleRemoved, ""},
		"an earlier value (C088)":                   {func(w *write) { w.updated = new("0") }, allow, ruleKnownRevision, "web"},
		"history not read yet":                      {func(w *write) { w.historyRead = false }, readHistory, "", ""},
		"a value of this moment":                    {func(w *write) { w.historyRead, w.momentary = false, true }, deny, ruleForeignRestart, "web"},
		"no history":                                {func(w *write) { w.history = nil }, deny, ruleForeignRestart, "web"},
		"KICK":                                      {func(w *write) { w.own = true }, allow, ruleOwnAccount, ""},
		"an exempt writer":                          {func(w *write) { w.exempt = true }, allow, ruleExempt, ""},
		"no policy":                                 {guards(), allow, ruleNotGuarded, ""},
		"no policy and no history read":             {func(w *write) { w.guards, w.historyRead = nil, false }, allow, ruleNotGuarded, ""},
		"a guard that is off":                       {guards(with(enforcing("web"), mode(v1alpha1.GuardOff))), allow, ruleNotGuarded, "web"},
		"a guard that warns":                        {guards(with(enforcing("web"), mode(v1alpha1.GuardWarn))), warn, ruleForeignRestart, "web"},
		"a guard without a mode":                    {guards(with(enforcing("web"), mode(""))), deny, ruleForeignRestart, "web"},
		"a guard of a mode yet to be":               {guards(with(enforcing("web"), mode("Maybe"))), deny, ruleForeignRestart, "web"},
		"a warning beside a refusal":                {guards(with(enforcing("a"), mode(v1alpha1.GuardWarn)), enforcing("b")), deny, ruleForeignRestart, "b"},
		"a warning beside a guard that is off":      {guards(with(enforcing("a"), mode(v1alpha1.GuardOff)), with(enforcing("b"), mode(v1alpha1.GuardWarn))), warn, ruleForeignRestart, "b"},
		"two refusals":                              {guards(enforcing("b"), enforcing("a")), deny, ruleForeignRestart, "a"},
		"a suspended policy":                        {guards(with(enforcing("web"), suspended)), deny, ruleForeignRestart, "web"},
		"a suspended policy beside one that is off": {guards(with(enforcing("a"), suspended), with(enforcing("b"), mode(v1alpha1.GuardOff))), allow, ruleNotGuarded, "b"},
		"a dry policy":                              {guards(with(enforcing("web"), dry)), warn, ruleForeignRestart, "web"},
		"a dry policy that is off":                  {guards(with(with(enforcing("web"), dry), mode(v1alpha1.GuardOff))), allow, ruleNotGuarded, "web"},
		"a dry policy beside one in force":          {guards(with(enforcing("a"), dry), enforcing("b")), deny, ruleForeignRestart, "b"},
		"a dry policy beside a suspended one":       {guards(with(enforcing("a"), suspended), with(enforcing("b"), dry)), warn, ruleForeignRestart, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			got := judge(foreign(tc.edit))
			if got.effect != tc.effect || got.rule != tc.rule || got.policy != tc.policy {
				t.Errorf("effect %d by %q of policy %q, want %d by %q of %q", got.effect, got.rule, got.policy, tc.effect, tc.rule, tc.policy)
			}
		})
	}
}

func TestAPolicyGuardsWhatItSelectsBeforeOrAfterTheWrite(t *testing.T) {
	web := labels.Set{"app": "web"}
	policies := []v1alpha1.KickPolicy{
		*selecting("web", metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}),
		*selecting("db", metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}),
		*selecting("broken", metav1.LabelSelector{MatchLabels: map[string]string{"app": "w e b"}}),
	}
	for name, tc := range map[string]struct {
		old, updated labels.Set
		want         string
	}{
		"selected before and after": {web, web, "web"},
		"the label taken away":      {web, nil, "web"},
		"the label added":           {nil, web, "web"},
		"moved between policies":    {web, labels.Set{"app": "db"}, "web db"},
		"never selected":            {nil, labels.Set{"app": "x"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			for i, guard := range guardsOf(policies, tc.old, tc.updated) {
				if i > 0 {
					got += " "
				}
				got += guard.policy
			}
			if got != tc.want {
				t.Errorf("guarded by %q, want %q", got, tc.want)
			}
		})
	}
}

func selecting(name string, selector metav1.LabelSelector) *v1alpha1.KickPolicy {
	policy := policyOf(selector)
	policy.Name = name
	return policy
}
