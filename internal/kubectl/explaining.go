package kubectl

import (
	"github.com/spf13/cobra"
)

func newExplain(c *connection) *cobra.Command {
	var as format
	cmd := &cobra.Command{
		Use:   "explain KIND/NAME",
		Short: "Explain what KICK decides about a workload, and why",
		Long: "Explains the decision about one workload: the sources it consumes with their change times, the evidence that\n" +
			"its Pods carry them, the verdict, every link of the gate, and what KICK does next. It decides with the code that\n" +
			"the controllers use, on what you may read, and says what it could not see. It changes nothing.",
		Example: "  kubectl kick explain deployment/web -n shop\n  kubectl kick explain sts/orders -o json",
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
			inspector, err := s.inspect(cmd.Context(), key.Namespace)
			if err != nil {
				return err
			}
			report, err := inspector.report(cmd.Context(), key)
			if err != nil {
				return err
			}
			return write(c.streams.Out, as, report, report.WriteText)
		},
	}
	formatFlag(cmd, &as, formatText, formatJSON, formatYAML)
	return cmd
}
