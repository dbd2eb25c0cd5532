package properties_test

import (
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/deps"
)

// windows of the model are simple enough to be checked by arithmetic.
type windows int

const (
	noWindows windows = iota
	allowFour         // open for the first four of every ten minutes
	denyFive          // closed for the first five of every fifteen
	allowAndDeny
	unreadable
)

func (v windows) schedule() v1alpha1.Schedule {
	allow := v1alpha1.Window{Kind: v1alpha1.WindowAllow, Cron: "*/10 * * * *", Duration: "4m"}
	deny := v1alpha1.Window{Kind: v1alpha1.WindowDeny, Cron: "*/15 * * * *", Duration: "5m"}
	switch v {
	case allowFour:
		return v1alpha1.Schedule{Windows: []v1alpha1.Window{allow}}
	case denyFive:
		return v1alpha1.Schedule{Windows: []v1alpha1.Window{deny}}
	case allowAndDeny:
		return v1alpha1.Schedule{Windows: []v1alpha1.Window{allow, deny}}
	case unreadable:
		return v1alpha1.Schedule{Windows: []v1alpha1.Window{{Kind: v1alpha1.WindowAllow, Cron: "always", Duration: "1h"}}}
	default:
		return v1alpha1.Schedule{}
	}
}

// open is the truth about a schedule of the model.
func open(s v1alpha1.Schedule, at time.Time) bool {
	minute := at.UTC().Minute()
	allowing, allowed, denied := false, false, false
	for _, w := range s.Windows {
		switch {
		case w.Cron == "always":
			return false
		case w.Kind == v1alpha1.WindowAllow:
			allowing, allowed = true, minute%10 < 4
		default:
			denied = minute%15 < 5
		}
	}
	return (!allowing || allowed) && !denied
}

// rules are the policies that decide about a workload, read without the core's help.
type rules []*v1alpha1.KickPolicy

func matches(selector *metav1.LabelSelector, labels map[string]string) bool {
	for key, value := range selector.MatchLabels {
		if labels[key] != value {
			return false
		}
	}
	return true
}

// rulesFor picks those that act, else the dry runs, else the suspended ones.
func rulesFor(policies map[string]*v1alpha1.KickPolicy, labels map[string]string) rules {
	var acting, dry, suspended rules
	for _, name := range slices.Sorted(maps.Keys(policies)) {
		p := policies[name]
		switch {
		case !matches(&p.Spec.Discovery.WorkloadSelector, labels):
		case p.Spec.Suspend:
			suspended = append(suspended, p)
		case p.Spec.DryRun:
			dry = append(dry, p)
		default:
			acting = append(acting, p)
		}
	}
	switch {
	case len(acting) > 0:
		return acting
	case len(dry) > 0:
		return dry
	default:
		return suspended
	}
}

// act tells whether the rules restart anything at all.
func (r rules) act() bool { return len(r) > 0 && !r[0].Spec.Suspend && !r[0].Spec.DryRun }

func (r rules) open(at time.Time) bool {
	return !slices.ContainsFunc(r, func(p *v1alpha1.KickPolicy) bool { return !open(p.Spec.Schedule, at) })
}

func admits(p *v1alpha1.KickPolicy, labels map[string]string) bool {
	selector := p.Spec.Discovery.DependencySelector
	return labels["kick.dev/ignore"] != "true" && (selector == nil || matches(selector, labels))
}

func (r rules) admits(labels map[string]string) bool {
	return slices.ContainsFunc(r, func(p *v1alpha1.KickPolicy) bool { return admits(p, labels) })
}

// byKey tells whether only the keys that are read count.
func (r rules) byKey(labels map[string]string) bool {
	return !slices.ContainsFunc(r, func(p *v1alpha1.KickPolicy) bool {
		return admits(p, labels) && p.Spec.Discovery.Granularity != v1alpha1.GranularityKey
	})
}

func (r rules) longest(of func(v1alpha1.Restart) *metav1.Duration) time.Duration {
	var longest time.Duration
	for _, p := range r {
		if d := of(p.Spec.Restart); d != nil {
			longest = max(longest, d.Duration)
		}
	}
	return longest
}

func (r rules) deadline() time.Duration {
	if d := r.longest(func(r v1alpha1.Restart) *metav1.Duration { return r.RolloutDeadline }); d > 0 {
		return d
	}
	return settings.RolloutDeadline
}

// part is what counts of a content.
func part(data map[string]string, keys []string) map[string]string {
	if keys == nil || data == nil {
		return data
	}
	some := map[string]string{}
	for _, key := range keys {
		if value, found := data[key]; found {
			some[key] = value
		}
	}
	return some
}

// relevant is the last change, up to a version, of the part that counts; -1 for none.
func (c *cluster) relevant(name deps.Source, keys []string, upTo int) int {
	history := c.history[name]
	for i := upTo; i > 0; i-- {
		if !maps.Equal(part(history[i].data, keys), part(history[i-1].data, keys)) {
			return i
		}
	}
	return min(upTo, 0)
}
