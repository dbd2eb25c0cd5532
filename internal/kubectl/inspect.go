package kubectl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/facts"
	"github.com/kick-dev/kick/internal/cluster/ledger"
	"github.com/kick-dev/kick/internal/cluster/owner"
	"github.com/kick-dev/kick/internal/cluster/source"
	"github.com/kick-dev/kick/internal/cluster/workload"
	"github.com/kick-dev/kick/internal/core/deps"
	"github.com/kick-dev/kick/internal/core/gate"
	"github.com/kick-dev/kick/internal/core/gitops"
	"github.com/kick-dev/kick/internal/core/observation"
	"github.com/kick-dev/kick/internal/core/policy"
	"github.com/kick-dev/kick/internal/core/request"
	"github.com/kick-dev/kick/internal/core/rollout"
	"github.com/kick-dev/kick/internal/kubectl/explain"
)

// settings are those of the controllers. How long a request is kept does not matter to what is decided before its end.
func settings() request.Settings {
	return request.Settings{TTL: 24 * time.Hour, RolloutDeadline: rollout.DefaultDeadline}
}

// inspector gathers the facts about workloads as the controllers do, from the API server and with the rights of the user. What
// the user may not see it notes.
type inspector struct {
	*session
	installed *installation
	// records are on record, nil where the ledger could not be read.
	records *ledger.Snapshot
	owners  *owner.Reader
	// policies serves the policies; what may differ from the API server is a policy that is only tried out.
	policies client.Reader
	// observe makes records of sources that have none, as KICK would at their first sight.
	observe bool
	notes   []string
}

// inspect gets ready to look at workloads of a namespace. Its end is that of the context.
func (s *session) inspect(ctx context.Context, namespace string) (*inspector, error) {
	i := &inspector{session: s, policies: s.client}
	installed, err := s.installation(ctx)
	switch {
	case apierrors.IsForbidden(err):
		i.note("the settings of KICK: you may not read Deployments in namespace %s, so the defaults are assumed", s.kickNamespace)
	case err != nil:
		return nil, err
	case installed == nil:
		i.note("KICK itself: no Deployment of it is in namespace %s; if it is elsewhere, say so with --kick-namespace", s.kickNamespace)
	case !installed.watches(namespace):
		i.note("KICK does not work in namespace %s: it is not among its --watch-namespaces", namespace)
	}
	i.installed = installed
	i.records, err = ledger.Read(ctx, s.client, s.kickNamespace, namespace)
	switch {
	case apierrors.IsForbidden(err):
		i.note("the ledger, which knows when sources changed: you may not list kickledgers in namespace %s", s.kickNamespace)
	case err != nil:
		return nil, err
	}
	i.owners, err = s.ownerReader(installed.gitOps())
	return i, err
}

func (i *inspector) note(format string, args ...any) {
	i.notes = append(i.notes, fmt.Sprintf(format, args...))
}

// ownerReader looks for GitOps objects once somebody asks.
func (s *session) ownerReader(options owner.Options) (*owner.Reader, error) {
	transport, err := rest.HTTPClientFor(s.config)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	reader, err := owner.New(s.config, transport, options)
	if err != nil {
		return nil, err
	}
	reader.Wanted = func(context.Context) ([]v1alpha1.GitOpsProvider, error) {
		return []v1alpha1.GitOpsProvider{v1alpha1.ProviderAuto}, nil
	}
	reader.Changed = func(context.Context, []workload.Key) {}
	reader.ChangedUnlisted = func(context.Context) {}
	reader.Turned = func(context.Context) {}
	return reader, nil
}

// report gathers everything about one workload and explains what KICK decides.
func (i *inspector) report(ctx context.Context, key workload.Key) (explain.Report, error) {
	workloads := &workload.Client{Cache: i.client, Live: i.client}
	target, err := workloads.Read(ctx, key)
	if err != nil {
		return explain.Report{}, err
	}
	if target == nil {
		return explain.Report{}, fmt.Errorf("%s is not in namespace %s", shown(key.Kind, key.Name), key.Namespace)
	}
	return i.reportOn(ctx, target)
}

func (i *inspector) reportOn(ctx context.Context, target *workload.Workload) (explain.Report, error) {
	present, err := i.request(ctx, target)
	if err != nil {
		return explain.Report{}, err
	}
	look := &look{
		inspector: i, target: target, request: present, standings: map[deps.Source]explain.Standed{},
		written: map[deps.Source]*metav1.PartialObjectMetadata{},
	}
	gathered, err := look.gather(ctx)
	if err != nil {
		return explain.Report{}, err
	}
	return explain.Of(explain.Input{
		Namespace: target.Key.Namespace, Kind: target.Key.Kind, Name: target.Key.Name,
		Now: i.now(), Settings: settings(), Request: present, Facts: gathered, References: target.References(),
		Standings: look.standings, Unseen: append(i.notes, look.notes...), Blind: look.blind, Guessed: look.guessed,
	}), nil
}

// request returns the request of a workload, nil if there is none. One of an earlier workload of that name is none.
func (i *inspector) request(ctx context.Context, target *workload.Workload) (*v1alpha1.KickRequest, error) {
	name := types.NamespacedName{Namespace: target.Key.Namespace, Name: request.Name(target.Key.Kind, target.Key.Name)}
	present := &v1alpha1.KickRequest{}
	err := i.client.Get(ctx, name, present)
	switch {
	case apierrors.IsNotFound(err) || err == nil && present.Spec.TargetRef.UID != target.UID():
		return nil, nil //nolint:nilnil // documented: no request, no error
	case err != nil:
		return nil, fmt.Errorf("get the request of %s: %w", target.Key, err)
	default:
		return present, nil
	}
}

// look is at one workload.
type look struct {
	*inspector
	target    *workload.Workload
	request   *v1alpha1.KickRequest
	standings map[deps.Source]explain.Standed
	// written is the metadata of the sources that exist and may be seen.
	written map[deps.Source]*metav1.PartialObjectMetadata
	notes   []string
	// blind is true where nothing is known of when the sources changed.
	blind bool
	// guessed is true where sources could not be looked at.
	guessed bool
	// told counts the sources whose change times are those that the request shows.
	told int
}

func (l *look) note(format string, args ...any) {
	l.notes = append(l.notes, fmt.Sprintf(format, args...))
}

// gather takes all facts, those that the decision needs and those that only explain it.
func (l *look) gather(ctx context.Context) (request.Facts, error) {
	gatherer := &facts.Gatherer{
		Scopes: &facts.Scopes{
			Cache:     l.policies,
			Workloads: &workload.Client{Cache: l.client, Live: l.client},
			Sources:   &source.Reader{Cache: l.client, Live: l.client},
			Records:   l,
			Reserved:  l.kickNamespace,
			Unseen:    l.unseen,
		},
		Revisions: facts.NewRevisions(), Owners: l.owners,
	}
	g := gatherer.Begin(l.target)
	if l.request != nil {
		g.Facts.RequestGeneration, g.Facts.Manual = l.request.Generation, l.request.Spec.Manual
		g.Facts.Denied = l.denied()
	}
	if err := l.stand(ctx, gatherer.Scopes); err != nil {
		return request.Facts{}, err
	}
	if err := g.Refresh(ctx); err != nil {
		return request.Facts{}, err
	}
	g.Facts.Live, g.Facts.TemplateWriter = true, l.target.TemplateWriter()
	l.askOwners(ctx, g)
	for _, need := range []request.Need{request.NeedRevision, request.NeedPods} {
		_, err := g.Supply(ctx, need)
		switch {
		case apierrors.IsForbidden(err):
			l.note("what runs under the workload: %s", reasonOf(err))
		case err != nil:
			return request.Facts{}, err
		}
	}
	full, err := l.full(ctx, gatherer.Scopes, g.Facts.Scope)
	g.Facts.Room = request.Room{Asked: true, Full: full}
	l.judgeSight(g.Facts)
	return g.Facts, err
}

// denied is the API server's refusal of the stamp, as the request shows it.
func (l *look) denied() request.Denial {
	ready := meta.FindStatusCondition(l.request.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Reason != v1alpha1.ReasonRestartDenied || l.request.Status.CurrentRollout == nil {
		return request.Denial{}
	}
	return request.Denial{Stamp: l.request.Status.CurrentRollout.Stamp, Message: ready.Message, Until: l.now().Add(time.Minute)}
}

// askOwners asks the GitOps tools, if a policy does.
func (l *look) askOwners(ctx context.Context, g *facts.Gathering) {
	providers := g.Facts.Scope.Providers()
	if len(providers) == 0 {
		return
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go l.owners.Start(ctx) //nolint:errcheck // It returns none.
	g.AskOwners(ctx)
	for provider, availability := range map[v1alpha1.GitOpsProvider]gitops.Availability{
		v1alpha1.ProviderArgoCD: g.Facts.Owners.ArgoCD.Availability, v1alpha1.ProviderFlux: g.Facts.Owners.Flux.Availability,
	} {
		for _, asked := range providers {
			if (asked == provider || asked == v1alpha1.ProviderAuto) && availability.Presence == gitops.Unreadable {
				l.note("the objects of %s: %s; so the links of the gate that ask it are shown closed, and may be open to KICK",
					provider, cmp.Or(availability.Message, "they could not be listed"))
			}
		}
	}
}

// full says which limit on concurrent restarts is reached, from what the requests show.
func (l *look) full(ctx context.Context, scopes *facts.Scopes, scope policy.Scope) (string, error) {
	var list v1alpha1.KickRequestList
	namespaces := client.InNamespace(metav1.NamespaceAll)
	err := l.client.List(ctx, &list, namespaces)
	if apierrors.IsForbidden(err) {
		l.note("restarts in other namespaces: you may not list kickrequests there, so only those in this one are counted")
		err = l.client.List(ctx, &list, client.InNamespace(l.target.Key.Namespace))
	}
	if err != nil {
		return "", fmt.Errorf("count the restarts: %w", err)
	}
	usage := &gate.Usage{}
	for n := range list.Items {
		other := &list.Items[n]
		if !request.Restarting(&other.Status) || l.request != nil && other.UID == l.request.UID {
			continue
		}
		of, err := l.scopeOf(ctx, scopes, other)
		if err != nil {
			return "", err
		}
		usage.Add(other.Namespace, of)
	}
	limit := l.installed.maxConcurrent()
	if usage.Reached(l.target.Key.Namespace, scope) != "" || limit > 0 && usage.Total() >= limit {
		return usage.Full(l.target.Key.Namespace, scope, limit), nil
	}
	return "", nil
}

// scopeOf the workload of a request. Only those of the same namespace share policies.
func (l *look) scopeOf(ctx context.Context, scopes *facts.Scopes, other *v1alpha1.KickRequest) (policy.Scope, error) {
	if other.Namespace != l.target.Key.Namespace {
		return policy.Scope{}, nil
	}
	target := other.Spec.TargetRef
	w, err := scopes.Workloads.Read(ctx, workload.Key{Namespace: other.Namespace, Kind: target.Kind, Name: target.Name})
	if err != nil || w == nil {
		return policy.Scope{}, err
	}
	return scopes.Of(ctx, w)
}

// Get implements facts.Records: what the ledger says or, where it cannot be read, what the request shows.
func (l *look) Get(key source.Key) *observation.Record {
	if l.records != nil {
		if record := l.records.Get(key); record != nil || !l.observe {
			return l.upToDate(record, l.written[key.Source])
		}
	} else if record := l.shownChange(key); record != nil {
		l.told++
		return record
	}
	if l.observe {
		return l.firstSight(key)
	}
	return nil
}

// upToDate is the record of a source as KICK has it in memory: a write of labels or annotations does not get into the ledger,
// where the version of the source stays behind for good. After a while a running KICK has read whatever was written.
func (l *look) upToDate(record *observation.Record, metadata *metav1.PartialObjectMetadata) *observation.Record {
	if record == nil || metadata == nil || !l.installed.runs() || l.now().Before(lastWritten(metadata).Add(unrecorded)) {
		return record
	}
	read := *record
	read.ResourceVersion = metadata.ResourceVersion
	return &read
}

// lastWritten is when an object was last written, as far as the API server dates that.
func lastWritten(metadata *metav1.PartialObjectMetadata) time.Time {
	last := metadata.CreationTimestamp.Time
	for i := range metadata.ManagedFields {
		if at := metadata.ManagedFields[i].Time; at != nil && at.After(last) {
			last = at.Time
		}
	}
	return last
}

// shownChange is what the request shows of a source. Which version of it KICK has read the request does not tell.
func (l *look) shownChange(name source.Key) *observation.Record {
	if l.request == nil {
		return nil
	}
	status := l.request.Status
	var latest time.Time
	changes := status.Causes
	if status.CurrentRollout != nil {
		changes = append(slices.Clip(changes), status.CurrentRollout.Covers...)
	}
	for _, change := range changes {
		if change.Kind == name.Kind && change.Name == name.Name && change.ChangedAt.After(latest) {
			latest = change.ChangedAt.Time
		}
	}
	if latest.IsZero() {
		return nil
	}
	record := &observation.Record{ChangedAt: latest}
	if metadata, err := (&source.Reader{Cache: l.client}).Metadata(context.Background(), name); err == nil && metadata != nil {
		record.ResourceVersion = metadata.ResourceVersion
	}
	return record
}

// firstSight is the record that KICK makes of a source it has not seen before, but for its content.
func (l *look) firstSight(key source.Key) *observation.Record {
	metadata, err := (&source.Reader{Cache: l.client}).Metadata(context.Background(), key)
	if err != nil || metadata == nil {
		return nil
	}
	record, _ := observation.Observe(nil, observation.Sight{
		ResourceVersion: metadata.ResourceVersion, LastWrite: source.LastWrite(metadata),
	}, l.now())
	return &record
}

// unseen notes a source that may not be read, and returns what is known of it all the same.
func (l *look) unseen(key source.Key, refusal error) *observation.Record {
	l.standings[key.Source] = explain.Standed{Standing: explain.Unseen, Detail: reasonOf(refusal)}
	l.guessed = true
	record := l.Get(key)
	if record == nil {
		return nil
	}
	l.standings[key.Source] = explain.Standed{Standing: explain.Counts, Detail: "you may not read its metadata; the time is KICK's"}
	return record
}

// stand finds out about sources that do not simply count.
func (l *look) stand(ctx context.Context, scopes *facts.Scopes) error {
	scope, err := scopes.Of(ctx, l.target)
	if err != nil {
		return err
	}
	for _, reference := range l.target.References() {
		key := source.Key{Namespace: l.target.Key.Namespace, Source: reference.Source}
		metadata, err := scopes.Sources.Metadata(ctx, key)
		if apierrors.IsForbidden(err) {
			continue // unseen is asked about it.
		}
		if err != nil {
			return err
		}
		if metadata != nil {
			l.written[reference.Source] = metadata
		}
		if standed := l.standing(reference, key, metadata, scope); standed.Standing != explain.Counts {
			l.standings[reference.Source] = standed
		}
	}
	return nil
}

func (l *look) standing(
	reference deps.Reference, key source.Key, metadata *metav1.PartialObjectMetadata, scope policy.Scope,
) explain.Standed {
	switch {
	case metadata == nil && reference.Required:
		return explain.Standed{Standing: explain.Missing, Detail: "does not exist, and new Pods do not start without it"}
	case metadata == nil:
		return explain.Standed{Standing: explain.Missing, Detail: "does not exist, and is optional"}
	case metadata.Labels[policy.IgnoreLabel] == "true":
		return explain.Standed{Standing: explain.Ignored, Detail: "has the label " + policy.IgnoreLabel}
	case !scope.Managed():
		return explain.Standed{Standing: explain.NotCovered, Detail: "no policy selects the workload"}
	case !scope.AdmitsSource(labels.Set(metadata.Labels)):
		return explain.Standed{Standing: explain.NotCovered, Detail: "no dependencySelector of the policies selects it"}
	}
	record := l.Get(key)
	switch {
	case record == nil && l.records == nil:
		return explain.Standed{Standing: explain.Unseen, Detail: "when it changed is in the ledger"}
	case record == nil:
		return explain.Standed{Standing: explain.Unobserved, Detail: "KICK has yet to read it for the first time"}
	case record.ResourceVersion != metadata.ResourceVersion:
		return explain.Standed{Standing: explain.Unread, Detail: "written since KICK last read it"}
	default:
		return explain.Standed{Standing: explain.Counts}
	}
}

// judgeSight says what the missing ledger means.
func (l *look) judgeSight(gathered request.Facts) {
	if l.records != nil || l.observe || !gathered.Scope.Managed() {
		return
	}
	switch {
	case l.told == 0 && len(l.target.References()) > 0:
		l.blind = true
		l.note("for want of the ledger, when the sources changed is not known, and the Pods cannot be judged")
	case l.told > 0:
		l.note("for want of the ledger, the change times are those that the request of the workload shows")
	}
}

// reasonOf is what the API server says about a refusal, without the way there.
func reasonOf(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Message
	}
	return err.Error()
}
