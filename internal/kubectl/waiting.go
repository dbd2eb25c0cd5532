package kubectl

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/ledger"
	"github.com/kick-dev/kick/internal/cluster/source"
	"github.com/kick-dev/kick/internal/cluster/workload"
	"github.com/kick-dev/kick/internal/core/deps"
	"github.com/kick-dev/kick/internal/core/freshness"
	"github.com/kick-dev/kick/internal/core/observation"
	"github.com/kick-dev/kick/internal/core/request"
	"github.com/kick-dev/kick/internal/kubectl/explain"
)

func newWait(c *connection) *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "wait KIND/NAME",
		Short: "Wait until the Pods of a workload carry every change made so far",
		Long: "Waits until every change of the sources of a workload that was made before the call, and a restart that was asked\n" +
			"for before it, is carried by the running Pods or needs no restart. A change that KICK has not read yet counts, too;\n" +
			"changes after the call do not. It fails if the restart fails, if nobody manages the workload, and if --timeout ends.",
		Example: "  kubectl create secret generic db --from-env-file=db.env --dry-run=client -o yaml | kubectl apply -f -\n" +
			"  kubectl kick wait deployment/web --timeout 10m",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, arguments []string) error {
			s, err := c.open()
			if err != nil {
				return err
			}
			key, err := parseWorkload(s.namespace, arguments)
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			if timeout > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, timeout)
				defer cancel()
			}
			return s.waitFor(ctx, key)
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "How long to wait; 0 for as long as it takes")
	return cmd
}

// lookPause is the pause between two looks at a workload that is waited for.
const lookPause = time.Second

func (s *session) waitFor(ctx context.Context, key workload.Key) error {
	w, err := s.newWaiter(ctx, key)
	if err != nil {
		return err
	}
	last := ""
	for {
		seen, err := w.look(ctx)
		switch {
		case ctx.Err() != nil:
			return gaveUp(key, last)
		case err != nil:
			return err
		case seen.over:
			s.say("%s: the Pods carry every change made before %s", shown(key.Kind, key.Name), w.began.UTC().Format(time.RFC3339))
			return nil
		case seen.line != last:
			s.say("%s", seen.line)
			last = seen.line
		}
		select {
		case <-ctx.Done():
			return gaveUp(key, last)
		case <-time.After(lookPause):
		}
	}
}

func gaveUp(key workload.Key, last string) error {
	if last == "" {
		return fmt.Errorf("gave up waiting for %s before anything was known", shown(key.Kind, key.Name))
	}
	return fmt.Errorf("gave up waiting for %s, which goes on; last seen: %s", shown(key.Kind, key.Name), last)
}

// waiter waits for what was there when it was made.
type waiter struct {
	*inspector
	key   workload.Key
	uid   types.UID
	began time.Time
	// written is each source as it was, and manual the restart that a person had asked for.
	written map[deps.Source]*metav1.PartialObjectMetadata
	manual  *v1alpha1.ManualRestart
	// changes are those waited for, nil until KICK has read all of these versions.
	changes freshness.Changes
}

func (s *session) newWaiter(ctx context.Context, key workload.Key) (*waiter, error) {
	inspector, err := s.inspect(ctx, key.Namespace)
	if err != nil {
		return nil, err
	}
	w := &waiter{inspector: inspector, key: key, began: s.now(), written: map[deps.Source]*metav1.PartialObjectMetadata{}}
	target, err := w.read(ctx)
	if err != nil {
		return nil, err
	}
	w.uid = target.UID()
	reader := &source.Reader{Cache: s.client, Live: s.client}
	for _, reference := range target.References() {
		metadata, err := reader.Metadata(ctx, source.Key{Namespace: key.Namespace, Source: reference.Source})
		if err != nil {
			return nil, fmt.Errorf("look at the %s %s: %w", reference.Kind, reference.Name, err)
		}
		if metadata != nil {
			w.written[reference.Source] = metadata
		}
	}
	present, err := w.request(ctx, target)
	if present != nil {
		w.manual = present.Spec.Manual
	}
	return w, err
}

func (w *waiter) read(ctx context.Context) (*workload.Workload, error) {
	target, err := (&workload.Client{Cache: w.client, Live: w.client}).Read(ctx, w.key)
	switch {
	case err != nil:
		return nil, err
	case target == nil:
		return nil, fmt.Errorf("%s is not in namespace %s", shown(w.key.Kind, w.key.Name), w.key.Namespace)
	case w.uid != "" && target.UID() != w.uid:
		return nil, fmt.Errorf("%s was made anew while it was waited for", shown(w.key.Kind, w.key.Name))
	default:
		return target, nil
	}
}

// seen is what one look finds: whether the wait is over, and what is to be said.
type seen struct {
	over bool
	line string
}

// look at the workload once.
func (w *waiter) look(ctx context.Context) (seen, error) {
	w.notes = nil
	records, err := ledger.Read(ctx, w.client, w.kickNamespace, w.key.Namespace)
	if apierrors.IsForbidden(err) {
		return seen{}, fmt.Errorf("which changes KICK has read is in the ledger: %w", err)
	}
	if err != nil {
		return seen{}, err
	}
	w.records = records
	target, err := w.read(ctx)
	if err != nil {
		return seen{}, err
	}
	present, err := w.request(ctx, target)
	if err != nil {
		return seen{}, err
	}
	look := &look{
		inspector: w.inspector, target: target, request: present, standings: map[deps.Source]explain.Standed{},
		written: map[deps.Source]*metav1.PartialObjectMetadata{},
	}
	gathered, err := look.gather(ctx)
	if err != nil {
		return seen{}, err
	}
	if !gathered.Scope.Managed() {
		return seen{}, fmt.Errorf("%s is not managed: no KickPolicy of namespace %s selects it, so KICK brings no change to its Pods",
			shown(w.key.Kind, w.key.Name), w.key.Namespace)
	}
	if !gathered.Evidence.PodsRead || !gathered.Evidence.RevisionRead {
		return seen{}, fmt.Errorf("whether Pods carry the changes cannot be told: %s", strings.Join(append(w.notes, look.notes...), "; "))
	}
	if unread := w.unread(look.standings); w.changes == nil && unread != "" {
		return seen{line: "KICK has yet to read " + unread}, nil
	}
	if w.changes == nil {
		w.changes = maps.Clone(gathered.Changes)
	}
	return w.judge(look, gathered)
}

// unread names a source that counts and of which KICK has not read the version that there was, nor a later one.
func (w *waiter) unread(standings map[deps.Source]explain.Standed) string {
	for written, metadata := range w.written {
		switch standings[written].Standing {
		case explain.Ignored, explain.NotCovered, explain.Missing:
			continue
		default:
		}
		record := w.records.Get(source.Key{Namespace: w.key.Namespace, Source: written})
		if !w.reached(record, metadata) {
			return fmt.Sprintf("the %s %s", written.Kind, written.Name)
		}
	}
	return ""
}

// unrecorded is how long a running KICK is given to put a write on record.
const unrecorded = 15 * time.Second

// reached tells whether KICK has read a source as it was, or later. A change of content it puts on record at once; for a
// label or an annotation it does not write the ledger, so that a record may be of an older version for good.
func (w *waiter) reached(record *observation.Record, was *metav1.PartialObjectMetadata) bool {
	if record == nil {
		return false
	}
	if order, err := resourceversion.CompareResourceVersion(record.ResourceVersion, was.ResourceVersion); err == nil && order >= 0 {
		return true
	}
	return w.installed.runs() && w.now().After(w.began.Add(unrecorded))
}

// judge tells whether the changes that are waited for are carried, whatever came after them.
func (w *waiter) judge(look *look, gathered request.Facts) (seen, error) {
	var status v1alpha1.KickRequestStatus
	if look.request != nil {
		status = look.request.Status
	}
	waitedFor := gathered
	waitedFor.Changes, waitedFor.Manual = w.changes, w.manual
	judged := request.Explain(status, waitedFor, settings(), w.now())
	switch {
	case gathered.Evidence.Rollout.Complete && !judged.Stale:
		return seen{over: true}, nil
	case look.request != nil && status.Phase == v1alpha1.PhaseFailed && len(judged.Open) == 0:
		return seen{}, fmt.Errorf("the restart of %s failed: %s", shown(w.key.Kind, w.key.Name), progress(look.request))
	case look.request != nil && !status.Phase.Terminal():
		return seen{line: progress(look.request)}, nil
	default:
		return seen{line: w.decided(look, gathered)}, nil
	}
}

// decided is what KICK does next, where its request does not say it.
func (w *waiter) decided(look *look, gathered request.Facts) string {
	decision := explain.Of(explain.Input{
		Namespace: w.key.Namespace, Kind: w.key.Kind, Name: w.key.Name, Now: w.now(), Settings: settings(), Request: look.request,
		Facts: gathered, References: look.target.References(), Standings: look.standings,
	}).Decision
	if decision.Phase == "" {
		return decision.Message
	}
	return fmt.Sprintf("%s, %s: %s", decision.Phase, decision.Reason, decision.Message)
}
