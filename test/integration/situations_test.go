package integration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/kubectl/explain"
	"github.com/kick-dev/kick/test/testbed"
)

// situation is a workload with its sources, its policy and what happens to them: all drawn at random, none aware of any
// other. What happens is in three acts: KICK acts, then it may only watch since the policy is suspended, then it is away.
type situation struct {
	name, namespace string
	// told is how it was drawn, for whoever reads of a failure.
	told []string

	workload client.Object
	sources  []client.Object
	plan     *v1alpha1.KickPolicy
	// neighbour restarts under the same policy when the workload wants to, nil for none, and that takes long.
	neighbour client.Object

	// unready Pods are held unready, onDelete ones replaced by nobody, and rolling is a rollout that does not end.
	unready, onDelete, rolling, paused bool
	// hurried is true where a rollout may take a second only, which on a busy machine it does not keep to.
	hurried bool
	// acting is true where the policy is not suspended at first, and restarts where a restart was made then.
	acting, restarts bool

	watched, away []step
	// edit is what the policy has become when KICK comes back.
	edit func(*v1alpha1.KickPolicySpec)

	// What there is when KICK comes back: what explain says, the number of revisions, and the stamp.
	foretold  explain.Report
	revisions int
	stamp     string
}

// step is one thing that happens.
type step struct {
	name string
	do   func(ctx context.Context)
}

func (s *situation) String() string {
	return fmt.Sprintf("%s/%s %s (%s)", s.namespace, kubectlName(s.workload), s.name, strings.Join(s.told, "; "))
}

// draw makes a situation.
type draw struct {
	*rand.Rand
	*situation
}

// drawSituation draws one, the same for the same numbers.
func drawSituation(numbers *rand.Rand, namespace, name string) *situation {
	d := draw{numbers, &situation{name: name, namespace: namespace, edit: func(*v1alpha1.KickPolicySpec) {}}}
	d.plan = labelled(namespace, name)
	d.drawWorkload()
	d.drawBefore()
	d.drawWatched()
	d.drawAway()
	d.drawPolicy()
	return d.situation
}

// chance is true once in so many times.
func (d draw) chance(of int) bool { return d.IntN(of) == 0 }

func (d draw) tell(format string, args ...any) { d.told = append(d.told, fmt.Sprintf(format, args...)) }

func pick[T any](d draw, from []T) T { return from[d.IntN(len(from))] }

// ways of reading a Secret or a ConfigMap. An envOfKey reads one key, the others all.
var (
	secretWays    = map[string]func(string) use{"env": envOfSecretKey, "envFrom": envFromSecret, "volume": secretVolume, "optional": optionalSecret}
	configMapWays = map[string]func(string) use{"env": envOfConfigMapKey, "envFrom": envFromConfigMap, "volume": func(name string) use { return configMapVolume(name, "") }}
)

func (d draw) drawWorkload() {
	var uses []use
	mounted := false
	for i := range 1 + d.IntN(3) {
		name := fmt.Sprintf("%s-%d", d.name, i)
		ways, source := secretWays, client.Object(secret(d.namespace, name, "1"))
		if d.chance(2) {
			ways, source = configMapWays, configMap(d.namespace, name, "1")
		}
		way := pick(d, []string{"env", "envFrom", "envFrom", "volume"})
		switch {
		case way == "volume" && mounted:
			way = "envFrom"
		case way == "envFrom" && ways["optional"] != nil && d.chance(4):
			way = "optional"
		case way == "env" && i > 0: // The one variable that is set so is taken.
			way = "envFrom"
		}
		mounted = mounted || way == "volume"
		uses = append(uses, ways[way](name))
		d.sources = append(d.sources, source)
		d.tell("reads %T by %s", source, way)
	}
	if d.chance(8) {
		uses = append(uses, optionalSecret(d.name+"-nowhere"))
		d.tell("and an optional Secret that does not exist")
	}
	d.unready = d.chance(8)
	if d.unready {
		uses = append(uses, unready)
		d.tell("whose new Pods are not ready")
	}
	switch count := int32(1 + d.IntN(2)); d.IntN(4) { //nolint:gosec // one or two
	case 0:
		w := statefulSet(d.namespace, d.name, uses...)
		w.Spec.Replicas = ptr.To(count)
		if d.onDelete = !d.unready && d.chance(3); d.onDelete {
			w.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
		}
		d.workload = w
	case 1:
		w := daemonSet(d.namespace, d.name, uses...)
		if d.onDelete = !d.unready && d.chance(3); d.onDelete {
			w.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
		}
		d.workload = w
	default:
		w := deployment(d.namespace, d.name, uses...)
		w.Spec.Replicas = ptr.To(count)
		d.workload = w
	}
	if d.onDelete {
		d.tell("OnDelete")
	}
}

// drawBefore draws what KICK does before it may only watch.
func (d draw) drawBefore() {
	d.acting = d.chance(2)
	if d.acting {
		d.tell("managed before")
	}
	if d.restarts = d.acting && d.chance(2); d.restarts {
		d.tell("and restarted")
	}
	if d.restarts && !d.unready && !d.onDelete && d.chance(5) {
		d.neighbour = deployment(d.namespace, d.name+"-neighbour", envFromSecret(d.name+"-neighbour"), unready)
		d.plan.Spec.Discovery.WorkloadSelector = expression("app", "In", d.name, d.name+"-neighbour")
		d.tell("with a neighbour whose restart is under way")
	}
	d.plan.Spec.Suspend = !d.acting
}

// steps that may be taken while KICK watches and while it is away. A step of which nothing can come is not offered.
func (d draw) steps() []step {
	s, source := d.situation, pick(d, d.sources)
	steps := []step{
		{"touched", func(ctx context.Context) { label(ctx, source, "touched", "yes") }},
		{"deleted and made again", func(ctx context.Context) { madeAgain(ctx, source) }},
		{"ignored", func(ctx context.Context) { label(ctx, source, "kick.dev/ignore", "true") }},
		{"deleted", func(ctx context.Context) { Expect(client.IgnoreNotFound(k8s.Delete(ctx, source))).To(Succeed()) }},
		{"without its key", func(ctx context.Context) { setKey(ctx, source, "key", nil) }},
		{"with another key", func(ctx context.Context) { setKey(ctx, source, "other", ptr.To("1")) }},
		{"Pods replaced", func(ctx context.Context) {
			nextSecond()
			deletePods(ctx, s.workload)
		}},
		{"request deleted", func(ctx context.Context) {
			Expect(client.IgnoreNotFound(k8s.Delete(ctx, requestFor(s.workload)))).To(Succeed())
		}},
		{"asked by hand", func(ctx context.Context) { askByHand(ctx, s.workload, false) }},
		{"asked by hand, with override", func(ctx context.Context) { askByHand(ctx, s.workload, true) }},
		{"rolled out", func(ctx context.Context) {
			editTemplate(ctx, s.workload, func(t *corev1.PodTemplateSpec) { t.Annotations = withKey(t.Annotations, "release", "2") })
		}},
		{"a source no longer read", func(ctx context.Context) {
			editTemplate(ctx, s.workload, func(t *corev1.PodTemplateSpec) { app(t).Env, app(t).EnvFrom = nil, nil })
		}},
		{"scaled to zero", func(ctx context.Context) { scaleTo(ctx, s.workload, 0) }},
	}
	if kindOf(s.workload) == v1alpha1.Deployment && !s.paused {
		steps = append(steps, step{"paused", func(ctx context.Context) {
			change(ctx, s.workload, func(w client.Object) { w.(*appsv1.Deployment).Spec.Paused = true })
		}})
	}
	if !s.onDelete && !s.unready && !s.paused {
		steps = append(steps, step{"rolling out", func(ctx context.Context) {
			editTemplate(ctx, s.workload, func(t *corev1.PodTemplateSpec) { t.Labels[testbed.LabelNeverReady] = "true" })
		}})
	}
	return steps
}

// take draws one of the steps, and keeps in mind what that means for the workload.
func (d draw) take(when string, from []step) step {
	drawn := pick(d, from)
	d.tell("%s: %s", when, drawn.name)
	d.paused = d.paused || drawn.name == "paused"
	d.rolling = d.rolling || drawn.name == "rolling out"
	return drawn
}

func (d draw) changed(when string) step {
	source := pick(d, d.sources)
	value := fmt.Sprint(d.Int())
	d.tell("%s: changed", when)
	return step{"changed", func(ctx context.Context) { setKey(ctx, source, "key", &value) }}
}

func (d draw) drawWatched() {
	const when = "watched"
	if !d.chance(5) {
		d.watched = append(d.watched, d.changed(when))
	}
	if d.chance(2) {
		d.watched = append(d.watched, d.take(when, d.steps()))
	}
}

func (d draw) drawAway() {
	const when = "away"
	if d.chance(8) {
		d.away = append(d.away, d.changed(when))
	}
	if d.chance(4) {
		s := d.situation
		steps := append(d.steps(),
			step{"made anew", func(ctx context.Context) { recreate(ctx, s.workload) }},
			step{"policy deleted", func(ctx context.Context) { remove(ctx, s.plan.DeepCopy()) }},
			step{"stamp removed", func(ctx context.Context) {
				editTemplate(ctx, s.workload, func(t *corev1.PodTemplateSpec) { delete(t.Annotations, v1alpha1.RestartedAtAnnotation) })
			}},
			step{"stamped by somebody", func(ctx context.Context) {
				editTemplate(ctx, s.workload, func(t *corev1.PodTemplateSpec) {
					t.Annotations = withKey(t.Annotations, v1alpha1.RestartedAtAnnotation, time.Now().UTC().Format(time.RFC3339))
				})
			}},
			step{"ready by hand", func(ctx context.Context) { unlabelled(ctx, testbed.LabelNeverReady, s.workload) }},
		)
		d.away = append(d.away, d.take(when, steps))
	}
}

// amendment is something a policy says when KICK comes back, with what has to be there for it.
type amendment struct {
	name   string
	edit   func(*v1alpha1.KickPolicySpec)
	before func(ctx context.Context)
}

const shortDeadline = "a short deadline"

func lasts(length time.Duration) *metav1.Duration { return &metav1.Duration{Duration: length} }

// amendments are far from every instant at which they would begin to mean something else.
func (d draw) amendments() []amendment {
	s := d.situation
	window := func(kind v1alpha1.WindowKind, begins time.Duration) func(*v1alpha1.KickPolicySpec) {
		cron := at(time.Now().UTC().Add(begins))
		return func(p *v1alpha1.KickPolicySpec) {
			p.Schedule.Windows = append(p.Schedule.Windows, v1alpha1.Window{Kind: kind, Cron: cron, Duration: "8h", TimeZone: "UTC"})
		}
	}
	cron := func(text string) func(*v1alpha1.KickPolicySpec) {
		return func(p *v1alpha1.KickPolicySpec) {
			p.Schedule = windows(v1alpha1.Window{Kind: v1alpha1.WindowAllow, Cron: text, Duration: "1h", TimeZone: "UTC"})
		}
	}
	provider := func(tool v1alpha1.GitOpsProvider) func(*v1alpha1.KickPolicySpec) {
		return func(p *v1alpha1.KickPolicySpec) { p.GitOps.Provider = tool }
	}
	flux, argo := provider(v1alpha1.ProviderFlux), provider(v1alpha1.ProviderArgoCD)
	return []amendment{
		{"a window that is open", window(v1alpha1.WindowAllow, -4*time.Hour), nil},
		{"a window that opens later", window(v1alpha1.WindowAllow, 4*time.Hour), nil},
		{"a freeze", window(v1alpha1.WindowDeny, -4*time.Hour), nil},
		{"a freeze later", window(v1alpha1.WindowDeny, 4*time.Hour), nil},
		{"a schedule that is none", cron("60 25 * * *"), nil},
		{"a window that never opens", cron("0 0 30 2 *"), nil},
		{"a dry run", func(p *v1alpha1.KickPolicySpec) { p.DryRun = true }, nil},
		{"suspended", func(p *v1alpha1.KickPolicySpec) { p.Suspend = true }, nil},
		{"a long quiet period", func(p *v1alpha1.KickPolicySpec) {
			p.Restart.QuietPeriod, p.Restart.MaxQuiet = lasts(time.Hour), lasts(2*time.Hour)
		}, nil},
		{"a long interval", func(p *v1alpha1.KickPolicySpec) { p.Restart.MinInterval = lasts(time.Hour) }, nil},
		{"keys", func(p *v1alpha1.KickPolicySpec) { p.Discovery.Granularity = v1alpha1.GranularityKey }, nil},
		{"sources of a label none has", func(p *v1alpha1.KickPolicySpec) {
			p.Discovery.DependencySelector = ptr.To(expression("tier", "Exists"))
		}, nil},
		{"the first source alone", func(p *v1alpha1.KickPolicySpec) {
			p.Discovery.DependencySelector = ptr.To(expression("app", "In", s.sources[0].GetName()))
		}, nil},
		{"other workloads", func(p *v1alpha1.KickPolicySpec) { p.Discovery.WorkloadSelector = expression("app", "In", "other") }, nil},
		{shortDeadline, func(p *v1alpha1.KickPolicySpec) { p.Restart.RolloutDeadline = lasts(time.Second) }, nil},
		{"one at a time", func(p *v1alpha1.KickPolicySpec) { p.Restart.MaxConcurrent = ptr.To[int32](1) }, nil},
		{"Flux, that does not know it", flux, nil},
		{"Flux, in sync", flux, func(ctx context.Context) { s.fluxOwner(ctx, "flux", ready(s.workload)) }},
		{"Flux, at work", flux, func(ctx context.Context) {
			s.fluxOwner(ctx, "flux", ready(s.workload), conditions(condition("Ready", "Unknown", "Progressing", 1), condition("Reconciling", "True", "Progressing", 1)))
		}},
		{"Flux, failed", flux, func(ctx context.Context) {
			s.fluxOwner(ctx, "flux", ready(s.workload), conditions(condition("Stalled", "True", "InvalidPath", 1)))
		}},
		{"Flux, twice", flux, func(ctx context.Context) {
			s.fluxOwner(ctx, "one", ready(s.workload))
			s.fluxOwner(ctx, "two", ready(s.workload))
		}},
		{"Argo CD, that does not know it", argo, nil},
		{"Argo CD, in sync", argo, func(ctx context.Context) { s.argoOwner(ctx) }},
		{"Argo CD, out of sync", argo, func(ctx context.Context) { s.argoOwner(ctx, having("OutOfSync", "status", "sync", "status")) }},
		{"Argo CD, at work", argo, func(ctx context.Context) {
			s.argoOwner(ctx, having("Running", "status", "operationState", "phase"))
		}},
		{"Argo CD, frozen", argo, func(ctx context.Context) {
			s.argoOwner(ctx)
			change(ctx, project(s.namespace, s.name), having([]any{object{
				"kind": "deny", "schedule": "0 0 * * *", "duration": "24h", "applications": []any{"*"},
			}}, "spec", "syncWindows"))
		}},
		{"any tool, in sync", provider(v1alpha1.ProviderAuto), func(ctx context.Context) { s.argoOwner(ctx) }},
		{"a second policy that is suspended", nil, func(ctx context.Context) {
			s.secondPolicy(ctx, func(p *v1alpha1.KickPolicySpec) { p.Suspend = true })
		}},
		{"a second policy that is a dry run", nil, func(ctx context.Context) {
			s.secondPolicy(ctx, func(p *v1alpha1.KickPolicySpec) { p.DryRun = true })
		}},
		{"a second policy that opens later", nil, func(ctx context.Context) {
			s.secondPolicy(ctx, window(v1alpha1.WindowAllow, 4*time.Hour))
		}},
	}
}

func (d draw) drawPolicy() {
	if d.neighbour != nil {
		d.edit = func(p *v1alpha1.KickPolicySpec) { p.Restart.MaxConcurrent = ptr.To[int32](1) }
		return
	}
	if d.chance(3) {
		return
	}
	drawn := []amendment{pick(d, d.amendments())}
	if d.chance(4) {
		drawn = append(drawn, pick(d, d.amendments()))
	}
	if len(drawn) == 2 && drawn[0].before != nil && drawn[1].before != nil {
		drawn = drawn[:1] // Both would make the same objects.
	}
	for _, a := range drawn {
		d.tell("policy: %s", a.name)
		d.hurried = d.hurried || a.name == shortDeadline
		if a.before != nil {
			d.away = slices.Insert(d.away, 0, step{a.name, a.before})
		}
		if a.edit != nil {
			earlier := d.edit
			d.edit = func(p *v1alpha1.KickPolicySpec) {
				earlier(p)
				a.edit(p)
			}
		}
	}
}

// fluxOwner is a Kustomization that owns the workload.
func (s *situation) fluxOwner(ctx context.Context, suffix string, status ...func(o *unstructured.Unstructured)) {
	GinkgoHelper()
	owner := newObject(kustomizations, s.namespace, s.name+"-"+suffix, object{"spec": object{"interval": "1m"}})
	create(ctx, owner)
	report(ctx, owner, status...)
}

// argoOwner is an Application that owns the workload, in a project of its own.
func (s *situation) argoOwner(ctx context.Context, edits ...func(o *unstructured.Unstructured)) {
	GinkgoHelper()
	owner := application(s.namespace, s.name, s.workload)
	put(owner, s.name, "spec", "project")
	for _, edit := range edits {
		edit(owner)
	}
	create(ctx, project(s.namespace, s.name), owner)
	change(ctx, s.workload, func(w client.Object) {
		annotations := w.GetAnnotations()
		for key, value := range tracked(w, s.name).GetAnnotations() {
			annotations = withKey(annotations, key, value)
		}
		w.SetAnnotations(annotations)
	})
}

// secondPolicy selects the workload, too.
func (s *situation) secondPolicy(ctx context.Context, edit func(*v1alpha1.KickPolicySpec)) {
	GinkgoHelper()
	second := labelled(s.namespace, s.name)
	second.Name += "-second"
	edit(&second.Spec)
	create(ctx, second)
}

// label sets a label of an object that may be gone.
func label(ctx context.Context, o client.Object, key, value string) {
	GinkgoHelper()
	present(ctx, o, func() { o.SetLabels(withKey(o.GetLabels(), key, value)) })
}

func withKey(in map[string]string, key, value string) map[string]string {
	if in == nil {
		in = map[string]string{}
	}
	in[key] = value
	return in
}

// setKey sets a key of a source that may be gone, or removes it.
func setKey(ctx context.Context, source client.Object, key string, value *string) {
	GinkgoHelper()
	present(ctx, source, func() {
		switch s := source.(type) {
		case *corev1.Secret:
			delete(s.Data, key)
			if value != nil {
				s.Data = withBytes(s.Data, key, *value)
			}
		case *corev1.ConfigMap:
			delete(s.Data, key)
			if value != nil {
				s.Data = withKey(s.Data, key, *value)
			}
		}
	})
}

func withBytes(in map[string][]byte, key, value string) map[string][]byte {
	if in == nil {
		in = map[string][]byte{}
	}
	in[key] = []byte(value)
	return in
}

// madeAgain deletes a source and makes one with the same content, unless it is gone.
func madeAgain(ctx context.Context, source client.Object) {
	GinkgoHelper()
	if k8s.Get(ctx, client.ObjectKeyFromObject(source), source) != nil {
		return
	}
	Expect(k8s.Delete(ctx, source)).To(Succeed())
	source.SetResourceVersion("")
	source.SetUID("")
	create(ctx, source)
}

// present edits an object, unless it is gone.
func present(ctx context.Context, o client.Object, edit func()) {
	GinkgoHelper()
	Eventually(func() error {
		if err := k8s.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return client.IgnoreNotFound(err)
		}
		edit()
		return k8s.Update(ctx, o)
	}).WithContext(ctx).Should(Succeed())
}

func editTemplate(ctx context.Context, w client.Object, edit func(*corev1.PodTemplateSpec)) {
	GinkgoHelper()
	change(ctx, w, func(w client.Object) { edit(templateOf(w)) })
}

// scaleTo sets the number of Pods, of a DaemonSet by way of the nodes it wants.
func scaleTo(ctx context.Context, w client.Object, count int32) {
	GinkgoHelper()
	change(ctx, w, func(w client.Object) {
		switch w := w.(type) {
		case *appsv1.Deployment:
			w.Spec.Replicas = &count
		case *appsv1.StatefulSet:
			w.Spec.Replicas = &count
		case *appsv1.DaemonSet:
			w.Spec.Template.Spec.NodeSelector = map[string]string{"no-node-has": "this"}
		}
	})
}

func requestFor(w client.Object) *v1alpha1.KickRequest { return asking(w, "admin") }

// askByHand asks for a restart, whether there is a request already or not.
func askByHand(ctx context.Context, w client.Object, override bool) {
	GinkgoHelper()
	refresh(ctx, w)
	Eventually(func() error {
		asked := asking(w, "admin")
		asked.Spec.Manual.Override = override
		found, err := requestOf(ctx, w)
		if err != nil {
			return k8s.Create(ctx, asked)
		}
		found.Spec.Manual = asked.Spec.Manual
		return k8s.Update(ctx, found)
	}).WithContext(ctx).Should(Succeed())
}

// recreate makes a workload of the same name anew.
func recreate(ctx context.Context, w client.Object) {
	GinkgoHelper()
	refresh(ctx, w)
	Expect(k8s.Delete(ctx, w, client.PropagationPolicy(metav1.DeletePropagationForeground))).To(Succeed())
	Eventually(func() error { return k8s.Get(ctx, client.ObjectKeyFromObject(w), w.DeepCopyObject().(client.Object)) }).
		WithContext(ctx).ShouldNot(Succeed())
	Eventually(func() []corev1.Pod { return podsOf(ctx, w) }).WithContext(ctx).Should(BeEmpty())
	w.SetResourceVersion("")
	w.SetUID("")
	w.SetOwnerReferences(nil)
	create(ctx, w)
}
