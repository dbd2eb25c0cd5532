package webhooks

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/request"
)

// wish is a KickRequest as a person writes it, without the instant, which comes last.
type wish struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   wishMeta `json:"metadata"`
	Spec       wishSpec `json:"spec"`
}

type wishMeta struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

type wishSpec struct {
	TargetRef v1alpha1.TargetRef `json:"targetRef"`
	Manual    wishManual         `json:"manual"`
}

type wishManual struct {
	RequestedBy string `json:"requestedBy"`
	// Override is always written, so that no earlier wish's is left standing.
	Override bool `json:"override"`
}

// askCommand is the shell command by which a user asks KICK to restart a workload now, whether or not the workload has a
// KickRequest already. It fills in the time at which it is run.
func askCommand(namespace string, target v1alpha1.TargetRef, user string) (string, error) {
	encoded, err := json.Marshal(wish{
		APIVersion: v1alpha1.GroupVersion.String(),
		Kind:       "KickRequest",
		Metadata:   wishMeta{Namespace: namespace, Name: request.Name(target.Kind, target.Name)},
		Spec:       wishSpec{TargetRef: target, Manual: wishManual{RequestedBy: user}},
	})
	if err != nil {
		return "", fmt.Errorf("encode the request for a restart: %w", err)
	}
	const end = "}}}"
	begin := strings.TrimSuffix(string(encoded), end) + `,"requestedAt":"`
	return fmt.Sprintf("printf %%s %s $(date -u +%%FT%%T.000000Z) %s | kubectl apply --server-side --force-conflicts -f -",
		shellQuote(begin), shellQuote(`"`+end)), nil
}

// shellQuote makes one word of a text, in which nothing is expanded.
func shellQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// objection says what is wrong with a foreign restart and how to get one: one paragraph each, and the command in one of
// its own.
func objection(of verdict, target v1alpha1.TargetRef, command string) []string {
	paragraphs := []string{
		fmt.Sprintf("%s %s is managed by KickPolicy %s: KICK decides when it restarts. To have KICK restart it now, run",
			target.Kind, target.Name, of.policy),
		command,
		`With "override":true in it the restart does not wait for closed windows and GitOps; ` +
			"that takes the right to override kickrequests.",
	}
	switch {
	case of.suspended:
		paragraphs = append(paragraphs, "The policy is suspended: KICK restarts nothing until spec.suspend is false again.")
	case of.dryRun:
		paragraphs = append(paragraphs, "The policy is a dry run: KICK restarts nothing until spec.dryRun is false.")
	}
	return paragraphs
}
