package explain_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/deps"
	"github.com/kick-dev/kick/internal/core/freshness"
	"github.com/kick-dev/kick/internal/core/gitops"
	"github.com/kick-dev/kick/internal/core/policy"
	"github.com/kick-dev/kick/internal/core/request"
	"github.com/kick-dev/kick/internal/core/rollout"
	"github.com/kick-dev/kick/internal/kubectl/explain"
	"github.com/kick-dev/kick/internal/testing/golden"
)

var (
	noon   = time.Date(2026, 8, 6, 12, 0, 0, 0, time.UTC)
	db     = deps.Source{Kind: v1alpha1.Secret, Name: "db"}
	config = deps.Source{Kind: v1alpha1.ConfigMap, Name: "settings"}
)

func at(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

// situation is a Deployment that was created an hour before noon and rolled out half an hour before it. Its Secret changed
// at noon; now is ten minutes later.
func situation(edits ...func(*explain.Input)) explain.Input {
	in := explain.Input{
		Namespace: "shop", Kind: v1alpha1.Deployment, Name: "web", Now: at(600),
		Settings:  request.Settings{TTL: time.Hour, RolloutDeadline: 15 * time.Minute},
		Standings: map[deps.Source]explain.Standed{},
	}
	in.References = []deps.Reference{
		{Source: config, Whole: true, Readers: []deps.Reader{{Container: "app", Channel: deps.Volume}}},
		{Source: db, Keys: []string{"password"}, Readers: []deps.Reader{{Container: "app"}}},
	}
	in.Facts = request.Facts{
		Observed: request.Observed{
			Changes: freshness.Changes{db: at(0), config: at(-7200)},
			Keys:    map[deps.Source]map[string]time.Time{db: {"password": at(0)}},
			Writers: map[deps.Source]string{db: "vault", config: "helm"},
		},
		Live: true, Room: request.Room{Asked: true},
		Evidence: freshness.Evidence{
			CreatedAt: at(-3600), Rollout: rollout.State{Complete: true}, RevisionRead: true, PodsRead: true,
			Revision: &rollout.Revision{Name: "web-1", CreatedAt: at(-1800)},
			Pods: []freshness.Pod{
				{Name: "web-1-a", References: in.References, StartedAt: at(-1790), Containers: []freshness.Container{{Name: "app", StartedAt: at(-1789)}}},
				{Name: "web-1-b", References: in.References, StartedAt: at(30), Containers: []freshness.Container{{Name: "app", StartedAt: at(31)}}},
			},
		},
	}
	manage(v1alpha1.KickPolicySpec{})(&in)
	for _, edit := range edits {
		edit(&in)
	}
	return in
}

func manage(specs ...v1alpha1.KickPolicySpec) func(*explain.Input) {
	return func(in *explain.Input) {
		var policies []policy.Policy
		for i, spec := range specs {
			parsed, _ := policy.Parse(&v1alpha1.KickPolicy{ObjectMeta: metav1.ObjectMeta{Name: string(rune('a' + i))}, Spec: spec})
			policies = append(policies, parsed)
		}
		in.Facts.Scope = policy.ScopeOf(policies, labels.Set{})
	}
}

// asked adds a request in the state that KICK gives it on the same facts.
func asked(in *explain.Input) {
	object := &v1alpha1.KickRequest{ObjectMeta: metav1.ObjectMeta{Name: "deployment-web"}}
	object.Status = request.Next(object.Status, in.Facts, in.Settings, in.Now).Status
	in.Request = object
}

func nights() v1alpha1.KickPolicySpec {
	return v1alpha1.KickPolicySpec{Schedule: v1alpha1.Schedule{Windows: []v1alpha1.Window{
		{Kind: v1alpha1.WindowAllow, Cron: "0 2 * * *", Duration: "2h", TimeZone: "Europe/Berlin"},
	}}}
}

func gentle() v1alpha1.KickPolicySpec {
	length := func(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }
	return v1alpha1.KickPolicySpec{Restart: v1alpha1.Restart{
		QuietPeriod: length(30 * time.Minute), MaxQuiet: length(time.Hour), MinInterval: length(time.Minute),
	}}
}

var situations = map[string]struct {
	in     explain.Input
	action explain.Action
	// says is what the text has to contain, beside what the golden file holds.
	says string
}{
	"stale":           {situation(asked), explain.ActionRestart, "started before the change"},
	"no-request":      {situation(), explain.ActionRestart, "Request:    none"},
	"outside-windows": {situation(manage(nights()), asked), explain.ActionWait, "2026-08-07T02:00:00+02:00"},
	"quiet":           {situation(manage(gentle()), asked), explain.ActionWait, "CLOSED   quiet period"},
	"fresh":           {situation(func(in *explain.Input) { in.Facts.Evidence.Pods = in.Facts.Evidence.Pods[1:] }), explain.ActionNothing, "Fresh"},
	"by-revision":     {situation(func(in *explain.Input) { in.Facts.Evidence.Revision.CreatedAt = at(5) }), explain.ActionNothing, "the revision"},
	"not-managed":     {situation(manage()), explain.ActionNothing, "none selects the workload"},
	"suspended":       {situation(manage(v1alpha1.KickPolicySpec{Suspend: true}), asked), explain.ActionWait, "a (suspended)"},
	"fresh-and-unread": {situation(func(in *explain.Input) {
		in.Facts.Evidence.Pods = in.Facts.Evidence.Pods[1:]
		in.Facts.Unread = []string{"the ConfigMap settings"}
		in.Standings[config] = explain.Standed{Standing: explain.Unread, Detail: "written since KICK last read it"}
	}, asked), explain.ActionWait, "KICK is about to read the ConfigMap settings"},
	"missing-and-unread": {situation(func(in *explain.Input) {
		in.Facts.Missing, in.Facts.Unread = []string{"the key password of the Secret db"}, []string{"the Secret db"}
		in.Standings[db] = explain.Standed{Standing: explain.Unread, Detail: "written since KICK last read it"}
	}, asked), explain.ActionWait, "KICK is about to read the Secret db"},
	"fresh-and-unobserved": {situation(func(in *explain.Input) {
		in.Facts.Evidence.Pods = in.Facts.Evidence.Pods[1:]
		delete(in.Facts.Changes, config)
		in.Facts.Unobserved = true
		in.Standings[config] = explain.Standed{Standing: explain.Unobserved, Detail: "KICK has yet to read it for the first time"}
	}, asked), explain.ActionWait, "KICK has yet to read the ConfigMap settings for the first time"},
	"dry-run":      {situation(manage(v1alpha1.KickPolicySpec{DryRun: true}), asked), explain.ActionWait, "DryRun"},
	"two-policies": {situation(manage(nights(), gentle()), asked), explain.ActionWait, "a, b"},
	"missing": {situation(func(in *explain.Input) {
		in.Facts.Missing = []string{"the Secret tls"}
		tls := deps.Source{Kind: v1alpha1.Secret, Name: "tls"}
		in.References = append(in.References, deps.Reference{Source: tls, Required: true, Readers: []deps.Reader{{}}})
		in.Standings[tls] = explain.Standed{Standing: explain.Missing, Detail: "does not exist, and new Pods do not start without it"}
	}, asked), explain.ActionWait, "MissingSource"},
	"rolling-out": {situation(func(in *explain.Input) {
		in.Facts.Evidence.Rollout = rollout.State{Message: "1 of 2 Pods are updated"}
		in.Facts.Evidence.Revision.CreatedAt = at(-60)
	}, asked), explain.ActionWait, "RolloutInProgress"},
	"paused": {situation(func(in *explain.Input) { in.Facts.Evidence.Rollout = rollout.State{Paused: true} }, asked), explain.ActionWait, "paused"},
	"no-owner": {situation(manage(v1alpha1.KickPolicySpec{GitOps: v1alpha1.GitOps{Provider: v1alpha1.ProviderFlux}}), func(in *explain.Input) {
		in.Facts.Owners = gitops.Facts{Flux: gitops.Flux{Availability: gitops.Availability{Presence: gitops.Readable}}}
	}, asked), explain.ActionWait, "OwnerUnknown"},
	"full": {situation(func(in *explain.Input) {
		in.Facts.Room.Full = "as many workloads are restarting as the cluster permits: 50"
	}, asked),
		explain.ActionWait, "ConcurrencyLimit"},
	"by-hand": {situation(manage(nights()), func(in *explain.Input) {
		in.Facts.Manual = &v1alpha1.ManualRestart{
			RequestedAt: metav1.NewMicroTime(at(590)), RequestedBy: "anna", Reason: "new licence", Override: true,
		}
	}, asked), explain.ActionRestart, "overridden by anna"},
	"without-the-ledger": {situation(func(in *explain.Input) {
		in.Facts.Changes, in.Facts.Unobserved, in.Blind = freshness.Changes{}, true, true
		in.Standings[db] = explain.Standed{Standing: explain.Unseen, Detail: "when it changed is in the ledger"}
		in.Unseen = []string{"the ledger, which knows when sources changed: you may not list kickledgers in namespace kick-system"}
	}), explain.ActionUnknown, "Not seen"},
	"without-the-sources": {situation(func(in *explain.Input) {
		in.Guessed = true
		in.Standings[db] = explain.Standed{Standing: explain.Counts, Detail: "you may not read its metadata; the time is KICK's"}
	}, asked), explain.ActionUnknown, "cannot be seen"},
	"without-the-pods": {situation(func(in *explain.Input) {
		in.Facts.Evidence.PodsRead, in.Facts.Evidence.Pods = false, nil
		in.Unseen = []string{"what runs under the workload: pods is forbidden"}
	}, asked), explain.ActionUnknown, "cannot be told"},
}

func TestReportsAsText(t *testing.T) {
	for name, tc := range situations {
		t.Run(name, func(t *testing.T) {
			report := explain.Of(tc.in)
			var text strings.Builder
			if err := report.WriteText(&text); err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, name, text.String())
			if report.Decision.Action != tc.action || !strings.Contains(text.String(), tc.says) {
				t.Errorf("action %s, want %s and %q in\n%s", report.Decision.Action, tc.action, tc.says, &text)
			}
		})
	}
}

// What is shown is what the core decides, and a stale workload is never shown as fresh or the other way round.
func TestReportsSayWhatTheCoreDecides(t *testing.T) {
	for name, tc := range situations {
		if tc.in.Request == nil || tc.action == explain.ActionUnknown {
			continue
		}
		t.Run(name, func(t *testing.T) {
			step := request.Next(tc.in.Request.Status, tc.in.Facts, tc.in.Settings, tc.in.Now)
			report := explain.Of(tc.in)
			if reads := len(tc.in.Facts.Unread) > 0 || tc.in.Facts.Unobserved; reads && report.Decision.Phase == "" {
				return // What is decided for now does not last.
			}
			if string(step.Status.Phase) != report.Decision.Phase || (step.Stamp != "") != (report.Decision.Action == explain.ActionRestart) {
				t.Errorf("shown %+v, decided %s with stamp %q", report.Decision, step.Status.Phase, step.Stamp)
			}
			if gate := step.Status.Gate; gate != nil {
				closed := false
				for _, link := range report.Gate {
					closed = closed || link.Reason == gate.Reason
				}
				if !closed {
					t.Errorf("held by %s, shown %+v", gate.Reason, report.Gate)
				}
			}
		})
	}
}

func TestReportsAsJSON(t *testing.T) {
	encoded, err := json.MarshalIndent(explain.Of(situations["outside-windows"].in), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "outside-windows.json", string(encoded)+"\n")
}
