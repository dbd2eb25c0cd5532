package kubelet

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kick-dev/kick/test/testbed/internal/loopback"
)

// eagerInterval is the time between readiness probes of a container that is not
// ready: a kubelet, too, asks more often then than the period says.
const eagerInterval = 500 * time.Millisecond

// probe runs the probes of a container until ctx is done. The channel it
// returns is closed when the container has to be restarted.
func (c *container) probe(ctx context.Context) <-chan struct{} {
	unhealthy := make(chan struct{})
	go func() {
		if c.spec.StartupProbe != nil && !c.awaitStartup(ctx) {
			if ctx.Err() == nil {
				close(unhealthy)
			}
			return
		}
		c.setStarted(ctx)
		if c.spec.ReadinessProbe != nil {
			go c.follow(ctx, c.spec.ReadinessProbe, func(ready bool) { c.setReady(ctx, ready) })
		}
		if c.spec.LivenessProbe != nil {
			c.awaitFailure(ctx, c.spec.LivenessProbe)
			if ctx.Err() == nil {
				close(unhealthy)
			}
		}
	}()
	return unhealthy
}

// awaitStartup returns false when the startup probe has failed for good.
func (c *container) awaitStartup(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	started := false
	c.follow(ctx, c.spec.StartupProbe, func(ok bool) {
		started = ok
		cancel()
	})
	return started
}

func (c *container) awaitFailure(ctx context.Context, probe *corev1.Probe) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.follow(ctx, probe, func(ok bool) {
		if !ok {
			cancel()
		}
	})
}

// setStarted makes a container without a readiness probe ready, too.
func (c *container) setStarted(ctx context.Context) {
	c.change(func() {
		if ctx.Err() == nil {
			c.started = true
			c.ready = c.spec.ReadinessProbe == nil
		}
	})
}

func (c *container) setReady(ctx context.Context, ready bool) {
	c.change(func() {
		if ctx.Err() == nil {
			c.ready = ready
		}
	})
}

// follow calls a probe in its period, and reports each verdict that reached its
// threshold, until ctx is done.
func (c *container) follow(ctx context.Context, probe *corev1.Probe, verdict func(ok bool)) {
	if !pause(ctx, time.Duration(probe.InitialDelaySeconds)*time.Second) {
		return
	}
	successes, failures, passing := int32(0), int32(0), false
	for {
		if c.check(ctx, probe) == nil {
			successes, failures = successes+1, 0
		} else {
			successes, failures = 0, failures+1
		}
		if ctx.Err() != nil {
			return
		}
		if successes == max(probe.SuccessThreshold, 1) {
			passing = true
			verdict(true)
		}
		if failures == max(probe.FailureThreshold, 1) {
			passing = false
			verdict(false)
		}
		if !pause(ctx, c.interval(probe, passing)) {
			return
		}
	}
}

func (c *container) interval(probe *corev1.Probe, passing bool) time.Duration {
	if probe == c.spec.ReadinessProbe && !passing {
		return eagerInterval
	}
	return time.Duration(max(probe.PeriodSeconds, 1)) * time.Second
}

// check calls a probe once. Probes of other kinds than HTTP and TCP always
// succeed.
func (c *container) check(ctx context.Context, probe *corev1.Probe) error {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(max(probe.TimeoutSeconds, 1))*time.Second)
	defer cancel()
	switch {
	case probe.HTTPGet != nil:
		return c.checkHTTP(ctx, probe.HTTPGet)
	case probe.TCPSocket != nil:
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "tcp", c.address(probe.TCPSocket.Port))
		if err != nil {
			return err
		}
		return conn.Close()
	default:
		return nil
	}
}

// prober does not check certificates and keeps no connections, like a kubelet.
var prober = &http.Client{Transport: &http.Transport{
	TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
	DisableKeepAlives: true,
}}

func (c *container) checkHTTP(ctx context.Context, action *corev1.HTTPGetAction) error {
	scheme := strings.ToLower(string(action.Scheme))
	if scheme == "" {
		scheme = "http"
	}
	url := fmt.Sprintf("%s://%s/%s", scheme, c.address(action.Port), strings.TrimPrefix(action.Path, "/"))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	request.Header.Set("User-Agent", "kube-probe/testbed")
	for _, header := range action.HTTPHeaders {
		request.Header.Add(header.Name, header.Value)
	}
	response, err := prober.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode < 200 || response.StatusCode >= 400 {
		return fmt.Errorf("probe %s: %s", url, response.Status)
	}
	return nil
}

// address finds the loopback address of a port, given by number or name.
func (c *container) address(port intstr.IntOrString) string {
	number := port.IntVal
	if port.Type == intstr.String {
		for _, declared := range c.spec.Ports {
			if declared.Name == port.StrVal {
				number = declared.ContainerPort
			}
		}
	}
	if address, ok := c.worker.kubelet.Address(c.worker.ip, int(number)); ok {
		return address
	}
	return loopback.Address(int(number))
}

// pause returns false when ctx ended before the time was over.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
