package integration

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kick-dev/kick/api/v1alpha1"
)

func keyOf(object client.Object) client.ObjectKey { return client.ObjectKeyFromObject(object) }

// ids are those of messages, each once.
func ids(messages []received) []string {
	var all []string
	for _, message := range messages {
		all = append(all, message.id)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// leakOf finds the token of the receivers in what everybody may read of a namespace, and in KICK's logs.
func leakOf(ctx context.Context, namespace string) []string {
	GinkgoHelper()
	var leaks []string
	look := func(what string, content any) {
		text, err := yaml.Marshal(content)
		Expect(err).NotTo(HaveOccurred())
		if strings.Contains(string(text), hookToken) {
			leaks = append(leaks, what)
		}
	}
	var notifications v1alpha1.KickNotificationList
	var requests v1alpha1.KickRequestList
	var events eventsv1.EventList
	for what, list := range map[string]client.ObjectList{"notifications": &notifications, "requests": &requests, "events": &events} {
		Expect(k8s.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
		look(what, list)
	}
	read := 0
	Expect(filepath.WalkDir(filepath.Join(bed.Dir(), "logs"), func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() == "audit.log" {
			return err
		}
		text, err := os.ReadFile(path)
		read += len(text)
		if strings.Contains(string(text), hookToken) {
			leaks = append(leaks, path)
		}
		return err
	})).To(Succeed())
	Expect(read).NotTo(BeZero())
	return leaks
}

// The hosts that messages may go to are those of these specs while they run.
var _ = Describe("A KickNotification", Serial, Ordered, func() {
	BeforeAll(func(ctx SpecContext) { permitHosts(ctx, "http://127.0.0.1:*") }, NodeTimeout(patience*2))
	AfterAll(func(ctx SpecContext) { permitHosts(ctx) }, NodeTimeout(patience*2))

	It("tells how restarts end, in each format, and what waits too long", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		plain, clouds, slack := newReceiver(), newReceiver(), newReceiver()
		good, bad := secret(namespace, "good", "1"), secret(namespace, "bad", "1")
		w, stuck := deployment(namespace, "web", envFromSecret("good")), deployment(namespace, "stuck", unready, envFromSecret("bad"))
		create(ctx, good, bad, w, stuck)
		rolledOut(ctx, w)
		rolledOutByHand(ctx, stuck)
		create(ctx, impatient(namespace), plain.hook(namespace, "plain"), clouds.hook(namespace, "clouds"), slack.hook(namespace, "slack"))
		reached(ctx, v1alpha1.PhaseNoLongerRequired, w, stuck)
		create(ctx, notification(namespace, "plain"), notification(namespace, "clouds", inFormat(v1alpha1.FormatCloudEvents)),
			notification(namespace, "slack", inFormat(v1alpha1.FormatSlack)))
		notifying(ctx, notification(namespace, "plain"), v1alpha1.ReasonSucceeded)

		rewrite(ctx, good, "2")
		rewrite(ctx, bad, "2")
		reached(ctx, v1alpha1.PhaseSucceeded, w)
		reached(ctx, v1alpha1.PhaseFailed, stuck)
		for _, r := range []*receiver{plain, clouds, slack} {
			Eventually(r.got).WithContext(ctx).Should(HaveLen(2))
		}
		Expect(plain.about("web")).To(Equal([]string{"Succeeded"}))
		Expect(plain.about("stuck")).To(Equal([]string{"Failed"}))
		told := plain.got()[0]
		Expect(told.path).To(Equal("/" + hookToken))
		Expect(told.header.Get("Authorization")).To(Equal("Bearer " + hookToken))
		Expect(told.body).To(HaveKeyWithValue("request", "deployment-web"))
		Expect(told.body).To(HaveKeyWithValue("reason", v1alpha1.ReasonSucceeded))
		Expect(told.body["causes"]).To(ConsistOf(And(HaveKeyWithValue("kind", "Secret"), HaveKeyWithValue("name", "good"))))
		Expect(told.body).To(HaveKeyWithValue("id", told.id))
		Expect(clouds.got()[0].header.Get("Content-Type")).To(Equal("application/cloudevents+json"))
		Expect(clouds.got()[0].body).To(HaveKeyWithValue("type", "dev.kick.request.succeeded"))
		Expect(slack.got()[0].body["text"]).To(HavePrefix("Deployment web in " + namespace + " was restarted"))
		Expect(ids(clouds.got())).To(Equal(ids(plain.got())))
		Expect(ids(slack.got())).To(Equal(ids(plain.got())))

		change(ctx, notification(namespace, "plain"), func(n *v1alpha1.KickNotification) {
			n.Spec.WaitingThreshold = &metav1.Duration{Duration: time.Minute}
		})
		change(ctx, everything(namespace), func(p *v1alpha1.KickPolicy) { p.Spec.Suspend = true })
		rewrite(ctx, good, "3")
		Eventually(func() []string { return plain.about("web") }).WithContext(ctx).Should(Equal([]string{"Succeeded", "WaitingTooLong"}))
		Expect(plain.got()[2].body).To(HaveKeyWithValue("reason", v1alpha1.ReasonPolicySuspended))
		Expect(leakOf(ctx, namespace)).To(BeEmpty())
	}, NodeTimeout(patience*4))

	It("tries again with the same id while the receiver fails, and holds up no restart", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		hook := newReceiver()
		hook.answers(status500)
		source, w := secret(namespace, "db", "1"), deployment(namespace, "web", envFromSecret("db"))
		adopted(ctx, namespace, source, w)
		n := notification(namespace, "ops")
		watching(ctx, hook, n)

		rewrite(ctx, source, "2")
		failing := notifying(ctx, n, v1alpha1.ReasonDeliveryFailing)
		Expect(failing.Status).To(Equal(metav1.ConditionFalse))
		Expect(failing.Message).To(HavePrefix("the receiver answers with status 500"))
		Expect(kstatus(GinkgoT(), n)).To(Equal(status.InProgressStatus))
		rewrite(ctx, source, "3")
		Eventually(func() int { return revisions(ctx, w) }).WithContext(ctx).Should(Equal(3))
		reached(ctx, v1alpha1.PhaseSucceeded, w)

		Eventually(func() int { return len(hook.tried()) }).WithContext(ctx).Should(BeNumerically(">", 2))
		hook.answers(nil)
		notifying(ctx, n, v1alpha1.ReasonSucceeded)
		Eventually(func() []string { return hook.about("web") }).WithContext(ctx).Should(Equal([]string{"Succeeded", "Succeeded"}),
			"the end of each restart, though the first was replaced by the second")
		Expect(ids(hook.tried())).To(HaveLen(2))
	}, NodeTimeout(patience*3))

	It("does not let the others wait for a receiver that does not answer", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		slow, hook := newReceiver(), newReceiver()
		release := make(chan struct{})
		DeferCleanup(func() { close(release) })
		slow.answers(func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-release:
			case <-r.Context().Done():
			}
		})
		source, w := secret(namespace, "db", "1"), deployment(namespace, "web", envFromSecret("db"))
		adopted(ctx, namespace, source, w)
		watching(ctx, slow, notification(namespace, "slow"))
		watching(ctx, hook, notification(namespace, "ops"))
		rewrite(ctx, source, "2")
		Eventually(func() int { return len(slow.tried()) }).WithContext(ctx).Should(Equal(1))
		Eventually(func() []string { return hook.about("web") }).WithContext(ctx).Should(Equal([]string{"Succeeded"}))
		failing := notifying(ctx, notification(namespace, "slow"), v1alpha1.ReasonDeliveryFailing)
		Expect(failing.Message).To(HavePrefix("the receiver does not answer in time"))
	}, NodeTimeout(patience*2))

	It("follows no redirect, and repeats nothing of what it was answered", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		hook, elsewhere := newReceiver(), newReceiver()
		hook.answers(http.RedirectHandler(elsewhere.server.URL+"/"+hookToken, http.StatusTemporaryRedirect).ServeHTTP)
		source, w := secret(namespace, "db", "1"), deployment(namespace, "web", envFromSecret("db"))
		adopted(ctx, namespace, source, w)
		n := notification(namespace, "ops")
		watching(ctx, hook, n)
		rewrite(ctx, source, "2")
		Expect(notifying(ctx, n, v1alpha1.ReasonDeliveryFailing).Message).To(ContainSubstring("redirects are not followed"))
		reached(ctx, v1alpha1.PhaseSucceeded, w)
		Expect(elsewhere.tried()).To(BeEmpty())
		Expect(leakOf(ctx, namespace)).To(BeEmpty())
	}, NodeTimeout(patience*2))

	It("tells at least once across a restart of KICK, and not again what it has told", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		hook := newReceiver()
		source, w := secret(namespace, "db", "1"), deployment(namespace, "web", envFromSecret("db"))
		adopted(ctx, namespace, source, w)
		n := notification(namespace, "ops")
		watching(ctx, hook, n)
		rewrite(ctx, source, "2")
		Eventually(func() []string { return hook.about("web") }).WithContext(ctx).Should(HaveLen(1))

		hook.answers(status500)
		rewrite(ctx, source, "3")
		notifying(ctx, n, v1alpha1.ReasonDeliveryFailing)
		missed := hook.tried()[1].id
		Eventually(func(g Gomega) {
			found, err := requestOf(ctx, w)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found.Annotations).To(HaveKeyWithValue(v1alpha1.NotificationRecordPrefix+"ops", ContainSubstring(missed)))
		}).WithContext(ctx).Should(Succeed())
		// The request opens again, so that its status no longer shows the end that was not told.
		change(ctx, everything(namespace), func(p *v1alpha1.KickPolicy) { p.Spec.Suspend = true })
		rewrite(ctx, source, "4")
		reached(ctx, v1alpha1.PhaseWaitingForGate, w)
		scaleKick(ctx, 0)
		hook.answers(nil)
		scaleKick(ctx, 2)

		Eventually(func() []string { return ids(hook.got()) }).WithContext(ctx).Should(ContainElement(missed))
		change(ctx, everything(namespace), func(p *v1alpha1.KickPolicy) { p.Spec.Suspend = false })
		Eventually(func() []string { return hook.about("web") }).WithContext(ctx).Should(HaveLen(3))
		scaleKick(ctx, 0)
		scaleKick(ctx, 2)
		barrier(ctx, namespace)
		Eventually(func() bool {
			return slices.ContainsFunc(hook.got(), func(r received) bool { return r.body["request"] != "deployment-web" })
		}).
			WithContext(ctx).Should(BeTrue(), "the canary is told about, after everything before it")
		Expect(hook.about("web")).To(Equal([]string{"Succeeded", "Succeeded", "Succeeded"}))
	}, NodeTimeout(patience*5))

	It("says why it cannot send, and goes on once that is mended", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		hook := newReceiver()
		source, w := secret(namespace, "db", "1"), deployment(namespace, "web", envFromSecret("db"))
		adopted(ctx, namespace, source, w)
		n := notification(namespace, "ops")
		nextSecond()
		create(ctx, n)
		Expect(notifying(ctx, n, v1alpha1.ReasonSecretMissing).Message).To(ContainSubstring("the Secret ops does not exist"))
		Expect(kstatus(GinkgoT(), n)).To(Equal(status.FailedStatus))
		rewrite(ctx, source, "2")
		reached(ctx, v1alpha1.PhaseSucceeded, w)

		target := hook.hook(namespace, "ops")
		url := target.Data["url"]
		target.Labels, target.Data["url"] = nil, []byte("https://elsewhere.example.com/"+hookToken)
		create(ctx, target)
		Expect(notifying(ctx, n, v1alpha1.ReasonSecretNotPermitted).Message).To(ContainSubstring(`kick.dev/notification: "true"`))
		change(ctx, target, func(s *corev1.Secret) { s.Labels = map[string]string{v1alpha1.NotificationSecretLabel: "true"} })
		Expect(notifying(ctx, n, v1alpha1.ReasonHostNotPermitted).Message).To(And(
			ContainSubstring("notifications.allowedHosts"), Not(ContainSubstring("elsewhere"))))
		change(ctx, target, func(s *corev1.Secret) { s.Data["url"] = []byte("ftp://" + hookToken) })
		Expect(notifying(ctx, n, v1alpha1.ReasonSecretInvalid).Message).To(ContainSubstring("its key url holds no URL"))
		Expect(hook.tried()).To(BeEmpty())

		change(ctx, target, func(s *corev1.Secret) { s.Data["url"] = url })
		notifying(ctx, n, v1alpha1.ReasonSucceeded)
		Expect(kstatus(GinkgoT(), n)).To(Equal(status.CurrentStatus))
		Eventually(func() []string { return hook.about("web") }).WithContext(ctx).Should(Equal([]string{"Succeeded"}))
		Expect(leakOf(ctx, namespace)).To(BeEmpty())
	}, NodeTimeout(patience*3))

	It("is refused with the field that is at fault", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		for want, edit := range map[string]func(*v1alpha1.KickNotification){
			"spec.events: Invalid value: 0":        func(n *v1alpha1.KickNotification) { n.Spec.Events = []v1alpha1.NotificationEvent{} },
			"spec.events[0]: Unsupported value":    func(n *v1alpha1.KickNotification) { n.Spec.Events[0] = "Started" },
			"spec.events[1]: Duplicate value":      func(n *v1alpha1.KickNotification) { n.Spec.Events[1] = n.Spec.Events[0] },
			"waitingThreshold must be at least 1m": func(n *v1alpha1.KickNotification) { n.Spec.WaitingThreshold = &metav1.Duration{Duration: time.Second} },
			"spec.format: Unsupported value":       func(n *v1alpha1.KickNotification) { n.Spec.Format = "XML" },
			"spec.secretRef.name":                  func(n *v1alpha1.KickNotification) { n.Spec.SecretRef.Name = "" },
			"metadata.name must have at most 63":   func(n *v1alpha1.KickNotification) { n.Name = longName(64) },
		} {
			n := notification(namespace, "ops")
			edit(n)
			Expect(k8s.Create(ctx, n, client.DryRunAll)).To(MatchError(ContainSubstring(want)))
		}
	}, NodeTimeout(patience))
})
