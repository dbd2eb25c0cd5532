package kubectl

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/client-go/discovery"

	"github.com/kick-dev/kick/internal/kubectl/doctor"
)

func newDoctor(c *connection) *cobra.Command {
	var as format
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Find out what is wrong with KICK in this cluster",
		Long: "Looks at the CRDs, the manager and its rights, its leader, the webhooks and their certificate, the ledger, the\n" +
			"GitOps tools, policies and requests, and names a remedy for each trouble. It changes nothing: where it asks the API\n" +
			"server what would happen, it asks for a dry run. It exits with 1 if there is a problem.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := c.open()
			if err != nil {
				return err
			}
			kinds, err := discovery.NewDiscoveryClientForConfig(s.config)
			if err != nil {
				return fmt.Errorf("connect to the API server: %w", err)
			}
			patient := &doctor.Patient{Client: s.client, Discovery: kinds, Namespace: s.kickNamespace, Version: s.version, Now: s.now}
			findings := patient.Examine(cmd.Context())
			err = write(c.streams.Out, as, findings, func(out io.Writer) error { return doctor.WriteText(out, findings) })
			if err == nil && doctor.Sick(findings) {
				return errFindings
			}
			return err
		},
	}
	formatFlag(cmd, &as, formatText, formatJSON, formatYAML)
	return cmd
}
