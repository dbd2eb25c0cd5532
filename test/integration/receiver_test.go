package integration

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kick-dev/kick/api/v1alpha1"
)

// hookToken is in the URL and in the headers of the receivers of these tests, and may be nowhere else.
const hookToken = "t0k3n-of-the-receiver"

// received is a message that came in.
type received struct {
	id     string
	header http.Header
	path   string
	body   map[string]any
}

// receiver takes messages on loopback.
type receiver struct {
	server *httptest.Server

	mu       sync.Mutex
	answer   http.HandlerFunc // nil takes everything
	attempts []received
	taken    []received
}

// newReceiver starts a receiver for a spec.
func newReceiver() *receiver {
	r := &receiver{}
	r.server = httptest.NewServer(http.HandlerFunc(r.serve))
	DeferCleanup(r.server.Close)
	return r
}

func (r *receiver) serve(w http.ResponseWriter, request *http.Request) {
	text, _ := io.ReadAll(request.Body)
	message := received{id: request.Header.Get("Idempotency-Key"), header: request.Header, path: request.URL.Path}
	_ = json.Unmarshal(text, &message.body)
	r.mu.Lock()
	r.attempts = append(r.attempts, message)
	answer := r.answer
	if answer == nil {
		r.taken = append(r.taken, message)
	}
	r.mu.Unlock()
	if answer != nil {
		answer(w, request)
	}
}

// answers has the receiver answer like this, and take no message; nil has it take them.
func (r *receiver) answers(answer http.HandlerFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

// status500 is a receiver that is broken.
func status500(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }

// got lists the messages that were taken.
func (r *receiver) got() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.taken)
}

// tried lists the messages that came in, taken or not.
func (r *receiver) tried() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.attempts)
}

// about lists the messages about a workload, by type, that were taken.
func (r *receiver) about(name string) []string {
	var types []string
	for _, message := range r.got() {
		if workload, _ := message.body["workload"].(map[string]any); workload["name"] == name {
			types = append(types, message.body["type"].(string))
		}
	}
	return types
}

// hook is the Secret of the receiver.
func (r *receiver) hook(namespace, name string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: map[string]string{v1alpha1.NotificationSecretLabel: "true"},
		},
		Data: map[string][]byte{
			v1alpha1.NotificationURLKey:     []byte(r.server.URL + "/" + hookToken),
			v1alpha1.NotificationHeadersKey: []byte("Authorization: Bearer " + hookToken + "\n"),
		},
	}
}

// notification tells everything about a namespace through the Secret of that name.
func notification(namespace, secret string, edits ...func(*v1alpha1.KickNotificationSpec)) *v1alpha1.KickNotification {
	n := &v1alpha1.KickNotification{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: secret},
		Spec: v1alpha1.KickNotificationSpec{
			Events: []v1alpha1.NotificationEvent{
				v1alpha1.NotifyWaitingTooLong, v1alpha1.NotifySucceeded, v1alpha1.NotifyFailed,
			},
			SecretRef: v1alpha1.NotificationSecret{Name: secret},
		},
	}
	for _, edit := range edits {
		edit(&n.Spec)
	}
	return n
}

func inFormat(format v1alpha1.NotificationFormat) func(*v1alpha1.KickNotificationSpec) {
	return func(s *v1alpha1.KickNotificationSpec) { s.Format = format }
}

// watching creates a notification with its Secret, and waits until it is in force. What ended before, such as the canaries, it
// does not tell.
func watching(ctx context.Context, r *receiver, n *v1alpha1.KickNotification) {
	GinkgoHelper()
	nextSecond()
	create(ctx, r.hook(n.Namespace, n.Name), n)
	notifying(ctx, n, v1alpha1.ReasonSucceeded)
}

// permitHosts has the suite's KICK permit messages to the hosts.
func permitHosts(ctx context.Context, hosts ...string) {
	GinkgoHelper()
	list, err := json.Marshal(append([]string{}, hosts...))
	Expect(err).NotTo(HaveOccurred())
	output, err := bed.Helm(ctx, "upgrade", "kick", "../../charts/kick", "--namespace", kickNamespace,
		"--force-conflicts", "--reuse-values", "--set-json", "notifications.allowedHosts="+string(list), "--wait", "--timeout", "3m")
	Expect(err).NotTo(HaveOccurred(), output)
}

// notifying waits until the condition Ready of a notification has the reason, and returns the condition.
func notifying(ctx context.Context, n *v1alpha1.KickNotification, reason string) metav1.Condition {
	GinkgoHelper()
	var found metav1.Condition
	Eventually(func(g Gomega) {
		g.Expect(k8s.Get(ctx, keyOf(n), n)).To(Succeed())
		g.Expect(n.Status.Conditions).To(HaveLen(3))
		found = n.Status.Conditions[0]
		g.Expect(found.Type).To(Equal(v1alpha1.ConditionReady))
		g.Expect(found.Reason).To(Equal(reason), found.Message)
	}).WithContext(ctx).Should(Succeed())
	return found
}
