package kubectl

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/kubectl/timeline"
)

func newTimeline(c *connection) *cobra.Command {
	var (
		options statusOptions
		since   time.Duration
		as      format
	)
	cmd := &cobra.Command{
		Use:   "timeline [KIND/NAME]",
		Short: "Show changes, waits, restarts and rollouts on one axis",
		Long: "Shows what happened to a workload, or to all of a namespace: changes, waits, restarts and rollouts, as text, as an\n" +
			"SVG drawing or as a page of one file. It knows what requests and events know: of each workload the last restart,\n" +
			"and everything of about the last hour.",
		Example: "  kubectl kick timeline deployment/web\n  kubectl kick timeline -A --since 2h -o html > kick.html",
		Args:    cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, arguments []string) error {
			s, err := c.open()
			if err != nil {
				return err
			}
			options.ended = true
			made, err := s.timeline(cmd.Context(), options, arguments, since)
			if err != nil {
				return err
			}
			switch as {
			case formatSVG:
				return made.WriteSVG(c.streams.Out)
			case formatHTML:
				return made.WriteHTML(c.streams.Out)
			default:
				return write(c.streams.Out, as, made, made.WriteText)
			}
		},
	}
	cmd.Flags().BoolVarP(&options.everywhere, "all-namespaces", "A", false, "Look at all namespaces")
	cmd.Flags().DurationVar(&since, "since", 24*time.Hour, "How far back to look")
	formatFlag(cmd, &as, formatText, formatSVG, formatHTML, formatJSON, formatYAML)
	return cmd
}

func (s *session) timeline(
	ctx context.Context, options statusOptions, arguments []string, since time.Duration,
) (timeline.Timeline, error) {
	wanted, err := s.wanted(options, arguments)
	if err != nil {
		return timeline.Timeline{}, err
	}
	list, err := s.requests(ctx, options.everywhere)
	if err != nil {
		return timeline.Timeline{}, err
	}
	requests := slices.DeleteFunc(list.Items, func(r v1alpha1.KickRequest) bool { return !wanted(&r) })
	var events eventsv1.EventList
	err = s.client.List(ctx, &events, s.in(options.everywhere))
	if apierrors.IsForbidden(err) {
		s.remark("Not seen: events, which you may not list; what is shown is what requests keep.")
		err = nil
	}
	if err != nil {
		return timeline.Timeline{}, fmt.Errorf("list the events: %w", err)
	}
	return timeline.Of(requests, events.Items, s.now().Add(-since), s.now()), nil
}
