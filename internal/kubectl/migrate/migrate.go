// Package migrate reads the annotations of Stakater Reloader and of Wave, and makes the KickPolicies that take their place.
// What has no equivalent it names.
package migrate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/deps"
	"github.com/kick-dev/kick/internal/core/policy"
	"github.com/kick-dev/kick/internal/kubectl/text"
)

// Workload is what of a workload matters here.
type Workload struct {
	Namespace   string
	Kind        string
	Name        string
	Labels      map[string]string
	Annotations map[string]string
	// TemplateAnnotations are those of its Pod template, where Reloader looks, too.
	TemplateAnnotations map[string]string
	// Consumes are the sources that the Pod template refers to.
	Consumes []deps.Source
}

// String is the name as commands take it.
func (w Workload) String() string { return strings.ToLower(w.Kind) + "/" + w.Name }

// Source is a Secret or ConfigMap with annotations of Reloader.
type Source struct {
	Namespace string
	deps.Source
	Annotations map[string]string
}

// Plan for one namespace.
type Plan struct {
	Namespace string
	Policies  []Policy
	// Labels are commands that have to be run for the policies to select what they should.
	Labels []string
	// Gaps say what has no equivalent, or works otherwise.
	Gaps []string
}

// Policy with the workloads it is for.
type Policy struct {
	Object *v1alpha1.KickPolicy
	Covers []string
}

// ManagedLabel is what workloads are given that no label of theirs tells from the others.
const ManagedLabel = "kick.dev/managed"

// Prefixes and annotations of Reloader (stakater/Reloader, README) and Wave (wave-k8s/wave, README).
const (
	reloader = "reloader.stakater.com"
	wave     = "wave.pusher.com/"

	reloaderAuto     = reloader + "/auto"
	reloaderSearch   = reloader + "/search"
	reloaderMatch    = reloader + "/match"
	reloaderIgnore   = reloader + "/ignore"
	reloaderStrategy = reloader + "/rollout-strategy"
	secretAuto       = "secret." + reloader + "/auto"
	configMapAuto    = "configmap." + reloader + "/auto"
	secretReload     = "secret." + reloader + "/reload"
	configMapReload  = "configmap." + reloader + "/reload"
	secretExclude    = "secrets.exclude." + reloader + "/reload"
	configMapExclude = "configmaps.exclude." + reloader + "/reload"
	pausePeriod      = "deployment." + reloader + "/pause-period"

	waveUpdate     = wave + "update-on-config-change"
	waveConfigMaps = wave + "extra-configmaps"
	waveSecrets    = wave + "extra-secrets"
	waveHash       = wave + "config-hash"
)

// wish is what the annotations of one workload ask for.
type wish struct {
	Workload
	// restarts is true where some annotation asks for restarts.
	restarts bool
	interval time.Duration
	gaps     []string
}

// Plans makes a plan for each namespace with annotations. The workloads have to be all of their namespaces, so that the
// policies select no other.
func Plans(workloads []Workload, sources []Source) []Plan {
	namespaces := map[string][]Workload{}
	for _, w := range workloads {
		namespaces[w.Namespace] = append(namespaces[w.Namespace], w)
	}
	var plans []Plan
	for _, namespace := range slices.Sorted(maps.Keys(namespaces)) {
		plan := planOf(namespace, namespaces[namespace])
		for _, source := range sources {
			if source.Namespace == namespace {
				plan.source(source)
			}
		}
		if len(plan.Policies) > 0 || len(plan.Gaps) > 0 || len(plan.Labels) > 0 {
			slices.Sort(plan.Labels)
			plan.Labels = slices.Compact(plan.Labels)
			plans = append(plans, plan)
		}
	}
	return plans
}

func planOf(namespace string, all []Workload) Plan {
	slices.SortFunc(all, func(a, b Workload) int { return cmp.Compare(a.String(), b.String()) })
	plan := Plan{Namespace: namespace}
	groups := map[time.Duration][]Workload{}
	for _, w := range all {
		asked := read(w)
		for _, gap := range asked.gaps {
			plan.Gaps = append(plan.Gaps, w.String()+": "+gap)
		}
		if asked.restarts && restartable(w) {
			groups[asked.interval] = append(groups[asked.interval], w)
		}
	}
	intervals := slices.Sorted(maps.Keys(groups))
	for _, interval := range intervals {
		made, labels := policyFor(namespace, groups[interval], all)
		if interval > 0 {
			made.Object.Name = "reload-every-" + strings.ReplaceAll(text.Duration(interval), ".", "-")
			made.Object.Spec.Restart.MinInterval = &metav1.Duration{Duration: interval}
		}
		plan.Policies = append(plan.Policies, made)
		plan.Labels = append(plan.Labels, labels...)
	}
	return plan
}

func restartable(w Workload) bool {
	switch v1alpha1.WorkloadKind(w.Kind) {
	case v1alpha1.Deployment, v1alpha1.StatefulSet, v1alpha1.DaemonSet:
		return true
	default:
		return false
	}
}

// policyFor selects some of the workloads of a namespace and no other.
func policyFor(namespace string, chosen, all []Workload) (Policy, []string) {
	object := &v1alpha1.KickPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "KickPolicy"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "reload"},
	}
	made := Policy{Object: object}
	for _, w := range chosen {
		made.Covers = append(made.Covers, w.String())
	}
	var others []Workload
	for _, w := range all {
		if restartable(w) && !slices.Contains(made.Covers, w.String()) {
			others = append(others, w)
		}
	}
	selector, found := selectorFor(chosen, others)
	object.Spec.Discovery.WorkloadSelector = selector
	if found {
		return made, nil
	}
	labels := make([]string, len(chosen))
	for i, w := range chosen {
		labels[i] = fmt.Sprintf("kubectl label %s -n %s %s=true", w, namespace, ManagedLabel)
	}
	return made, labels
}

// commonKeys are labels by which people tell workloads apart, in this order.
var commonKeys = []string{"app.kubernetes.io/name", "app", "k8s-app", "app.kubernetes.io/instance", "app.kubernetes.io/component", "name"}

// selectorFor finds a selector by the labels the workloads have. It reports false if there is none, and returns the one by
// the label they have to be given.
func selectorFor(chosen, others []Workload) (metav1.LabelSelector, bool) {
	if len(others) == 0 {
		return metav1.LabelSelector{}, true
	}
	for _, key := range commonKeys {
		values, ok := distinct(key, chosen, others)
		switch {
		case !ok:
		case len(values) == 1:
			return metav1.LabelSelector{MatchLabels: map[string]string{key: values[0]}}, true
		default:
			return metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
				Key: key, Operator: metav1.LabelSelectorOpIn, Values: values,
			}}}, true
		}
	}
	return metav1.LabelSelector{MatchLabels: map[string]string{ManagedLabel: "true"}}, false
}

// distinct returns the values of a label if all of the chosen have it, and none of the others one of theirs.
func distinct(key string, chosen, others []Workload) ([]string, bool) {
	var values []string
	for _, w := range chosen {
		value, labelled := w.Labels[key]
		if !labelled {
			return nil, false
		}
		values = append(values, value)
	}
	for _, w := range others {
		if value, labelled := w.Labels[key]; labelled && slices.Contains(values, value) {
			return nil, false
		}
	}
	slices.Sort(values)
	return slices.Compact(values), true
}

// read finds out what the annotations of a workload ask for.
func read(w Workload) wish {
	asked := wish{Workload: w}
	all := maps.Clone(w.TemplateAnnotations)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, w.Annotations)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if strings.Contains(name, reloader) || strings.HasPrefix(name, wave) {
			asked.annotation(name, all[name])
		}
	}
	if (asked.restarts || len(asked.gaps) > 0) && !restartable(w) {
		asked.gaps = []string{fmt.Sprintf("KICK restarts Deployments, StatefulSets and DaemonSets; a %s it leaves alone", w.Kind)}
	}
	asked.unnamed(all)
	return asked
}

func (w *wish) gap(format string, args ...any) { w.gaps = append(w.gaps, fmt.Sprintf(format, args...)) }

// annotations are what the known annotations ask for.
var annotations = map[string]func(w *wish, name, value string){
	reloaderAuto: (*wish).restart,
	waveUpdate:   (*wish).restart,
	secretAuto:   (*wish).oneKind, configMapAuto: (*wish).oneKind,
	secretReload:     func(w *wish, _, value string) { w.named(v1alpha1.Secret, value) },
	configMapReload:  func(w *wish, _, value string) { w.named(v1alpha1.ConfigMap, value) },
	reloaderSearch:   (*wish).search,
	secretExclude:    (*wish).exclude,
	configMapExclude: (*wish).exclude,
	reloaderStrategy: func(w *wish, _, value string) { w.strategy(value) },
	pausePeriod:      func(w *wish, _, value string) { w.pause(value) },
	waveConfigMaps:   func(w *wish, _, value string) { w.extra(v1alpha1.ConfigMap, value) },
	waveSecrets:      func(w *wish, _, value string) { w.extra(v1alpha1.Secret, value) },
	waveHash: func(w *wish, name, _ string) {
		w.gap("%s on the Pod template is Wave's mark; taking it away restarts the Pods once", name)
	},
}

// lastReloaded is the mark that Reloader leaves on a Pod template.
const lastReloaded = reloader + "/last-reloaded-from"

func (w *wish) annotation(name, value string) {
	if read, known := annotations[name]; known {
		read(w, name, value)
		return
	}
	if !strings.HasPrefix(name, lastReloaded) {
		w.gap("%s: %s has no equivalent", name, value)
	}
}

func (w *wish) restart(_, value string) { w.restarts = w.restarts || value == "true" }

func (w *wish) oneKind(name, value string) {
	if value == "true" {
		w.restarts = true
		w.gap("%s watches one kind of source; KICK watches Secrets and ConfigMaps alike, unless a dependencySelector narrows them", name)
	}
}

func (w *wish) search(name, value string) {
	if value == "true" {
		w.restarts = true
		w.gap("%s looks for sources with the annotation %s; give those a label, and put it into the dependencySelector",
			name, reloaderMatch)
	}
}

func (w *wish) exclude(name, value string) {
	w.gap("%s leaves out %s for this workload; the label %s=true on them does, for every workload", name, value, policy.IgnoreLabel)
}

func (w *wish) strategy(value string) {
	if value == "restart" {
		w.gap("%s: restart deletes Pods; KICK rolls the workload out, by its update strategy", reloaderStrategy)
	}
}

func (w *wish) pause(value string) {
	interval, err := time.ParseDuration(value)
	if err != nil {
		w.gap("%s: %q is no duration", pausePeriod, value)
		return
	}
	w.interval = interval
}

// named reads a list of sources that a workload is restarted for.
func (w *wish) named(kind v1alpha1.SourceKind, value string) {
	w.restarts = true
	for _, name := range split(value) {
		if !slices.Contains(w.Consumes, deps.Source{Kind: kind, Name: name}) {
			w.gap("the %s %s is named, and the Pod template does not refer to it: KICK restarts for what containers read", kind, name)
		}
	}
}

// unnamed says which sources KICK would restart for that the annotations do not name.
func (w *wish) unnamed(all map[string]string) {
	secrets, namesSecrets := all[secretReload]
	configMaps, namesConfigMaps := all[configMapReload]
	if !namesSecrets && !namesConfigMaps || all[reloaderAuto] == "true" || !restartable(w.Workload) {
		return
	}
	var more []string
	for _, source := range w.Consumes {
		named := split(secrets)
		if source.Kind == v1alpha1.ConfigMap {
			named = split(configMaps)
		}
		if !slices.Contains(named, source.Name) {
			more = append(more, source.String())
		}
	}
	if len(more) > 0 {
		w.gap("it reads %s, too, which the annotations do not name: KICK restarts it for them, unless they have the label %s=true "+
			"or the dependencySelector leaves them out", strings.Join(more, ", "), policy.IgnoreLabel)
	}
}

// extra reads the sources that Wave watches beside those that the Pod template refers to.
func (w *wish) extra(kind v1alpha1.SourceKind, value string) {
	for _, name := range split(value) {
		w.gap("the %s %s is watched beside what the Pod template refers to: KICK restarts for what containers read", kind, name)
	}
}

func split(list string) []string {
	var names []string
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// source reads the annotations of a source.
func (p *Plan) source(s Source) {
	if s.Annotations[reloaderIgnore] == "true" {
		p.Labels = append(p.Labels, fmt.Sprintf("kubectl label %s/%s -n %s %s=true",
			strings.ToLower(string(s.Kind)), s.Name, s.Namespace, policy.IgnoreLabel))
	}
}
