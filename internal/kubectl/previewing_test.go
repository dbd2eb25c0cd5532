package kubectl

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kick-dev/kick/internal/testing/golden"
)

// run runs the plugin without a cluster.
func run(t *testing.T, in string, arguments ...string) (code int, out, complaints string) {
	t.Helper()
	t.Setenv("KUBECONFIG", os.DevNull)
	t.Setenv("HOME", "/home/anna")
	var stdout, stderr bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(in), Out: &stdout, ErrOut: &stderr}
	code = Run(t.Context(), "v1.2.3", streams, arguments)
	return code, stdout.String(), stderr.String()
}

const sound = `apiVersion: kick.dev/v1alpha1
kind: KickPolicy
metadata: {name: web, namespace: shop}
spec:
  dryRun: true
  discovery: {workloadSelector: {matchLabels: {app: web}}}
`

func TestPreviewChecksWithoutACluster(t *testing.T) {
	for name, tc := range map[string]struct {
		in   string
		code int
	}{
		"sound":              {sound, 0},
		"two of two":         {sound + "---\n" + strings.ReplaceAll(sound, "name: web", "name: api"), 0},
		"among other things": {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n---\n" + sound, 0},
		"no policy":          {"apiVersion: v1\nkind: ConfigMap\n", 1},
		"no YAML":            {"a: [", 1},
		"unknown fields":     {sound + "  shedule: {windows: []}\n", 1},
		"no selector":        {strings.ReplaceAll(sound, "workloadSelector: {matchLabels: {app: web}}", ""), 1},
		"a bad cron":         {sound + "  schedule: {windows: [{kind: Allow, cron: \"0 25 * * *\", duration: 1h}]}\n", 1},
		"many faults": {sound + "  schedule: {windows: [{kind: Allow, cron: \"@daily\", duration: 0s, timeZone: Mars/Base}]}\n" + "---\n" +
			strings.ReplaceAll(sound, "dryRun: true", "dryRun: 3"), 1},
		"a rule broken": {sound + "  restart: {rolloutDeadline: 0s}\n", 1},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, complaints := run(t, tc.in, "preview", "--offline", "-f", "-")
			if code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
			golden.Compare(t, filepath.Join("preview", strings.ReplaceAll(name, " ", "-")), out+complaints)
		})
	}
}

func TestArgumentsAreChecked(t *testing.T) {
	for name, tc := range map[string]struct {
		arguments []string
		says      string
	}{
		"no kind":        {[]string{"explain", "web"}, "write KIND/NAME"},
		"another kind":   {[]string{"explain", "job/web"}, "deployment, statefulset or daemonset"},
		"no name":        {[]string{"explain", "deployment/"}, "write KIND/NAME"},
		"no workload":    {[]string{"wait"}, "accepts between 1 and 2 arg(s)"},
		"no duration":    {[]string{"wait", "deployment/web", "--timeout", "soon"}, "invalid duration"},
		"no format":      {[]string{"status", "-o", "xml"}, "must be one of text, wide, json, yaml"},
		"too few days":   {[]string{"calendar", "web", "--days", "0"}, "between 1 and 366"},
		"a wrong zone":   {[]string{"calendar", "web", "--time-zone", "Mars/Base"}, "Europe/Berlin"},
		"no file":        {[]string{"preview"}, `required flag(s) "filename" not set`},
		"watching JSON":  {[]string{"status", "-w", "-o", "json"}, "-w shows text alone"},
		"no such thing":  {[]string{"dance"}, `unknown command "dance"`},
		"a missing file": {[]string{"preview", "-f", "gone.yaml"}, "gone.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, complaints := run(t, "", append(tc.arguments, "--server", "https://127.0.0.1:1")...)
			if code != 1 || !strings.Contains(complaints, tc.says) {
				t.Errorf("exit code %d, says %q, want %q", code, complaints, tc.says)
			}
		})
	}
}

func TestTheVersionIsShown(t *testing.T) {
	for _, argument := range []string{"version", "--version"} {
		if code, out, _ := run(t, "", argument); code != 0 || !strings.HasPrefix(out, "kubectl kick version ") {
			t.Errorf("%s: exit code %d, shows %q", argument, code, out)
		}
	}
}

func TestEveryCommandHelps(t *testing.T) {
	_, out, _ := run(t, "", "--help")
	golden.Compare(t, "help", out)
	for _, command := range []string{"status", "explain", "wait", "restart", "preview", "calendar", "timeline", "doctor", "migrate", "version"} {
		if !strings.Contains(out, "  "+command+" ") {
			t.Errorf("the help does not name %s", command)
		}
		code, help, _ := run(t, "", command, "--help")
		if code != 0 || !strings.Contains(help, "--context") || !strings.Contains(help, "--kubeconfig") || !strings.Contains(help, "--namespace") {
			t.Errorf("%s lacks the flags of kubectl:\n%s", command, help)
		}
	}
}
