package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
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
	call, err := b.callOfTheGuard(ctx, running[0].Ports[webhookPort])
	if err != nil {
		return err
	}
	// The API server keeps its connections, too.
	if err := parallel(connections, connections, func(int) error { return call(ctx) }); err != nil {
		return err
	}
	calls, stop := context.WithCancel(ctx)
	defer stop()
	var (
		caller    sync.WaitGroup
		latencies []time.Duration
		failed    error
	)
	caller.Go(func() { latencies, failed = steadily(calls, callsPerSecond, call) })
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
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	name := fmt.Sprintf("%d calls of the guard, %d a second, beside a fan-out", len(latencies), callsPerSecond)
	percentiles := latenciesOf(latencies)
	b.report.note(milliseconds(percentiles.P50), name, "p50", "ms")
	b.report.atMost(10, milliseconds(percentiles.P99), name, "p99", "ms")
	return nil
}

// callOfTheGuard returns what asks the guard once.
func (b *bench) callOfTheGuard(ctx context.Context, port int) (func(context.Context) error, error) {
	key := b.apps(0, 1)[0]
	workload := &appsv1.Deployment{}
	if err := b.k8s.Get(ctx, key, workload); err != nil {
		return nil, fmt.Errorf("read a workload: %w", err)
	}
	path, err := b.pathOfTheGuard(ctx)
	if err != nil {
		return nil, err
	}
	url := fmt.Sprintf("https://127.0.0.1:%d%s", port, path)
	// The certificate is one of the testbed's cert-manager.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, MaxConnsPerHost: connections, MaxIdleConnsPerHost: connections}
	connection := &http.Client{Transport: transport}
	return func(ctx context.Context) error {
		body, err := restartByHand(workload)
		if err != nil {
			return err
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
		if err != nil {
			return fmt.Errorf("ask the guard: %w", err)
		}
		request.Header.Set("Content-Type", "application/json")
		response, err := connection.Do(request)
		if err != nil {
			return fmt.Errorf("ask the guard: %w", err)
		}
		defer func() { _ = response.Body.Close() }()
		answer, err := io.ReadAll(response.Body)
		if err != nil {
			return fmt.Errorf("ask the guard: %w", err)
		}
		var review admissionv1.AdmissionReview
		if err := json.Unmarshal(answer, &review); err != nil || review.Response == nil || review.Response.Allowed {
			return fmt.Errorf("the guard did not deny a restart by hand: %s: %w", answer, err)
		}
		return nil
	}, nil
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

// steadily makes calls at a rate until the context ends, whatever time each takes, and returns how long they took.
func steadily(ctx context.Context, perSecond int, call func(context.Context) error) ([]time.Duration, error) {
	var (
		calls     sync.WaitGroup
		mu        sync.Mutex
		latencies []time.Duration
		failed    error
	)
	ticker := time.NewTicker(time.Second / time.Duration(perSecond))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			calls.Wait()
			return latencies, failed
		case <-ticker.C:
		}
		calls.Go(func() {
			began := time.Now()
			err := call(context.WithoutCancel(ctx))
			took := time.Since(began)
			mu.Lock()
			defer mu.Unlock()
			latencies, failed = append(latencies, took), errors.Join(failed, err)
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
