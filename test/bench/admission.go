package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/webhooks/registration"
)

const (
	// callsPerSecond is how many writes the guard is asked about in a second.
	callsPerSecond = 200
	// connections is how many of the calls are under way at the same time at most.
	connections = 16
	// webhookPort is that of the manager's webhook server.
	webhookPort = 9443
)

// admission asks the guard about restarts by hand, as the API server does, while a change fans out. Every one is to be denied:
// the workload is managed.
func (b *bench) admission(ctx context.Context) error {
	running, err := b.bed.Pods(kickNamespace, kickSelector)
	if err != nil || len(running) != 1 {
		return fmt.Errorf("find the process of KICK: there are %d: %w", len(running), err)
	}
	path, err := b.pathOfTheGuard(ctx)
	if err != nil {
		return err
	}
	workload := &appsv1.Deployment{}
	if err := b.k8s.Get(ctx, b.apps(0, 1)[0], workload); err != nil {
		return fmt.Errorf("read a workload: %w", err)
	}
	bare, end, err := startBareWebhook(ctx)
	if err != nil {
		return err
	}
	defer end()
	guard := newAsker(fmt.Sprintf("https://127.0.0.1:%d%s", running[0].Ports[webhookPort], path), workload)
	reference := newAsker(bare, workload)
	// The API server keeps its connections, too.
	for _, a := range []*asker{guard, reference} {
		if err := parallel(connections, connections, func(int) error { return a.ask(ctx) }); err != nil {
			return err
		}
	}
	calls, stop := context.WithCancel(ctx)
	defer stop()
	var caller sync.WaitGroup
	caller.Go(func() { guard.askSteadily(calls, callsPerSecond) })
	caller.Go(func() { reference.askSteadily(calls, callsPerSecond/4) })
	keys := b.sharers()
	before := b.sight.stampsOf(keys)
	if _, err = b.changeShared(ctx); err == nil {
		_, err = b.stamped(ctx, before)
	}
	if err == nil {
		err = b.settled(ctx, keys, v1alpha1.PhaseSucceeded)
	}
	stop()
	caller.Wait()
	if err := errors.Join(err, guard.failed, reference.failed); err != nil {
		return err
	}
	name := fmt.Sprintf("%d calls of the guard, %d a second, beside a fan-out", len(guard.latencies), callsPerSecond)
	percentiles := latenciesOf(guard.latencies)
	b.report.note(milliseconds(percentiles.P50), name, "p50", "ms")
	b.report.atMost(10, milliseconds(percentiles.P99), name, "p99", "ms")
	percentiles = latenciesOf(reference.latencies)
	b.report.note(milliseconds(percentiles.P50), bareWebhook, "p50", "ms")
	b.report.note(milliseconds(percentiles.P99), bareWebhook, "p99", "ms")
	return nil
}

// bareWebhook is asked beside the guard, to tell what the guard takes from what the machine takes.
const bareWebhook = "a webhook that only decodes and denies, in the same moments"

// bareWebhookVariable is set in the environment of a process of this program that is to be the bare webhook.
const bareWebhookVariable = "KICK_BENCH_BARE_WEBHOOK"

// startBareWebhook starts this program again as the bare webhook. It returns its URL and what ends it.
func startBareWebhook(ctx context.Context) (url string, end func(), err error) {
	program, err := os.Executable()
	if err != nil {
		return "", nil, fmt.Errorf("find this program: %w", err)
	}
	process := exec.CommandContext(ctx, program)
	process.Env = append(os.Environ(), bareWebhookVariable+"=1", "GOMAXPROCS=2")
	input, err := process.StdinPipe()
	if err != nil {
		return "", nil, fmt.Errorf("start the bare webhook: %w", err)
	}
	output, err := process.StdoutPipe()
	if err != nil {
		return "", nil, fmt.Errorf("start the bare webhook: %w", err)
	}
	if err := process.Start(); err != nil {
		return "", nil, fmt.Errorf("start the bare webhook: %w", err)
	}
	end = func() {
		_ = input.Close()
		_ = process.Wait()
	}
	if url, err = bufio.NewReader(output).ReadString('\n'); err != nil {
		end()
		return "", nil, fmt.Errorf("read where the bare webhook is: %w", err)
	}
	return strings.TrimSpace(url), end, nil
}

// isBareWebhook serves as one, where this process is to be that, until nobody holds its standard input any more.
func isBareWebhook() bool {
	if os.Getenv(bareWebhookVariable) == "" {
		return false
	}
	server := httptest.NewTLSServer(http.HandlerFunc(deny))
	defer server.Close()
	fmt.Println(server.URL)
	_, _ = io.Copy(io.Discard, os.Stdin)
	return true
}

// deny answers any question of the API server with no.
func deny(w http.ResponseWriter, question *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(question.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "not an AdmissionReview", http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID}
	review.Request = nil
	_ = json.NewEncoder(w).Encode(review) // Whoever asks sees that the answer is not whole.
}

// asker asks one webhook about restarts of a workload, and notes how long it took.
type asker struct {
	url        string
	workload   *appsv1.Deployment
	connection *http.Client

	mu        sync.Mutex
	latencies []time.Duration
	failed    error
}

func newAsker(url string, workload *appsv1.Deployment) *asker {
	// The certificates are one of the testbed's cert-manager and one that the bare webhook brings.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, MaxConnsPerHost: connections, MaxIdleConnsPerHost: connections}
	return &asker{url: url, workload: workload, connection: &http.Client{Transport: transport}}
}

// ask asks once.
func (a *asker) ask(ctx context.Context) error {
	body, err := restartByHand(a.workload)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("ask a webhook: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := a.connection.Do(request)
	if err != nil {
		return fmt.Errorf("ask a webhook: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("ask a webhook: %w", err)
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(answer, &review); err != nil || review.Response == nil || review.Response.Allowed {
		return fmt.Errorf("the webhook at %s did not deny a restart by hand: %s: %w", a.url, answer, err)
	}
	return nil
}

// pathOfTheGuard is where the API server asks it.
func (b *bench) pathOfTheGuard(ctx context.Context) (string, error) {
	var installed admissionregistrationv1.ValidatingWebhookConfigurationList
	if err := b.k8s.List(ctx, &installed); err != nil {
		return "", fmt.Errorf("find the guard: %w", err)
	}
	for _, configuration := range installed.Items {
		for _, webhook := range configuration.Webhooks {
			if webhook.Name == registration.Guard {
				return *webhook.ClientConfig.Service.Path, nil
			}
		}
	}
	return "", fmt.Errorf("find the guard: no webhook is named %s", registration.Guard)
}

// restartByHand is the question of the API server about `kubectl rollout restart` of a workload.
func restartByHand(old *appsv1.Deployment) ([]byte, error) {
	updated := old.DeepCopy()
	metav1.SetMetaDataAnnotation(&updated.Spec.Template.ObjectMeta, v1alpha1.RestartedAtAnnotation, time.Now().Format(time.RFC3339))
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID:       uuid.NewUUID(),
			Kind:      metav1.GroupVersionKind{Group: appsv1.GroupName, Version: "v1", Kind: "Deployment"},
			Resource:  metav1.GroupVersionResource{Group: appsv1.GroupName, Version: "v1", Resource: "deployments"},
			Namespace: old.Namespace, Name: old.Name,
			Operation: admissionv1.Update,
			UserInfo:  authenticationv1.UserInfo{Username: "bench"},
			Object:    runtime.RawExtension{Object: updated},
			OldObject: runtime.RawExtension{Object: old},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("encode a question of the API server: %w", err)
	}
	return body, nil
}

// askSteadily asks at a rate until the context ends, whatever time each answer takes.
func (a *asker) askSteadily(ctx context.Context, perSecond int) {
	var questions sync.WaitGroup
	defer questions.Wait()
	ticker := time.NewTicker(time.Second / time.Duration(perSecond))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		questions.Go(func() {
			began := time.Now()
			err := a.ask(context.WithoutCancel(ctx))
			took := time.Since(began)
			a.mu.Lock()
			defer a.mu.Unlock()
			a.latencies, a.failed = append(a.latencies, took), errors.Join(a.failed, err)
		})
	}
}

// mostAtATime is the measure of whether a limit on restarts is kept.
const mostAtATime = "most that ever rolled out at the same time"

// capped limits how many workloads may restart at the same time, changes what all of them consume, and looks at each update of
// a workload whether the limit is kept.
func (b *bench) capped(ctx context.Context) error {
	limit := max(1, b.shape.Sharers/15)
	if err := b.limit(ctx, fmt.Sprint(limit)); err != nil {
		return err
	}
	keys := b.sharers()
	before := b.sight.stampsOf(keys)
	most := b.sight.watchIncomplete(keys)
	began := time.Now()
	if _, err := b.changeShared(ctx); err != nil {
		return err
	}
	if _, err := b.stamped(ctx, before); err != nil {
		return err
	}
	if err := b.settled(ctx, keys, v1alpha1.PhaseSucceeded); err != nil {
		return err
	}
	name := fmt.Sprintf("1 change, %d consumers, %d at a time", len(keys), limit)
	b.report.atMost(float64(limit), float64(most()), name, mostAtATime, "")
	b.report.note(seconds(time.Since(began)), name, "until the last rollout", "s")
	return b.limit(ctx, "null")
}

// limit sets how many of the workloads that share a ConfigMap may restart at the same time; null is any number.
func (b *bench) limit(ctx context.Context, most string) error {
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"restart":{"maxConcurrent":%s}}}`, most))
	if err := b.k8s.Patch(ctx, policy(sharedNamespace), patch); err != nil {
		return fmt.Errorf("limit the restarts: %w", err)
	}
	return nil
}
