package gitops_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/gitops"
)

type syncWindow = gitops.SyncWindow

func syncAllow(schedule, duration string, edits ...func(*syncWindow)) syncWindow {
	w := syncWindow{Kind: "allow", Schedule: schedule, Duration: duration, Applications: []string{"*"}}
	for _, edit := range edits {
		edit(&w)
	}
	return w
}

func syncDeny(schedule, duration string, edits ...func(*syncWindow)) syncWindow {
	w := syncAllow(schedule, duration, edits...)
	w.Kind = "deny"
	return w
}

func manualSync(w *syncWindow) { w.ManualSync = true }

func zone(name string) func(*syncWindow) { return func(w *syncWindow) { w.TimeZone = name } }

// day is a time of 6 August 2026, a Thursday, in UTC.
func day(clock string) time.Time {
	at, err := time.Parse("2006-01-02 15:04:05", "2026-08-06 "+clock)
	if err != nil {
		panic(err)
	}
	return at
}

// ask evaluates the windows of the default project for an Application.
func ask(a gitops.Application, at time.Time, manual bool, windows ...syncWindow) *gitops.Hold {
	facts := argo(a)
	facts.ArgoCD.Planes["argocd"].Projects["default"] = gitops.Project{Name: "default", Windows: windows}
	owner, hold := facts.Owner(v1alpha1.ProviderArgoCD)
	if hold != nil {
		return hold
	}
	return owner.Windows(at, manual)
}

func TestSyncWindowsFollowArgoCD(t *testing.T) {
	for name, tc := range map[string]struct {
		windows []syncWindow
		at      time.Time
		manual  bool
		reason  string
	}{
		"no window":                             {nil, day("12:00:00"), false, ""},
		"an allow window at its very start":     {[]syncWindow{syncAllow("0 9 * * *", "1h")}, day("09:00:00"), false, v1alpha1.ReasonOutsideSchedule},
		"an allow window after its start":       {[]syncWindow{syncAllow("0 9 * * *", "1h")}, day("09:00:01"), false, ""},
		"an allow window before its end":        {[]syncWindow{syncAllow("0 9 * * *", "1h")}, day("09:59:59"), false, ""},
		"an allow window at its end":            {[]syncWindow{syncAllow("0 9 * * *", "1h")}, day("10:00:00"), false, v1alpha1.ReasonOutsideSchedule},
		"an allow window, manually":             {[]syncWindow{syncAllow("0 9 * * *", "1h")}, day("12:00:00"), true, v1alpha1.ReasonOutsideSchedule},
		"starts every minute, at eleven":        {[]syncWindow{syncAllow("* 10 * * *", "2h")}, day("11:00:00"), false, ""},
		"starts every minute, at half past 12":  {[]syncWindow{syncAllow("* 10 * * *", "2h")}, day("12:30:00"), false, ""},
		"starts every minute, at one":           {[]syncWindow{syncAllow("* 10 * * *", "2h")}, day("13:00:00"), false, v1alpha1.ReasonOutsideSchedule},
		"in New York, at noon there":            {[]syncWindow{syncAllow("* 10 * * *", "2h", zone("America/New_York"))}, day("16:00:00"), false, ""},
		"in New York, in the evening there":     {[]syncWindow{syncAllow("* 10 * * *", "2h", zone("America/New_York"))}, day("22:00:00"), false, v1alpha1.ReasonOutsideSchedule},
		"in Dhaka":                              {[]syncWindow{syncAllow("* 8 * * *", "2h", zone("Asia/Dhaka"))}, day("03:00:00"), false, ""},
		"in no zone of this world":              {[]syncWindow{syncAllow("0 9 * * *", "1h", zone("Mars/Phobos"))}, day("09:30:00"), false, ""},
		"an inactive deny window alone":         {[]syncWindow{syncDeny("0 2 * * *", "1h")}, day("12:00:00"), false, ""},
		"an active deny window alone":           {[]syncWindow{syncDeny("0 12 * * *", "1h")}, day("12:30:00"), false, v1alpha1.ReasonOutsideSchedule},
		"an active deny window, manually":       {[]syncWindow{syncDeny("0 12 * * *", "1h")}, day("12:30:00"), true, v1alpha1.ReasonOutsideSchedule},
		"a deny window for automated syncs":     {[]syncWindow{syncDeny("0 12 * * *", "1h", manualSync)}, day("12:30:00"), false, v1alpha1.ReasonOutsideSchedule},
		"the same, manually":                    {[]syncWindow{syncDeny("0 12 * * *", "1h", manualSync)}, day("12:30:00"), true, ""},
		"one of two denies admits manual syncs": {[]syncWindow{syncDeny("0 12 * * *", "1h", manualSync), syncDeny("0 12 * * *", "2h")}, day("12:30:00"), true, v1alpha1.ReasonOutsideSchedule},
		"allow and deny, both active":           {[]syncWindow{syncAllow("0 12 * * *", "1h"), syncDeny("0 12 * * *", "1h")}, day("12:30:00"), false, v1alpha1.ReasonOutsideSchedule},
		"an inactive allow, an inactive deny":   {[]syncWindow{syncAllow("0 9 * * *", "1h"), syncDeny("0 2 * * *", "1h")}, day("12:30:00"), false, v1alpha1.ReasonOutsideSchedule},
		"one of two allows is active":           {[]syncWindow{syncAllow("0 12 * * *", "1h"), syncAllow("0 2 * * *", "1h")}, day("12:30:00"), false, ""},
		"inactive allows that admit manual":     {[]syncWindow{syncAllow("0 9 * * *", "1h", manualSync)}, day("12:30:00"), true, ""},
		"the other of two denies admits it":     {[]syncWindow{syncDeny("0 12 * * *", "2h"), syncDeny("0 12 * * *", "1h", manualSync)}, day("12:30:00"), true, v1alpha1.ReasonOutsideSchedule},
		"the other of two allows admits it":     {[]syncWindow{syncAllow("0 2 * * *", "1h"), syncAllow("0 9 * * *", "1h", manualSync)}, day("12:30:00"), true, v1alpha1.ReasonOutsideSchedule},
		"one of two inactive allows admits it":  {[]syncWindow{syncAllow("0 9 * * *", "1h", manualSync), syncAllow("0 2 * * *", "1h")}, day("12:30:00"), true, v1alpha1.ReasonOutsideSchedule},
		"Sunday as 7":                           {[]syncWindow{syncAllow("* 10 * * 7", "1h")}, day("12:30:00"), false, v1alpha1.ReasonConfigurationError},
		"a descriptor":                          {[]syncWindow{syncAllow("@daily", "1h")}, day("12:30:00"), false, v1alpha1.ReasonConfigurationError},
		"a duration in days":                    {[]syncWindow{syncAllow("0 12 * * *", "1d")}, day("12:30:00"), false, v1alpha1.ReasonConfigurationError},
		"a broken window beside an open one":    {[]syncWindow{syncAllow("0 12 * * *", "1h"), syncDeny("x", "1h")}, day("12:30:00"), false, v1alpha1.ReasonConfigurationError},
		"a broken window of another application": {
			[]syncWindow{syncAllow("x", "1h", func(w *syncWindow) { w.Applications = []string{"other"} })}, day("12:30:00"), false, "",
		},
		"a kind in capitals":                  {[]syncWindow{{Kind: "Deny", Schedule: "0 12 * * *", Duration: "1h", Applications: []string{"*"}}}, day("12:30:00"), false, ""},
		"a date that never comes is always":   {[]syncWindow{syncAllow("0 0 30 2 *", "1h"), syncAllow("0 2 * * *", "1h")}, day("12:30:00"), false, ""},
		"a negative duration is never active": {[]syncWindow{syncDeny("* * * * *", "-1h")}, day("12:30:00"), false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			hold := ask(application(), tc.at, tc.manual, tc.windows...)
			if got := reasonOf(hold); got != tc.reason {
				t.Errorf("%q, want %q", got, tc.reason)
			}
		})
	}
}

func TestASyncWindowMatches(t *testing.T) {
	list := func(l ...string) []string { return l }
	for name, tc := range map[string]struct {
		window  syncWindow
		matches bool
	}{
		"the name":                               {syncWindow{Applications: list("shop")}, true},
		"another name":                           {syncWindow{Applications: list("other")}, false},
		"a part of the name":                     {syncWindow{Applications: list("sh")}, false},
		"the namespace and name of neither":      {syncWindow{Applications: list("argocd/shop")}, false},
		"one of two globs":                       {syncWindow{Applications: list("x*", "s?o[a-p]")}, true},
		"alternatives":                           {syncWindow{Applications: list("{shop,web}")}, true},
		"a class that is not":                    {syncWindow{Applications: list("[!s]hop")}, false},
		"a glob that does not compile":           {syncWindow{Applications: list("[")}, false},
		"a star over the slashes of a URL":       {syncWindow{Clusters: list("*")}, true},
		"a cluster by its URL":                   {syncWindow{Clusters: list("https://kubernetes.*")}, true},
		"a cluster by a name the spec has not":   {syncWindow{Clusters: list("in-cluster")}, false},
		"the destination namespace":              {syncWindow{Namespaces: list("shop")}, true},
		"the namespace of the Application":       {syncWindow{Namespaces: list("argocd")}, false},
		"no list":                                {syncWindow{}, false},
		"no list, and all have to match":         {syncWindow{AndOperator: true}, false},
		"the name, in another namespace":         {syncWindow{Applications: list("shop"), Namespaces: list("prod")}, true},
		"the same, and all have to match":        {syncWindow{Applications: list("shop"), Namespaces: list("prod"), AndOperator: true}, false},
		"both, and all have to match":            {syncWindow{Applications: list("shop"), Namespaces: list("shop"), AndOperator: true}, true},
		"one list only, and all have to match":   {syncWindow{Namespaces: list("shop"), AndOperator: true}, true},
		"all three lists, and all have to match": {syncWindow{Applications: list("*"), Namespaces: list("*"), Clusters: list("in-cluster"), AndOperator: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			tc.window.Kind, tc.window.Schedule, tc.window.Duration = "deny", "0 12 * * *", "1h"
			hold := ask(application(), day("12:30:00"), false, tc.window)
			if (hold != nil) != tc.matches {
				t.Errorf("held: %t, want %t", hold != nil, tc.matches)
			}
		})
	}
	t.Run("a star where the spec has no cluster at all", func(t *testing.T) {
		facts := argo(application(func(a *gitops.Application) { a.Destination = gitops.Destination{Name: "in-cluster"} }))
		facts.ArgoCD.Planes["argocd"].Projects["default"] = gitops.Project{Name: "default", Windows: []syncWindow{
			{Kind: "deny", Schedule: "0 12 * * *", Duration: "1h", Clusters: []string{""}},
		}}
		owner, _ := facts.Owner(v1alpha1.ProviderArgoCD)
		if hold := owner.Windows(day("12:30:00"), false); hold != nil {
			t.Errorf("a field that is not set was compared: %s", hold.Message)
		}
	})
}

func TestWindowsOfProjects(t *testing.T) {
	freeze := gitops.Project{Name: "frozen", Windows: []syncWindow{syncDeny("0 12 * * *", "1h")}}
	team := gitops.Project{Name: "team", Labels: map[string]string{"env": "prod"}}
	selector := func(text string) labels.Selector {
		parsed, err := labels.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	in := func(project, namespace string) gitops.Application {
		return application(func(a *gitops.Application) { a.Project, a.Namespace = project, namespace })
	}
	projects := map[string]gitops.Project{"frozen": freeze, "team": team, "default": {Name: "default"}}
	for name, tc := range map[string]struct {
		application gitops.Application
		plane       gitops.Plane
		reason      string
	}{
		"of a project without windows": {in("team", "argocd"), gitops.Plane{}, ""},
		"of a project with a window":   {in("frozen", "argocd"), gitops.Plane{}, v1alpha1.ReasonOutsideSchedule},
		"of a project that inherits a window": {
			in("team", "argocd"), gitops.Plane{Globals: []gitops.GlobalProject{{Selector: selector("env=prod"), Project: "frozen"}}},
			v1alpha1.ReasonOutsideSchedule,
		},
		"of a project that is not selected": {
			in("team", "argocd"), gitops.Plane{Globals: []gitops.GlobalProject{{Selector: selector("env=test"), Project: "frozen"}}}, "",
		},
		"of a project that inherits from none that is": {
			in("team", "argocd"), gitops.Plane{Globals: []gitops.GlobalProject{{Selector: selector(""), Project: "gone"}}}, "",
		},
		"the global project itself": {
			in("frozen", "argocd"), gitops.Plane{Globals: []gitops.GlobalProject{{Selector: selector(""), Project: "frozen"}}},
			v1alpha1.ReasonOutsideSchedule,
		},
		"the global projects cannot be read": {in("team", "argocd"), gitops.Plane{GlobalsFault: "bad"}, v1alpha1.ReasonConfigurationError},
		"no project is named":                {in("", "argocd"), gitops.Plane{}, ""},
		"the project does not exist":         {in("gone", "argocd"), gitops.Plane{}, v1alpha1.ReasonProjectUnknown},
		"the project admits another namespace": {
			in("team", "apps-a"), gitops.Plane{}, v1alpha1.ReasonProjectUnknown,
		},
	} {
		t.Run(name, func(t *testing.T) {
			facts := argo(tc.application)
			tc.plane.Projects = projects
			facts.ArgoCD.Planes["argocd"] = tc.plane
			owner, _ := facts.Owner(v1alpha1.ProviderArgoCD)
			if got := reasonOf(owner.Windows(day("12:30:00"), false)); got != tc.reason {
				t.Errorf("%q, want %q", got, tc.reason)
			}
		})
	}
	for patterns, admitted := range map[string]bool{
		"apps-*": true, "apps-?,x": true, "x,/^apps-[a-c]$/": true, "/[/": false, "/^apps$/": false, "": false, "[": false,
	} {
		t.Run("a project that admits "+patterns, func(t *testing.T) {
			facts := argo(in("team", "apps-a"))
			facts.ArgoCD.Planes["argocd"].Projects["team"] = gitops.Project{Name: "team", SourceNamespaces: strings.Split(patterns, ",")}
			owner, _ := facts.Owner(v1alpha1.ProviderArgoCD)
			if hold := owner.Windows(day("12:30:00"), false); (hold == nil) != admitted {
				t.Errorf("%+v", hold)
			}
		})
	}
}

func TestClosedSyncWindowsSayWhenTheyOpen(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		windows []syncWindow
		at      time.Time
		opens   time.Time // zero for never
		recheck time.Time
	}{
		"at the next start":         {[]syncWindow{syncAllow("0 14 * * *", "1h")}, day("12:30:00"), day("14:00:00"), day("14:00:01")},
		"at the end of a deny":      {[]syncWindow{syncDeny("0 12 * * *", "1h")}, day("12:30:00"), day("13:00:00"), day("13:00:00")},
		"at the end of many denies": {[]syncWindow{syncDeny("* 12 * * *", "1h")}, day("12:30:00"), day("13:59:00"), day("13:59:00")},
		"after the deny in an allow": {
			[]syncWindow{syncAllow("0 14 * * *", "4h"), syncDeny("0 12 * * *", "3h")}, day("12:30:00"), day("15:00:00"), day("15:00:00"),
		},
		"in the zone of the window": {
			[]syncWindow{syncAllow("0 18 * * *", "1h", zone("Europe/Berlin"))}, day("12:30:00"),
			time.Date(2026, 8, 6, 18, 0, 0, 0, berlin), day("16:00:01"),
		},
		"on the clocks of the day, which go forward before": {
			[]syncWindow{syncAllow("0 18 * * *", "1h", zone("Europe/Berlin"))}, time.Date(2026, 3, 28, 20, 0, 0, 0, time.UTC),
			time.Date(2026, 3, 29, 18, 0, 0, 0, berlin), time.Date(2026, 3, 29, 16, 0, 1, 0, time.UTC),
		},
		"never, behind a deny that never ends": {
			[]syncWindow{syncAllow("0 14 * * *", "1h"), syncDeny("0 0 30 2 *", "1h")}, day("12:30:00"), time.Time{}, time.Time{},
		},
		"later than is looked": {[]syncWindow{syncDeny("* * * * *", "2m")}, day("12:30:00"), time.Time{}, day("12:30:00").Add(2000*time.Minute + time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			hold := ask(application(), tc.at, false, tc.windows...)
			if hold == nil {
				t.Fatal("open")
			}
			if !hold.OpensAt.Equal(tc.opens) || hold.OpensAt.Format(time.RFC3339) != tc.opens.Format(time.RFC3339) {
				t.Errorf("opens at %s, want %s", hold.OpensAt, tc.opens)
			}
			if !hold.RecheckAt.Equal(tc.recheck) {
				t.Errorf("rechecks at %s, want %s", hold.RecheckAt, tc.recheck)
			}
		})
	}
}

// argoCanSync is the algorithm as Argo CD words it, for windows that parse and match.
func argoCanSync(windows []syncWindow, now time.Time, manual bool) bool {
	parser := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)
	var activeDenies, activeAllows, inactiveAllows []syncWindow
	for _, w := range windows {
		schedule, _ := parser.Parse(w.Schedule)
		duration, _ := time.ParseDuration(w.Duration)
		location, err := time.LoadLocation(w.TimeZone)
		if err != nil {
			location = time.UTC
		}
		_, seconds := now.In(location).Zone()
		shifted := now.UTC().Add(time.Duration(seconds) * time.Second)
		active := schedule.Next(shifted.Add(-duration)).Before(shifted)
		switch {
		case active && w.Kind == "deny":
			activeDenies = append(activeDenies, w)
		case active && w.Kind == "allow":
			activeAllows = append(activeAllows, w)
		case w.Kind == "allow":
			inactiveAllows = append(inactiveAllows, w)
		}
	}
	allManual := func(windows []syncWindow) bool {
		for _, w := range windows {
			if !w.ManualSync {
				return false
			}
		}
		return true
	}
	if len(activeDenies) > 0 {
		return manual && allManual(activeDenies)
	}
	if len(activeAllows) > 0 || len(inactiveAllows) == 0 {
		return true
	}
	return manual && allManual(inactiveAllows)
}

func drawWindow(t *rapid.T) syncWindow {
	return syncWindow{
		Kind: rapid.SampledFrom([]string{"allow", "deny", "Allow"}).Draw(t, "kind"),
		Schedule: fmt.Sprintf("%s %s * * %s",
			rapid.SampledFrom([]string{"0", "30", "*/15", "59", "*"}).Draw(t, "minute"),
			rapid.SampledFrom([]string{"*", "2", "*/6", "23", "1-3"}).Draw(t, "hour"),
			rapid.SampledFrom([]string{"*", "0", "1-5"}).Draw(t, "weekday")),
		Duration:     rapid.SampledFrom([]string{"1m", "30s", "1h", "90m", "25h", "0s"}).Draw(t, "duration"),
		TimeZone:     rapid.SampledFrom([]string{"", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Nowhere/Land"}).Draw(t, "zone"),
		Applications: []string{"*"},
		ManualSync:   rapid.Bool().Draw(t, "manual sync"),
	}
}

// drawInstant prefers the days around changes of the clocks.
func drawInstant(t *rapid.T) time.Time {
	base := rapid.SampledFrom([]time.Time{
		time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC), time.Date(2026, 10, 24, 12, 0, 0, 0, time.UTC),
		time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 8, 6, 0, 0, 0, 0, time.UTC),
	}).Draw(t, "day")
	return base.Add(time.Duration(rapid.IntRange(0, 2*24*60*60).Draw(t, "seconds")) * time.Second)
}

func TestSyncWindowsAgreeWithTheAlgorithmOfArgoCD(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		windows := rapid.SliceOfN(rapid.Custom(drawWindow), 0, 4).Draw(t, "windows")
		now, manual := drawInstant(t), rapid.Bool().Draw(t, "manual")
		open := ask(application(), now, manual, windows...) == nil
		if want := argoCanSync(windows, now, manual); open != want {
			t.Fatalf("open: %t, Argo CD: %t", open, want)
		}
	})
}

func TestSyncWindowsOpenAtTheFirstInstantTheyPermit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		windows := rapid.SliceOfN(rapid.Custom(drawWindow), 1, 3).Draw(t, "windows")
		now, manual := drawInstant(t), rapid.Bool().Draw(t, "manual")
		hold := ask(application(), now, manual, windows...)
		if hold == nil || hold.RecheckAt.IsZero() {
			return
		}
		if !hold.OpensAt.IsZero() && !argoCanSync(windows, hold.RecheckAt, manual) {
			t.Fatalf("closed at %s", hold.RecheckAt)
		}
		until := hold.RecheckAt.Add(-2 * time.Second)
		for at := now; at.Before(until); at = at.Add(max(30*time.Second, until.Sub(now)/500)) {
			if argoCanSync(windows, at, manual) {
				t.Fatalf("open at %s, before %s", at, hold.RecheckAt)
			}
		}
	})
}
