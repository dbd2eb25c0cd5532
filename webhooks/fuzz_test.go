package webhooks

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/policy"
)

// Whatever a policy holds, it is judged without a panic, every fault has a place and a sentence, and what is admitted is
// what the core understands.
func FuzzKickPolicyValidator(f *testing.F) {
	f.Add([]byte(`{"spec": {"discovery": {"workloadSelector": {"matchLabels": {"app": "web"}}}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var judged v1alpha1.KickPolicy
		if json.Unmarshal(text, &judged) != nil || len(judged.Spec.Schedule.Windows) > 32 {
			return // the API server's own business
		}
		faults := ValidateKickPolicy(&judged)
		for _, fault := range faults {
			if fault.Field == "" || fault.Error() == "" {
				t.Errorf("a fault without a place or a sentence: %#v", fault)
			}
		}
		if brought := ValidateKickPolicyUpdate(&judged, judged.DeepCopy()); len(brought) > 0 {
			t.Errorf("an update that changes nothing brings %v", brought)
		}
		parsed, _ := policy.Parse(&judged)
		if admitted := len(faults) == 0; admitted && (!parsed.SelectorsValid || parsed.Schedule.Invalid()) {
			t.Errorf("admitted, and not understood: %+v", parsed)
		}
		for _, line := range advise(&judged, parsed, surroundings{now: noon, workloads: []neighbour{app("web")}}) {
			if line == "" || strings.Contains(line, "\n") {
				t.Errorf("advice %q", line)
			}
		}
	})
}

// An independent statement of what the guard refuses.
func FuzzGuardJudge(f *testing.F) {
	f.Add("", "", "", uint8(0), uint8(0))
	f.Add("1", "2", "0,1", uint8(0b11), uint8(0b1000))
	f.Fuzz(func(t *testing.T, old, updated, history string, present, guards uint8) {
		w := write{history: strings.Split(history, ","), historyRead: present&4 != 0, own: present&8 != 0, exempt: present&16 != 0}
		if present&1 != 0 {
			w.old = &old
		}
		if present&2 != 0 {
			w.updated = &updated
		}
		w.guards = guardsFrom(guards)
		got := judge(w)

		set := w.updated != nil && (w.old == nil || *w.old != *w.updated)
		enforced := slices.ContainsFunc(w.guards, func(g guarding) bool { return strictness(g.mode) == 2 && !g.dryRun })
		known := w.historyRead && slices.Contains(w.history, updated)
		switch {
		case !set || w.own || w.exempt || len(w.guards) == 0:
			if got.effect != allow {
				t.Errorf("%+v: %+v, must be allowed", w, got)
			}
		case got.effect == deny:
			if !enforced || known || !w.historyRead || got.policy == "" {
				t.Errorf("%+v: %+v, must not be denied", w, got)
			}
		case got.effect == readHistory:
			if w.historyRead {
				t.Errorf("%+v: asks for the history again", w)
			}
		}
		if again := judge(w); again != got {
			t.Errorf("judged %+v, then %+v", got, again)
		}
	})
}

// guardsFrom makes up to two policies of six bits.
func guardsFrom(bits uint8) []guarding {
	modes := []v1alpha1.GuardMode{v1alpha1.GuardEnforce, v1alpha1.GuardWarn, v1alpha1.GuardOff, ""}
	var guards []guarding
	for _, name := range []string{"a", "b"} {
		if bits&8 != 0 {
			guards = append(guards, guarding{policy: name, mode: modes[bits&3], suspended: bits&4 != 0, dryRun: bits&12 == 12})
		}
		bits >>= 4
	}
	return guards
}

// Whatever the API server, or somebody in its place, sends, the guard answers, and allows nothing that it cannot read.
func FuzzGuardHandler(f *testing.F) {
	f.Add([]byte(`{"spec": {}}`), []byte(`{"spec": {"template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "1"}}}}}`), "alice")
	for _, text := range malformed {
		f.Add([]byte(text), []byte(text), "alice")
	}
	g := newGuard(f, interceptor.Funcs{}, managing())
	f.Fuzz(func(t *testing.T, old, updated []byte, user string) {
		request := restart(t)
		request.OldObject, request.Object = runtime.RawExtension{Raw: old}, runtime.RawExtension{Raw: updated}
		request.UserInfo.Username = user
		response := g.Handle(t.Context(), request)
		if response.Result == nil || response.Result.Code == 0 {
			t.Errorf("no code: %+v", response)
		}
		if response.Allowed && response.AuditAnnotations[auditRule] == "" {
			t.Errorf("allowed by no rule: %+v", response)
		}
	})
}

// The command of a denial is one line that nothing in a user's name breaks out of.
func FuzzAskCommand(f *testing.F) {
	f.Add("alice", "web")
	f.Add(`o'neill`, "web")
	f.Fuzz(func(t *testing.T, user, name string) {
		asked := target
		asked.Name = name
		command, err := askCommand("shop", asked, user)
		if err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(command, "\n\x00") {
			t.Errorf("more than a line: %q", command)
		}
		if outside := unquoted(command); outside != "printf %s  $(date -u +%FT%T.000000Z)  | kubectl apply --server-side --force-conflicts -f -" {
			t.Errorf("outside of the quotes: %q", outside)
		}
	})
}

// unquoted is what a shell sees of a command outside of single quotes; a quote escaped between two of them is inside.
func unquoted(command string) string {
	var outside strings.Builder
	inside := false
	for i := 0; i < len(command); i++ {
		switch {
		case command[i] == '\'':
			inside = !inside
		case !inside && strings.HasPrefix(command[i:], `\''`):
			i++
		case !inside:
			outside.WriteByte(command[i])
		}
	}
	return outside.String()
}
