package kubectl

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
)

// statusOptions are the flags of the command status.
type statusOptions struct {
	everywhere, ended, watch bool
	as                       format
}

func newStatus(c *connection) *cobra.Command {
	var options statusOptions
	cmd := &cobra.Command{
		Use:   "status [KIND/NAME]",
		Short: "Show what waits, for what, and until when",
		Long: "Shows the restarts that are waiting or under way: for what they wait, until when if that is known, and because\n" +
			"of which changes.",
		Example: "  kubectl kick status -A\n  kubectl kick status -n shop -w\n  kubectl kick status deployment/web --ended",
		Args:    cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, arguments []string) error {
			s, err := c.open()
			if err != nil {
				return err
			}
			return s.status(cmd.Context(), options, arguments)
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&options.everywhere, "all-namespaces", "A", false, "Look at all namespaces")
	flags.BoolVar(&options.ended, "ended", false, "Show requests that have ended, too")
	flags.BoolVarP(&options.watch, "watch", "w", false, "Go on and show every change")
	formatFlag(cmd, &options.as, formatText, formatWide, formatJSON, formatYAML)
	return cmd
}

func (s *session) status(ctx context.Context, options statusOptions, arguments []string) error {
	if options.watch && (options.as == formatJSON || options.as == formatYAML) {
		return fmt.Errorf("-w shows text alone; leave out -o %s", options.as)
	}
	wanted, err := s.wanted(options, arguments)
	if err != nil {
		return err
	}
	list, err := s.requests(ctx, options.everywhere)
	if err != nil {
		return err
	}
	found := slices.DeleteFunc(slices.Clone(list.Items), func(r v1alpha1.KickRequest) bool { return !wanted(&r) })
	slices.SortFunc(found, func(a, b v1alpha1.KickRequest) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	switch options.as {
	case formatJSON, formatYAML:
		shown := &v1alpha1.KickRequestList{TypeMeta: listType, Items: found}
		for i := range shown.Items {
			shown.Items[i].TypeMeta = requestType
			shown.Items[i].ManagedFields = nil
		}
		return write(s.streams.Out, options.as, shown, nil)
	default:
	}
	table := newStatusTable(s.streams.Out, options.everywhere, options.as == formatWide)
	for i := range found {
		table.add(&found[i], s.opening(ctx, &found[i]), s.now())
	}
	if err := table.flush(); err != nil {
		return err
	}
	if len(found) == 0 {
		s.remark("%s", nothing(options, s.namespace))
	}
	if !options.watch {
		return nil
	}
	return s.follow(ctx, options.everywhere, list.ResourceVersion, func(_ watch.EventType, r *v1alpha1.KickRequest) (bool, error) {
		if len(arguments) > 0 && !wanted(r) && !r.Status.Phase.Terminal() {
			return false, nil
		}
		table.add(r, s.opening(ctx, r), s.now()) // Its end is shown, too.
		return false, table.flush()
	})
}

var (
	requestType = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "KickRequest"}
	listType    = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "KickRequestList"}
)

// wanted tells which requests are asked for.
func (s *session) wanted(options statusOptions, arguments []string) (func(*v1alpha1.KickRequest) bool, error) {
	if len(arguments) == 0 {
		return func(r *v1alpha1.KickRequest) bool { return options.ended || !r.Status.Phase.Terminal() }, nil
	}
	key, err := parseWorkload(s.namespace, arguments)
	if err != nil {
		return nil, err
	}
	return func(r *v1alpha1.KickRequest) bool {
		return r.Spec.TargetRef.Kind == key.Kind && r.Spec.TargetRef.Name == key.Name
	}, nil
}

func (s *session) requests(ctx context.Context, everywhere bool) (*v1alpha1.KickRequestList, error) {
	list := &v1alpha1.KickRequestList{}
	if err := s.client.List(ctx, list, s.in(everywhere)); err != nil {
		return nil, fmt.Errorf("list the requests: %w", err)
	}
	return list, nil
}

func (s *session) in(everywhere bool) client.InNamespace {
	if everywhere {
		return metav1.NamespaceAll
	}
	return client.InNamespace(s.namespace)
}

func nothing(options statusOptions, namespace string) string {
	where := "in namespace " + namespace
	if options.everywhere {
		where = "in any namespace"
	}
	if options.ended {
		return "There are no requests " + where + "."
	}
	return "Nothing waits " + where + "."
}

// follow shows changes of requests until the context ends or the callback says so.
func (s *session) follow(
	ctx context.Context, everywhere bool, version string, tell func(watch.EventType, *v1alpha1.KickRequest) (bool, error),
) error {
	for {
		changes, err := s.client.Watch(ctx, &v1alpha1.KickRequestList{}, s.in(everywhere),
			&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version}})
		if err != nil {
			return fmt.Errorf("watch the requests: %w", err)
		}
		done, err := pump(ctx, changes, &version, tell)
		if done || err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// pump tells of changes until the watch ends, which it does after a while.
func pump(
	ctx context.Context, changes watch.Interface, version *string, tell func(watch.EventType, *v1alpha1.KickRequest) (bool, error),
) (bool, error) {
	defer changes.Stop()
	for {
		select {
		case <-ctx.Done():
			return true, nil
		case event, more := <-changes.ResultChan():
			if !more {
				return false, nil
			}
			changed, ok := event.Object.(*v1alpha1.KickRequest)
			if !ok {
				*version = "" // Most likely it is too old: begin anew.
				return false, nil
			}
			*version = changed.ResourceVersion
			if done, err := tell(event.Type, changed); done || err != nil {
				return done, err
			}
		}
	}
}

// statusTable shows requests, one a line.
type statusTable struct {
	out        tabWriter
	everywhere bool
	wide       bool
	headed     bool
}

type tabWriter interface {
	Write([]byte) (int, error)
	Flush() error
}

func newStatusTable(out interface{ Write([]byte) (int, error) }, everywhere, wide bool) *statusTable {
	return &statusTable{out: printers.GetNewTabWriter(out), everywhere: everywhere, wide: wide}
}

func (t *statusTable) row(namespace string, cells ...string) {
	if t.everywhere {
		cells = append([]string{namespace}, cells...)
	}
	fmt.Fprintln(t.out, strings.Join(cells, "\t")) //nolint:errcheck // flush returns it
}

// add a request, with the instant at which its gate opens if that is known.
func (t *statusTable) add(r *v1alpha1.KickRequest, opening string, now time.Time) {
	if !t.headed {
		t.headed = true
		head := []string{"WORKLOAD", "PHASE", "REASON", "UNTIL", "CHANGED", "BECAUSE OF"}
		if t.wide {
			head = append(head, "MESSAGE")
		}
		t.row("NAMESPACE", head...)
	}
	target, status := r.Spec.TargetRef, &r.Status
	cells := []string{
		shown(target.Kind, target.Name), string(cmp.Or(status.Phase, v1alpha1.PhasePending)), "-", "-", "-", causes(status),
	}
	ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
	if ready != nil {
		cells[2] = ready.Reason
	}
	if opening != "" {
		cells[3] = until(opening, now)
	}
	if latest := status.LatestObservedDependencyChange; latest != nil {
		cells[4] = duration.HumanDuration(now.Sub(latest.Time)) + " ago"
	}
	if t.wide {
		message := "-"
		if ready != nil {
			message = strings.Join(strings.Fields(ready.Message), " ")
		}
		cells = append(cells, message)
	}
	t.row(r.Namespace, cells...)
}

func (t *statusTable) flush() error { return t.out.Flush() }

// until shows an instant, with the time that is left.
func until(instant string, now time.Time) string {
	at, err := time.Parse(time.RFC3339, instant)
	if err != nil || !at.After(now) {
		return instant
	}
	return fmt.Sprintf("%s (in %s)", instant, duration.HumanDuration(at.Sub(now)))
}

// causes names the changes that a request is about.
func causes(status *v1alpha1.KickRequestStatus) string {
	const named = 3
	var names []string
	for i, cause := range status.Causes {
		if i == named {
			break
		}
		names = append(names, string(cause.Kind)+"/"+cause.Name)
	}
	list := strings.Join(names, ", ")
	if more := len(status.Causes) - len(names) + int(status.CausesOmitted); more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return cmp.Or(list, "-")
}
