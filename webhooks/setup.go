// Package webhooks holds the admission webhooks: thin skins over the parsers that the core itself uses, so that what is
// admitted is what is understood. They answer on every replica, leader or not, write nothing, and never import the
// controllers.
package webhooks

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kick-dev/kick/internal/cluster/workload"
	"github.com/kick-dev/kick/internal/report"
	"github.com/kick-dev/kick/webhooks/registration"
)

// Options of the webhooks.
type Options struct {
	// Namespace is KICK's own, which no policy manages.
	Namespace string
	// ServiceAccount is the name of KICK's service account in that namespace. With an empty one the guard takes
	// nobody for KICK.
	ServiceAccount string
	// Exempt may restart managed workloads.
	Exempt Exemptions
	// Clock tells the time of the API server.
	Clock Clock
}

// Clock tells the time.
type Clock interface {
	Now() time.Time
}

// account is the user name of KICK's service account, empty if it is not known.
func (o Options) account() string {
	if o.ServiceAccount == "" {
		return ""
	}
	return "system:serviceaccount:" + o.Namespace + ":" + o.ServiceAccount
}

// SetupWithManager adds the webhooks to the manager's webhook server.
func SetupWithManager(mgr ctrl.Manager, options Options) error {
	counts, err := report.NewAdmission(metrics.Registry)
	if err != nil {
		return fmt.Errorf("register the metrics: %w", err)
	}
	workloads := &workload.Client{Cache: mgr.GetCache(), Live: mgr.GetAPIReader()}
	for _, hook := range []struct {
		name, path string
		handler    admission.Handler
	}{
		{registration.KickPolicy, kickPolicyPath, admission.WithValidator(mgr.GetScheme(), &kickPolicyValidator{
			cache: mgr.GetCache(), workloads: workloads, clock: options.Clock, namespace: options.Namespace,
		})},
		{registration.KickRequest, kickRequestPath, admission.WithValidator(mgr.GetScheme(), &kickRequestValidator{
			workloads: workloads, reviews: mgr.GetClient(), clock: options.Clock, account: options.account(),
		})},
		{registration.Guard, guardPath, &guard{
			decoder: admission.NewDecoder(mgr.GetScheme()), policies: mgr.GetCache(), workloads: workloads, clock: options.Clock,
			namespace: options.Namespace, account: options.account(), exempt: options.Exempt,
		}},
	} {
		counted := &counted{webhook: hook.name, next: hook.handler, counts: counts, clock: clock.RealClock{}}
		mgr.GetWebhookServer().Register(hook.path, &admission.Webhook{Handler: counted})
	}
	return nil
}

// counted counts the answers of a webhook.
type counted struct {
	webhook string
	next    admission.Handler
	counts  *report.Admission
	clock   clock.PassiveClock
}

// Handle implements admission.Handler.
func (c *counted) Handle(ctx context.Context, request admission.Request) admission.Response {
	begin := c.clock.Now()
	response := c.next.Handle(ctx, request)
	c.counts.Answered(c.webhook, verdictOf(response), c.clock.Since(begin))
	return response
}

func verdictOf(response admission.Response) report.AdmissionVerdict {
	switch {
	case response.Allowed && len(response.Warnings) > 0:
		return report.AdmissionWarned
	case response.Allowed:
		return report.AdmissionAllowed
	case response.Result != nil && isRefusal(response.Result.Code):
		return report.AdmissionDenied
	default:
		return report.AdmissionFailed
	}
}

// isRefusal tells the codes of an object that was judged from those of one that could not be.
func isRefusal(code int32) bool {
	return code == http.StatusForbidden || code == http.StatusUnprocessableEntity
}
