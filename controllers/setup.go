package controllers

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/keymutex"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	ctrlsource "sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/facts"
	"github.com/kick-dev/kick/internal/cluster/ledger"
	"github.com/kick-dev/kick/internal/cluster/owner"
	"github.com/kick-dev/kick/internal/cluster/servertime"
	"github.com/kick-dev/kick/internal/cluster/source"
	"github.com/kick-dev/kick/internal/cluster/workload"
	"github.com/kick-dev/kick/internal/core/deps"
	"github.com/kick-dev/kick/internal/core/observation"
	"github.com/kick-dev/kick/internal/core/request"
	"github.com/kick-dev/kick/internal/core/rollout"
	"github.com/kick-dev/kick/internal/report"
)

// What KICK reads and writes. The Role of its own namespace is apart, so that rights on ledgers and on the key of the
// fingerprints stay there.
//
// +kubebuilder:rbac:groups="",resources=secrets;configmaps,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list
// +kubebuilder:rbac:groups=apps,resources=deployments;statefulsets;daemonsets,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=apps,resources=replicasets;controllerrevisions,verbs=list
// +kubebuilder:rbac:groups=kick.dev,resources=kickpolicies,verbs=get;list;watch
// +kubebuilder:rbac:groups=kick.dev,resources=kickpolicies/status,verbs=patch
// +kubebuilder:rbac:groups=kick.dev,resources=kickrequests,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=kick.dev,resources=kickrequests/status,verbs=update
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
// +kubebuilder:rbac:groups=kick.dev,resources=kickledgers,verbs=get;list;create;update;delete,namespace=kick-system
// +kubebuilder:rbac:groups="",resources=secrets,verbs=create,namespace=kick-system
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch,namespace=kick-system
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;create;update;patch,namespace=kick-system

// Options of the controllers.
type Options struct {
	// Namespace is KICK's own: ledgers live there, and no policy manages it.
	Namespace string
	// WatchNamespaces are the namespaces whose objects are cached; nil stands for all.
	WatchNamespaces []string
	// Sources serves the metadata of Secrets and ConfigMaps from the cache of the manager.
	Sources client.Reader
	// RequestTTL is how long a terminal request is kept.
	RequestTTL time.Duration
	// Workers is how many reconciles each controller runs at the same time.
	Workers int
	// MaxConcurrentRestarts is how many workloads of the cluster may be restarting at the same time, zero for any number.
	MaxConcurrentRestarts int
	// OverrideUnchecked is true where no webhook checks who may override; then override is ignored.
	OverrideUnchecked bool
	// GitOps says where the objects of Argo CD and Flux are.
	GitOps owner.Options
	// Notifying is what notifications may do.
	Notifying Notifying
	// Traces tells of each answered change how long that took; nil tells nobody.
	Traces *report.Traces
	// Clock tells the time of the API server.
	Clock *servertime.Clock
}

// SetupWithManager adds the controllers to a manager.
func SetupWithManager(mgr ctrl.Manager, options Options) error {
	s, err := newShell(mgr, options)
	if err != nil {
		return err
	}
	if err := s.addIndex(context.Background(), mgr); err != nil {
		return err
	}
	if err := mgr.Add(s.flusher); err != nil {
		return fmt.Errorf("add the ledger's flusher: %w", err)
	}
	if err := s.addOwners(mgr); err != nil {
		return fmt.Errorf("add the reader of GitOps objects: %w", err)
	}
	decider := s.newKickRequestReconciler()
	if err := s.addSourceController(mgr, decider.foresee); err != nil {
		return fmt.Errorf("add the source controller: %w", err)
	}
	if err := s.addKickRequestController(mgr, decider); err != nil {
		return fmt.Errorf("add the KickRequest controller: %w", err)
	}
	if err := s.addKickPolicyController(mgr); err != nil {
		return fmt.Errorf("add the KickPolicy controller: %w", err)
	}
	if err := s.addKickNotificationController(mgr); err != nil {
		return fmt.Errorf("add the KickNotification controller: %w", err)
	}
	return nil
}

// coalescerLocks is how many workloads can be given their request at the same time.
const coalescerLocks = 64

// shell holds what the controllers share.
type shell struct {
	options   Options
	client    client.Client
	workloads *workload.Client
	sources   *source.Reader
	ledger    *ledger.Store
	scopes    *facts.Scopes
	requests  *requests
	flusher   *flusher
	metrics   *report.Metrics
	events    *report.Events

	coalescer *coalescer
	attempts  *attempts
	owners    *owner.Reader
	rush      *rush
	moves     *facts.Moves

	wakeSource  *waker[source.Key]
	wakeRequest *waker[workload.Key]
	wakePolicy  *waker[types.NamespacedName]
}

func newShell(mgr ctrl.Manager, options Options) (*shell, error) {
	registered, err := report.NewMetrics(metrics.Registry)
	if err != nil {
		return nil, fmt.Errorf("register the metrics: %w", err)
	}
	s := &shell{
		options:     options,
		client:      mgr.GetClient(),
		workloads:   &workload.Client{Cache: mgr.GetCache(), Live: mgr.GetAPIReader(), Writer: mgr.GetClient()},
		sources:     &source.Reader{Cache: options.Sources, Live: mgr.GetAPIReader()},
		ledger:      ledger.NewStore(mgr.GetAPIReader(), mgr.GetClient(), options.Namespace),
		requests:    newRequests(mgr.GetClient()),
		metrics:     registered,
		events:      &report.Events{Recorder: mgr.GetEventRecorder("kick")},
		wakeSource:  &waker[source.Key]{},
		wakeRequest: &waker[workload.Key]{},
		wakePolicy:  &waker[types.NamespacedName]{},
	}
	if s.owners, err = owner.New(mgr.GetConfig(), mgr.GetHTTPClient(), options.GitOps); err != nil {
		return nil, err
	}
	if err := report.RegisterCensus(metrics.Registry, s.census); err != nil {
		return nil, fmt.Errorf("register the census: %w", err)
	}
	s.attempts, s.rush, s.moves = newAttempts(), newRush(s.wakeRequest.wake), facts.NewMoves(clock.RealClock{})
	s.ledger.Written, s.ledger.WriteFailed = registered.LedgerWritten, registered.LedgerWriteFailed
	s.ledger.Undecided = s.wakeSource.wake
	s.flusher = newFlusher(s.ledger, clock.RealClock{})
	s.scopes = &facts.Scopes{
		Cache: mgr.GetCache(), Workloads: s.workloads, Sources: s.sources, Records: s.ledger, Reserved: options.Namespace,
		Watched: options.WatchNamespaces,
	}
	s.coalescer = &coalescer{
		requests: s.requests, wakeup: s.wakeRequest, rush: s.rush, locks: keymutex.NewHashed(coalescerLocks),
	}
	return s, nil
}

func (s *shell) addIndex(ctx context.Context, mgr ctrl.Manager) error {
	for _, object := range workload.Objects() {
		if err := mgr.GetFieldIndexer().IndexField(ctx, object, workload.ReferenceIndex, workload.References); err != nil {
			return fmt.Errorf("index %T by its sources: %w", object, err)
		}
	}
	return nil
}

// logs names what a controller works on in each of its log lines.
func logs[key any](mgr ctrl.Manager, controller string, names func(key) []any) func(*key) logr.Logger {
	return func(object *key) logr.Logger {
		log := mgr.GetLogger().WithValues("controller", controller)
		if object != nil {
			log = log.WithValues(names(*object)...)
		}
		return log
	}
}

func sourceNames(key source.Key) []any { return []any{"source", key.String()} }

func requestNames(key workload.Key) []any {
	return []any{"workload", key.String(), "request", nameOf(key).String()}
}

func policyNames(name types.NamespacedName) []any { return []any{"policy", name.String()} }

func (s *shell) addSourceController(
	mgr ctrl.Manager, foresee func(context.Context, workload.Key, source.Key, observation.Record),
) error {
	cache := mgr.GetCache()
	b := builder.TypedControllerManagedBy[source.Key](mgr).Named("source").
		WithOptions(controller.TypedOptions[source.Key]{
			MaxConcurrentReconciles: s.options.Workers, LogConstructor: logs(mgr, "source", sourceNames),
			RateLimiter: retries[source.Key](),
		}).
		WatchesRawSource(s.wakeSource.source()).
		WatchesRawSource(ctrlsource.TypedKind[client.Object](cache, &v1alpha1.KickPolicy{}, s.sourcesOfPolicy()))
	for _, kind := range sourceKinds {
		b = b.WatchesRawSource(ctrlsource.TypedKind[client.Object](cache, source.Metadata(kind), s.sourceItself(kind)))
	}
	for _, object := range workload.Objects() {
		b = b.WatchesRawSource(ctrlsource.TypedKind(cache, object, sourcesOfWorkload()))
	}
	return b.Complete(&sourceReconciler{
		scopes:    s.scopes,
		sources:   s.sources,
		ledger:    s.ledger,
		coalescer: s.coalescer,
		clock:     s.options.Clock,
		flusher:   s.flusher,
		metrics:   s.metrics,
		baselines: newBaselines(s),
		rush:      s.rush,
		foresee:   foresee,
		sweep:     s.wakeSource,

		fingerprintKey: s.fingerprintKey(),
	})
}

// fingerprintKey is the Secret that holds the key of the fingerprints.
func (s *shell) fingerprintKey() source.Key {
	return source.Key{Namespace: s.options.Namespace, Source: deps.Source{Kind: v1alpha1.Secret, Name: ledger.KeySecret}}
}

func (s *shell) addKickRequestController(mgr ctrl.Manager, decider *kickRequestReconciler) error {
	cache := mgr.GetCache()
	b := builder.TypedControllerManagedBy[workload.Key](mgr).Named("kickrequest").
		WithOptions(controller.TypedOptions[workload.Key]{
			MaxConcurrentReconciles: s.options.Workers, LogConstructor: logs(mgr, "kickrequest", requestNames),
			RateLimiter: retries[workload.Key](),
		}).
		WatchesRawSource(s.wakeRequest.source()).
		WatchesRawSource(ctrlsource.TypedKind[client.Object](cache, &v1alpha1.KickRequest{}, s.workloadOfRequest())).
		WatchesRawSource(ctrlsource.TypedKind[client.Object](cache, &v1alpha1.KickPolicy{}, s.workloadsOfPolicy()))
	for _, object := range workload.Objects() {
		b = b.WatchesRawSource(ctrlsource.TypedKind(cache, object, s.workloadItself()))
	}
	for _, kind := range sourceKinds {
		b = b.WatchesRawSource(ctrlsource.TypedKind[client.Object](cache, source.Metadata(kind), s.consumersOfRelabelled(kind)))
	}
	return b.Complete(decider)
}

func (s *shell) newKickRequestReconciler() *kickRequestReconciler {
	slots := newSlots(s.options.MaxConcurrentRestarts, s.wakeRequest.wake)
	return &kickRequestReconciler{
		scopes:    s.scopes,
		workloads: s.workloads,
		ledger:    s.ledger,
		requests:  s.requests,
		coalescer: s.coalescer,
		clock:     s.options.Clock,
		settings: request.Settings{
			TTL: s.options.RequestTTL, RolloutDeadline: rollout.DefaultDeadline, OverrideUnchecked: s.options.OverrideUnchecked,
		},
		events:  s.events,
		metrics: s.metrics,
		traces:  s.options.Traces,
		gatherer: &facts.Gatherer{
			Scopes: s.scopes, Revisions: facts.NewRevisions(), Owners: s.owners, Room: slots.take,
			Ahead: facts.NewAhead(clock.RealClock{}), Moves: s.moves,
		},
		attempts: s.attempts,
		judged:   newJudged(),
		slots:    slots,
		rush:     s.rush,
	}
}

func (s *shell) addKickPolicyController(mgr ctrl.Manager) error {
	cache := mgr.GetCache()
	b := builder.TypedControllerManagedBy[types.NamespacedName](mgr).Named("kickpolicy").
		WithOptions(controller.TypedOptions[types.NamespacedName]{
			LogConstructor: logs(mgr, "kickpolicy", policyNames), RateLimiter: retries[types.NamespacedName](),
		}).
		WatchesRawSource(s.wakePolicy.source()).
		WatchesRawSource(ctrlsource.TypedKind[client.Object](cache, &v1alpha1.KickPolicy{}, s.policyAndSiblings()))
	for _, object := range workload.Objects() {
		b = b.WatchesRawSource(ctrlsource.TypedKind(cache, object, s.policiesOfNamespace()))
	}
	for _, kind := range sourceKinds {
		b = b.WatchesRawSource(ctrlsource.TypedKind[client.Object](cache, source.Metadata(kind), s.policiesOfNamespace()))
	}
	return b.Complete(&kickPolicyReconciler{
		client:    s.client,
		scopes:    s.scopes,
		workloads: s.workloads,
		sources:   s.sources,
		owners:    s.owners,
		now:       s.options.Clock.Now,
	})
}
