// Package doctor finds out what is wrong with an installation of KICK. It only reads; where it asks the API server what
// would happen, it asks for a dry run. Each problem comes with a remedy, and what the user may not see is said, not guessed.
package doctor

import (
	"context"
	"fmt"
	"io"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/internal/kubectl/text"
)

// Status of a finding.
type Status string

// The statuses.
const (
	OK      Status = "ok"
	Warning Status = "warning"
	Problem Status = "problem"
	Unseen  Status = "not seen"
)

// Finding is the result of one check.
type Finding struct {
	Check  string `json:"check"`
	Status Status `json:"status"`
	Detail string `json:"detail"`
	// Remedy is what to do, where there is something to do.
	Remedy string `json:"remedy,omitempty"`
}

// Patient is an installation, with the means to examine it.
type Patient struct {
	Client    client.Client
	Discovery discovery.DiscoveryInterface
	// Namespace that KICK is installed in.
	Namespace string
	// Version of the plugin.
	Version string
	Now     func() time.Time

	// manager is found by the first check; nil if there is none.
	manager *appsv1.Deployment
	// arguments of the manager.
	arguments map[string]string
	findings  []Finding
	check     string
}

// Examine makes all checks, in an order in which the cause of a trouble comes before its effects.
func (p *Patient) Examine(ctx context.Context) []Finding {
	for _, check := range []struct {
		name string
		look func(context.Context)
	}{
		{"API server", p.server},
		{"CRDs", p.crds},
		{"Manager", p.deployment},
		{"Leader", p.leader},
		{"Rights", p.rights},
		{"Webhooks", p.webhooks},
		{"Certificate", p.certificate},
		{"Ledger", p.ledger},
		{"GitOps", p.gitOps},
		{"Policies", p.policies},
		{"Requests", p.requests},
	} {
		p.check = check.name
		check.look(ctx)
	}
	return p.findings
}

func (p *Patient) found(status Status, remedy, format string, args ...any) {
	p.findings = append(p.findings, Finding{Check: p.check, Status: status, Remedy: remedy, Detail: fmt.Sprintf(format, args...)})
}

func (p *Patient) ok(format string, args ...any) { p.found(OK, "", format, args...) }

// failed notes that a check could not be made. It tells a missing right from other errors.
func (p *Patient) failed(err error, what string) {
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		p.found(Unseen, "run the doctor as an administrator to have this checked", "%s: you may not look", what)
		return
	}
	p.found(Problem, "find out why the API server answers so, and run the doctor again", "%s: %v", what, err)
}

// Sick tells whether any finding is a problem.
func Sick(findings []Finding) bool {
	for _, finding := range findings {
		if finding.Status == Problem {
			return true
		}
	}
	return false
}

var marks = map[Status]string{OK: "ok", Warning: "WARNING", Problem: "PROBLEM", Unseen: "not seen"}

// WriteText writes findings for people.
func WriteText(out io.Writer, findings []Finding) error {
	w := text.NewWriter(out)
	counts := map[Status]int{}
	w.Table(func(row func(cells ...string)) {
		for _, finding := range findings {
			counts[finding.Status]++
			row(marks[finding.Status], finding.Check, finding.Detail)
			if finding.Remedy != "" {
				row("", "", "→ "+finding.Remedy)
			}
		}
	})
	w.Line("\n%d checks ok, %d problems, %d warnings, %d not seen.", counts[OK], counts[Problem], counts[Warning], counts[Unseen])
	return w.Err()
}
