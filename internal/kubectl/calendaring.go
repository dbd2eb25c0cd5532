package kubectl

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/kubectl/calendar"
)

// maxDays bounds a calendar.
const maxDays = 366

func newCalendar(c *connection) *cobra.Command {
	var (
		days int
		zone string
		as   format
	)
	cmd := &cobra.Command{
		Use:     "calendar KICKPOLICY",
		Short:   "Show when a policy is open",
		Long:    "Shows when the schedule of a policy is open over the next days: as text, as an SVG drawing or as a page of one file.",
		Example: "  kubectl kick calendar web -n shop\n  kubectl kick calendar web --days 31 -o html > web.html",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, arguments []string) error {
			if days < 1 || days > maxDays {
				return fmt.Errorf("--days must be between 1 and %d", maxDays)
			}
			var in *time.Location
			if zone != "" {
				var err error
				if in, err = time.LoadLocation(zone); err != nil {
					return fmt.Errorf("--time-zone: %q is no known time zone; name one such as Europe/Berlin", zone)
				}
			}
			s, err := c.open()
			if err != nil {
				return err
			}
			of := &v1alpha1.KickPolicy{}
			if err := s.client.Get(cmd.Context(), types.NamespacedName{Namespace: s.namespace, Name: arguments[0]}, of); err != nil {
				return fmt.Errorf("get the policy %s of namespace %s: %w", arguments[0], s.namespace, err)
			}
			made := calendar.Of(of, s.now(), days, in)
			switch as {
			case formatSVG:
				return made.WriteSVG(c.streams.Out)
			case formatHTML:
				return made.WriteHTML(c.streams.Out)
			default:
				return made.WriteText(c.streams.Out)
			}
		},
	}
	cmd.Flags().IntVar(&days, "days", 14, "How many days, from today on")
	cmd.Flags().StringVar(&zone, "time-zone", "", "Show times of this zone; the default is that of the windows, or UTC")
	formatFlag(cmd, &as, formatText, formatSVG, formatHTML)
	return cmd
}
