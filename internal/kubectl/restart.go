package kubectl

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/facts"
	"github.com/kick-dev/kick/internal/cluster/workload"
	"github.com/kick-dev/kick/internal/core/request"
)

// restartOptions are the flags of the command restart.
type restartOptions struct {
	reason         string
	override, wait bool
	timeout        time.Duration
}

func newRestart(c *connection) *cobra.Command {
	var options restartOptions
	cmd := &cobra.Command{
		Use:   "restart KIND/NAME",
		Short: "Ask KICK to restart a workload",
		Long: "Asks KICK for a restart, in your name. Quiet period and minimum interval do not hold it back; closed windows and\n" +
			"GitOps do, unless --override is set, which takes the right to override kickrequests. A suspended or dry policy, a\n" +
			"missing source and the limits on concurrent restarts hold it back in any case.",
		Example: "  kubectl kick restart deployment/web --reason \"new licence\" --wait",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, arguments []string) error {
			s, err := c.open()
			if err != nil {
				return err
			}
			key, err := parseWorkload(s.namespace, arguments)
			if err != nil {
				return err
			}
			return s.restart(cmd.Context(), key, options)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&options.reason, "reason", "", "Why, for those who look at the restart later")
	flags.BoolVar(&options.override, "override", false, "Do not wait for closed windows and GitOps")
	flags.BoolVar(&options.wait, "wait", false, "Wait until the restart is live, and fail if it fails")
	flags.DurationVar(&options.timeout, "timeout", 0, "With --wait, how long to wait; 0 for as long as it takes")
	return cmd
}

func (s *session) restart(ctx context.Context, key workload.Key, options restartOptions) error {
	target, err := (&workload.Client{Live: s.client}).Read(ctx, key)
	if err != nil {
		return err
	}
	if target == nil {
		return fmt.Errorf("%s is not in namespace %s", shown(key.Kind, key.Name), key.Namespace)
	}
	managed, err := s.managed(ctx, target)
	if err != nil {
		return err
	}
	if !managed {
		return fmt.Errorf("%s is not managed: no KickPolicy of namespace %s selects it, so KICK does not restart it; "+
			"`kubectl rollout restart` does", shown(key.Kind, key.Name), key.Namespace)
	}
	user, err := s.user(ctx)
	if err != nil {
		return err
	}
	wish := &v1alpha1.ManualRestart{
		RequestedAt: metav1.NewMicroTime(s.now().UTC().Truncate(time.Microsecond)), RequestedBy: user,
		Reason: options.reason, Override: options.override,
	}
	asked, err := s.ask(ctx, target, wish)
	if err != nil {
		return err
	}
	s.say("%s: asked for a restart (kickrequest/%s)", shown(key.Kind, key.Name), asked.Name)
	if !options.wait {
		return nil
	}
	if options.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, options.timeout)
		defer cancel()
	}
	return s.await(ctx, asked, wish)
}

func (s *session) managed(ctx context.Context, target *workload.Workload) (bool, error) {
	scope, err := (&facts.Scopes{Cache: s.client, Reserved: s.kickNamespace}).Of(ctx, target)
	return scope.Managed(), err
}

// user is the name under which the API server knows who runs the command.
func (s *session) user(ctx context.Context) (string, error) {
	review := &authenticationv1.SelfSubjectReview{}
	if err := s.client.Create(ctx, review); err != nil {
		return "", fmt.Errorf("ask the API server who you are: %w", err)
	}
	return review.Status.UserInfo.Username, nil
}

// ask writes the wish to the request of the workload, making one if there is none.
func (s *session) ask(ctx context.Context, target *workload.Workload, wish *v1alpha1.ManualRestart) (*v1alpha1.KickRequest, error) {
	name := types.NamespacedName{Namespace: target.Key.Namespace, Name: request.Name(target.Key.Kind, target.Key.Name)}
	asked := &v1alpha1.KickRequest{}
	lost := func(err error) bool {
		return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
	}
	err := retry.OnError(retry.DefaultBackoff, lost, func() error {
		err := s.client.Get(ctx, name, asked)
		if apierrors.IsNotFound(err) {
			asked = &v1alpha1.KickRequest{
				ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name},
				Spec:       v1alpha1.KickRequestSpec{TargetRef: target.TargetRef(), Manual: wish},
			}
			return s.client.Create(ctx, asked)
		}
		if err != nil {
			return err
		}
		old := asked.DeepCopy()
		asked.Spec.Manual = wish
		return s.client.Patch(ctx, asked, client.MergeFromWithOptions(old, client.MergeFromWithOptimisticLock{}))
	})
	if err != nil {
		return nil, fmt.Errorf("ask for a restart of %s: %w", shown(target.Key.Kind, target.Key.Name), err)
	}
	return asked, nil
}

// await follows a request until the restart that was wished for is live.
func (s *session) await(ctx context.Context, asked *v1alpha1.KickRequest, wish *v1alpha1.ManualRestart) error {
	last := ""
	var end error
	look := func(kind watch.EventType, r *v1alpha1.KickRequest) (bool, error) {
		if r.Name != asked.Name {
			return false, nil
		}
		if kind == watch.Deleted || r.UID != asked.UID {
			return true, fmt.Errorf("the request %s was deleted, so the outcome is not known", asked.Name)
		}
		if line := progress(r); line != last && concerns(r, asked.Generation) {
			s.say("%s", line)
			last = line
		}
		var over bool
		over, end = outcome(r, asked.Generation, wish)
		return over, nil
	}
	err := s.follow(ctx, false, asked.ResourceVersion, look)
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil && last != "":
		return fmt.Errorf("gave up waiting, and the restart stays asked for; last seen: %s", last)
	case ctx.Err() != nil:
		return fmt.Errorf("gave up waiting before KICK took the request up; `kubectl kick doctor` looks for the cause")
	default:
		return end
	}
}

// concerns tells whether the status is about the spec with the wish.
func concerns(r *v1alpha1.KickRequest, generation int64) bool {
	return r.Status.ObservedGeneration >= generation
}

func progress(r *v1alpha1.KickRequest) string {
	line := string(r.Status.Phase)
	if ready := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
		line += ", " + ready.Reason + ": " + ready.Message
	}
	return line
}

// outcome tells whether the wish has come to an end, and if it did not come true.
func outcome(r *v1alpha1.KickRequest, generation int64, wish *v1alpha1.ManualRestart) (over bool, failure error) {
	if !concerns(r, generation) || !r.Status.Phase.Terminal() || !covered(r, wish) {
		return false, nil
	}
	if r.Status.Phase == v1alpha1.PhaseFailed {
		return true, fmt.Errorf("the restart failed: %s", progress(r))
	}
	ready := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionReady)
	if ready != nil && ready.Reason == v1alpha1.ReasonNotManaged {
		return true, fmt.Errorf("nothing was restarted: %s", progress(r))
	}
	return true, nil
}

// covered tells whether the last rollout of a request is about the wish.
func covered(r *v1alpha1.KickRequest, wish *v1alpha1.ManualRestart) bool {
	ready := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionReady)
	if ready != nil && ready.Reason == v1alpha1.ReasonNotManaged {
		return true // Nothing is judged then.
	}
	if r.Status.CurrentRollout == nil {
		return false
	}
	for _, change := range r.Status.CurrentRollout.Covers {
		if change.Kind == v1alpha1.Manual && change.Name == wish.RequestedBy && !change.ChangedAt.Time.Before(wish.RequestedAt.Time) {
			return true
		}
	}
	through := r.Status.CurrentRollout.CoversThrough
	return through != nil && !through.Time.Before(wish.RequestedAt.Time)
}
