package webhooks

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/policy"
)

func parse(t testing.TB, p *v1alpha1.KickPolicy) policy.Policy {
	t.Helper()
	parsed, faults := policy.Parse(p)
	if len(faults) > 0 {
		t.Fatal(faults.ToAggregate())
	}
	return parsed
}

func app(name string) neighbour {
	return neighbour{name: "Deployment " + name, labels: labels.Set{"app": name}}
}

// marked is a workload with a label, and an annotation, of which one may be empty.
func marked(name, label, annotation string) neighbour {
	n := app(name)
	if label != "" {
		n.labels[label] = "x"
	}
	if annotation != "" {
		n.annotations = map[string]string{annotation: "x"}
	}
	return n
}

func TestAdviceOnPoliciesThatAreLegalAndUnwise(t *testing.T) {
	web := func(edit func(*v1alpha1.KickPolicySpec)) *v1alpha1.KickPolicy {
		p := policyOf(matching("app", "web"))
		if edit != nil {
			edit(&p.Spec)
		}
		return p
	}
	windows := scheduled
	provider := func(provider v1alpha1.GitOpsProvider) *v1alpha1.KickPolicy {
		return web(func(s *v1alpha1.KickPolicySpec) { s.GitOps.Provider = provider })
	}
	restart := func(quiet, most time.Duration) *v1alpha1.KickPolicy {
		return web(func(s *v1alpha1.KickPolicySpec) {
			s.Restart.QuietPeriod, s.Restart.MaxQuiet = &metav1.Duration{Duration: quiet}, &metav1.Duration{Duration: most}
		})
	}
	workloads := func(workloads ...neighbour) surroundings { return surroundings{workloads: workloads} }
	beside := func(p *v1alpha1.KickPolicy, workloads ...neighbour) surroundings {
		p.Name = "other"
		return surroundings{policies: []policy.Policy{parse(t, p)}, workloads: workloads}
	}
	const (
		argo     = "spec.gitOps.provider: None, but Deployment web carries the marks of ArgoCD, for which no restart will wait; ArgoCD or Auto would"
		flux     = "spec.gitOps.provider: None, but Deployment web carries the marks of Flux, for which no restart will wait; Flux or Auto would"
		never    = "spec.schedule.windows: never open within the next 366 days, so no change leads to a restart"
		wildcard = "spec.discovery.workloadSelector: {} selects every Deployment, StatefulSet and DaemonSet of the namespace"
		shared   = "spec.discovery.workloadSelector: KickPolicy other selects Deployment web, too; a restart then needs both policies to permit it"
	)
	for name, tc := range map[string]struct {
		policy *v1alpha1.KickPolicy
		around surroundings
		want   []string
	}{
		"a plain policy":                    {web(nil), workloads(app("web"), app("db")), nil},
		"in KICK's own namespace":           {web(nil), surroundings{reserved: true}, []string{"metadata.namespace: this is KICK's own namespace, where no policy manages anything"}},
		"the selector {}":                   {policyOf(metav1.LabelSelector{}), surroundings{}, []string{wildcard}},
		"an overlap":                        {web(nil), beside(web(nil), app("web")), []string{shared}},
		"an overlap with {}":                {web(nil), beside(policyOf(metav1.LabelSelector{}), app("web"), app("db")), []string{shared}},
		"two policies and no workload":      {web(nil), beside(web(nil)), nil},
		"a policy beside it":                {web(nil), beside(policyOf(matching("app", "db")), app("web"), app("db")), nil},
		"windows that open":                 {windows(open("0 2 * * *", "2h", "")), surroundings{}, nil},
		"windows forbidden all the time":    {windows(open("0 2 * * *", "2h", ""), window(v1alpha1.WindowDeny, "0 1 * * *", "4h", "")), surroundings{}, []string{never}},
		"an opening in a year":              {windows(open("0 0 5 8 *", "1h", "")), surroundings{}, nil},
		"an opening in four years":          {windows(open("0 0 29 2 *", "1h", "")), surroundings{}, []string{never}},
		"a window longer than its period":   {windows(open("0 2 * * *", "25h", "")), surroundings{}, []string{"spec.schedule.windows[0]: begins again before its 25h are over, so it is always active"}},
		"a window as long as its period":    {windows(open("0 2 * * *", "24h", "")), surroundings{}, []string{"spec.schedule.windows[0]: begins again before its 24h are over, so it is always active"}},
		"a window shorter than its period":  {windows(open("0 2 * * *", "23h59m", "")), surroundings{}, nil},
		"a day in a zone with a day of 25h": {windows(open("0 12 * * *", "24h", "Europe/Berlin")), surroundings{}, nil},
		"a window of days on workdays":      {windows(open("0 2 * * 1-5", "25h", "")), surroundings{}, nil},
		"a window over the weekend":         {windows(open("0 2 * * 1-5", "73h", "")), surroundings{}, []string{"spec.schedule.windows[0]: begins again before its 73h are over, so it is always active"}},
		"a window each minute":              {windows(open("* * * * *", "1m", "")), surroundings{}, []string{"spec.schedule.windows[0]: begins again before its 1m are over, so it is always active"}},
		"a window each minute of some days": {windows(open("* * 1-20 * *", "1m", "")), surroundings{}, nil},
		"a Deny that never ends":            {windows(open("0 2 * * *", "1h", ""), window(v1alpha1.WindowDeny, "0 * * * *", "2h", "")), surroundings{}, []string{never, "spec.schedule.windows[1]: begins again before its 2h are over, so it is always active"}},
		"a quiet period beyond its bound":   {restart(2*time.Minute, time.Minute), surroundings{}, []string{"spec.restart.maxQuiet: 1m0s is less than the quietPeriod of 2m0s, so no change waits for the whole quiet period"}},
		"a quiet period up to its bound":    {restart(time.Minute, time.Minute), surroundings{}, nil},
		"Argo CD's annotation":              {web(nil), workloads(marked("web", "", "argocd.argoproj.io/tracking-id")), []string{argo}},
		"Argo CD's own label":               {web(nil), workloads(marked("web", "argocd.argoproj.io/instance", "")), []string{argo}},
		"the label of any Helm chart":       {web(nil), workloads(marked("web", "app.kubernetes.io/instance", "")), nil},
		"Flux's label, of a Kustomization":  {web(nil), workloads(marked("web", "kustomize.toolkit.fluxcd.io/name", "")), []string{flux}},
		"Flux's label, of a HelmRelease":    {provider(v1alpha1.ProviderNone), workloads(marked("web", "helm.toolkit.fluxcd.io/name", "")), []string{flux}},
		"marks on a workload beside it":     {web(nil), workloads(app("web"), marked("db", "helm.toolkit.fluxcd.io/name", "")), nil},
		"marks, and the provider Auto":      {provider(v1alpha1.ProviderAuto), workloads(marked("web", "helm.toolkit.fluxcd.io/name", "")), nil},
		"marks, and another provider":       {provider(v1alpha1.ProviderArgoCD), workloads(marked("web", "helm.toolkit.fluxcd.io/name", "")), nil},
		"everything at once, in its own order": {
			policyOf(metav1.LabelSelector{}), beside(policyOf(matching("app", "web")), marked("a", "helm.toolkit.fluxcd.io/name", ""), marked("web", "helm.toolkit.fluxcd.io/name", "")),
			[]string{wildcard, shared, "spec.gitOps.provider: None, but Deployment a (and 1 more) carries the marks of Flux, for which no restart will wait; Flux or Auto would"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.around.now = noon
			if diff := cmp.Diff(tc.want, advise(tc.policy, parse(t, tc.policy), tc.around)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
