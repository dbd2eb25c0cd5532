package webhooks

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	"github.com/kick-dev/kick/api/v1alpha1"
)

var target = v1alpha1.TargetRef{APIVersion: "apps/v1", Kind: v1alpha1.Deployment, Name: "web", UID: "u-1"}

// The command is run by a shell, with a kubectl that only prints what it is given.
func TestTheCommandOfADenialAsksForTheRestart(t *testing.T) {
	for name, user := range map[string]string{
		"a plain name":          "alice",
		"a service account":     "system:serviceaccount:argocd:argocd-server",
		"quotes":                `o'neill "the admin"`,
		"a command":             `$(touch /tmp/x) ` + "`id`" + ` && $HOME`,
		"a format":              `100% %s %d \n \\`,
		"more than one line":    "a\nb",
		"what JSON would close": `"}}}'`,
	} {
		t.Run(name, func(t *testing.T) {
			command, err := askCommand("shop", target, user)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(command, "\n") {
				t.Errorf("the command has more than one line: %s", command)
			}
			output, err := exec.CommandContext(t.Context(), "sh", "-c", "kubectl() { echo \"$*\" >&2; cat; }\n"+command).Output()
			if err != nil {
				t.Fatalf("%v in %s", err, command)
			}
			var asked v1alpha1.KickRequest
			strict, err := kjson.UnmarshalStrict(output, &asked)
			if err != nil || len(strict) > 0 {
				t.Fatalf("%v %v in %s", err, strict, output)
			}
			checkAsked(t, asked, user)
		})
	}
}

func checkAsked(t *testing.T, asked v1alpha1.KickRequest, user string) {
	t.Helper()
	manual := asked.Spec.Manual
	if manual == nil || manual.RequestedBy != user || manual.Override {
		t.Errorf("asks %+v, want it by %q", manual, user)
	}
	if age := time.Since(manual.RequestedAt.Time).Abs(); age > time.Minute {
		t.Errorf("asks for %s ago", age)
	}
	if asked.Namespace != "shop" || asked.Name != "deployment-web" || asked.Spec.TargetRef != target {
		t.Errorf("asks for %s/%s, %+v", asked.Namespace, asked.Name, asked.Spec.TargetRef)
	}
	if faults := validateName(&asked); len(faults) > 0 {
		t.Error(faults)
	}
}

// What the command sends is what the validator takes, but for the time of the machine it is run on.
func TestTheCommandPassesTheValidator(t *testing.T) {
	at := time.Date(2026, 8, 6, 8, 20, 0, 0, time.UTC)
	encoded, err := json.Marshal(metav1.NewMicroTime(at))
	if err != nil || string(encoded) != `"2026-08-06T08:20:00.000000Z"` {
		t.Fatalf("%s, %v: the command writes the time in another form", encoded, err)
	}
	faults := validateManual(wished{
		asked: v1alpha1.ManualRestart{RequestedBy: "alice", RequestedAt: metav1.NewMicroTime(at)}, writer: "alice", now: at.Add(time.Second),
	})
	if len(faults) > 0 {
		t.Error(faults)
	}
}

func TestADenialNamesThePolicyTheWayOutAndWhatStandsInIt(t *testing.T) {
	for name, tc := range map[string]struct {
		guard guarding
		want  []string
		not   []string
	}{
		"a policy in force":  {enforcing("nightly"), []string{"KickPolicy nightly", "Deployment web", "THE COMMAND", `"override":true`}, []string{"suspend", "dry"}},
		"a suspended policy": {with(enforcing("nightly"), suspended), []string{"spec.suspend"}, []string{"dry"}},
		"a dry policy":       {with(enforcing("nightly"), dry), []string{"spec.dryRun"}, []string{"suspend"}},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Join(objection(verdict{guarding: tc.guard}, target, "THE COMMAND"), "\n")
			for _, part := range tc.want {
				if !strings.Contains(text, part) {
					t.Errorf("no %q in %s", part, text)
				}
			}
			for _, part := range tc.not {
				if strings.Contains(text, part) {
					t.Errorf("%q in %s", part, text)
				}
			}
		})
	}
}
