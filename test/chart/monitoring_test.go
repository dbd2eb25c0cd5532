package chart

import (
	"encoding/json"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// monitored turns on everything there is for Prometheus and Grafana.
const monitored = `metrics: {serviceMonitor: {enabled: true}, prometheusRule: {enabled: true}, dashboard: {enabled: true}}`

var promQL = parser.NewParser(parser.Options{})

func TestNothingForPrometheusIsMadeUnasked(t *testing.T) {
	for _, o := range standard("").mustRender(t) {
		u, ok := o.(*unstructured.Unstructured)
		if ok && strings.HasPrefix(u.GetAPIVersion(), "monitoring.coreos.com/") {
			t.Errorf("%s %s is rendered", u.GetKind(), u.GetName())
		}
		if c, ok := o.(*corev1.ConfigMap); ok {
			t.Errorf("ConfigMap %s is rendered", c.Name)
		}
	}
}

func TestTheServiceMonitorFindsTheMetricsServiceAlone(t *testing.T) {
	for name, r := range releases {
		if len(r.watches(t)) > 0 {
			continue // Without metrics.
		}
		t.Run(name, func(t *testing.T) {
			r.values = overlay(t, r.values, monitored)
			all := r.mustRender(t)
			monitor := only(t, all, func(u *unstructured.Unstructured) bool { return u.GetKind() == "ServiceMonitor" })
			selected, _, err := unstructured.NestedStringMap(monitor.Object, "spec", "selector", "matchLabels")
			if err != nil {
				t.Fatal(err)
			}
			service := only(t, all, func(s *corev1.Service) bool {
				return labels.SelectorFromSet(selected).Matches(labels.Set(s.Labels))
			})
			endpoint := path[[]any](t, monitor, "spec", "endpoints")[0].(map[string]any)
			if got := service.Spec.Ports[0].Name; got != endpoint["port"] {
				t.Errorf("port %s is monitored, the Service has %s", endpoint["port"], got)
			}
			if got := path[[]any](t, monitor, "spec", "namespaceSelector", "matchNames"); len(got) != 1 || got[0] != service.Namespace {
				t.Errorf("namespaces %v are monitored, the Service is in %s", got, service.Namespace)
			}
			if endpoint["scheme"] != "https" || endpoint["bearerTokenFile"] == nil {
				t.Errorf("the endpoint asks for TLS and a token, the monitor has %v", endpoint)
			}
		})
	}
}

func TestAnOpenEndpointIsSentNoToken(t *testing.T) {
	all := standard(overlay(t, monitored, `metrics: {access: Anyone}`)).mustRender(t)
	monitor := only(t, all, func(u *unstructured.Unstructured) bool { return u.GetKind() == "ServiceMonitor" })
	endpoint := path[[]any](t, monitor, "spec", "endpoints")[0].(map[string]any)
	if endpoint["bearerTokenFile"] != nil {
		t.Errorf("%v", endpoint)
	}
}

func TestReadersOfTheMetricsMayReadNothingElse(t *testing.T) {
	all := standard(`metrics: {readers: [{name: prometheus, namespace: monitoring}]}`).mustRender(t)
	binding := only(t, all, func(b *rbacv1.ClusterRoleBinding) bool {
		return slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool { return s.Name == "prometheus" && s.Namespace == "monitoring" })
	})
	role := only(t, all, func(r *rbacv1.ClusterRole) bool { return r.Name == binding.RoleRef.Name })
	if len(role.Rules) != 1 || !slices.Equal(role.Rules[0].NonResourceURLs, []string{"/metrics"}) || !slices.Equal(role.Rules[0].Verbs, []string{"get"}) {
		t.Errorf("%+v", role.Rules)
	}
}

// exported are the metrics of the generated page, with their labels. That the page is that of the manager, a test on a
// real manager shows.
func exported(t *testing.T) map[string][]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	row := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\w+) \\| (.*?) \\|")
	for _, m := range row.FindAllStringSubmatch(string(page), -1) {
		var names []string
		for _, label := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(m[3], -1) {
			names = append(names, label[1])
		}
		if m[2] != "histogram" {
			all[m[1]] = names
			continue
		}
		all[m[1]+"_bucket"] = append(names, "le")
		all[m[1]+"_sum"], all[m[1]+"_count"] = names, names
	}
	if len(all) < 10 {
		t.Fatalf("docs/metrics.md lists %v", all)
	}
	return all
}

// expectExported checks that a query is about metrics and labels that there are. The label namespace is Prometheus's own.
func expectExported(t *testing.T, query string, metrics map[string][]string) {
	t.Helper()
	parsed, err := promQL.ParseExpr(query)
	if err != nil {
		t.Errorf("%s: %v", query, err)
		return
	}
	known := []string{"namespace"}
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		names, exists := metrics[selector.Name]
		if !exists {
			t.Errorf("%s: KICK exports no metric %s", query, selector.Name)
		}
		known = append(known, names...)
		for _, matcher := range selector.LabelMatchers {
			if matcher.Name != "__name__" && matcher.Name != "namespace" && !slices.Contains(names, matcher.Name) {
				t.Errorf("%s: metric %s has no label %s", query, selector.Name, matcher.Name)
			}
		}
		return nil
	})
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		if aggregate, ok := node.(*parser.AggregateExpr); ok {
			for _, label := range aggregate.Grouping {
				if !slices.Contains(known, label) {
					t.Errorf("%s: grouped by %s, which none of the metrics has", query, label)
				}
			}
		}
		return nil
	})
}

// alerts are the rules as Prometheus reads them.
func alerts(t *testing.T, values string) map[string]rulefmt.Rule {
	t.Helper()
	all := standard(values).mustRender(t)
	rules := only(t, all, func(u *unstructured.Unstructured) bool { return u.GetKind() == "PrometheusRule" })
	text, err := yaml.Marshal(rules.Object["spec"])
	if err != nil {
		t.Fatal(err)
	}
	groups, faults := rulefmt.Parse(text, false, model.LegacyValidation, promQL, slog.New(slog.DiscardHandler))
	if len(faults) > 0 {
		t.Fatalf("%v in\n%s", faults, text)
	}
	found := map[string]rulefmt.Rule{}
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			found[rule.Alert] = rule
		}
	}
	return found
}

func TestAlertsAreAboutMetricsThatThereAre(t *testing.T) {
	metrics := exported(t)
	for name, rule := range alerts(t, monitored) {
		t.Run(name, func(t *testing.T) { expectExported(t, rule.Expr, metrics) })
	}
}

func TestEveryAlertIsExplained(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, rule := range alerts(t, monitored) {
		anchor := "#" + strings.ToLower(name)
		if !strings.HasSuffix(rule.Annotations["runbook_url"], "docs/operations.md"+anchor) {
			t.Errorf("%s: its runbook is at %s", name, rule.Annotations["runbook_url"])
		}
		if !strings.Contains(string(page), "\n#### "+name+"\n") {
			t.Errorf("%s has no paragraph in docs/operations.md", name)
		}
		if rule.Annotations["summary"] == "" || rule.Labels["severity"] == "" {
			t.Errorf("%s has no summary or no severity", name)
		}
	}
}

// Each alert with series, one sample a minute, at whose end it holds, and with series at whose end it does not. The series
// of two replicas count as one.
var alertCases = map[string]struct{ values, bad, good string }{
	"KickNoLeader": {
		bad:  `kick_leader{pod="a",namespace="k"} 0x60`,
		good: `kick_leader{pod="a",namespace="k"} 0x60` + "\n" + `kick_leader{pod="b",namespace="k"} 1x60`,
	},
	"KickNoLeader, nothing is scraped": {
		bad:  `up{namespace="k"} 0x60`,
		good: `kick_leader{pod="a",namespace="k"} 1x60`,
	},
	"KickNoLeader, of one of two releases": {
		bad:  `kick_leader{namespace="k"} 1x60` + "\n" + `kick_leader{namespace="l"} 0x60`,
		good: `kick_leader{namespace="k"} 1x60` + "\n" + `kick_leader{namespace="l"} 1x60`,
	},
	"KickWebhookCertificateExpires": { // at 3600 seconds
		bad:  `kick_webhook_certificate_expiry_timestamp_seconds{pod="a"} 1209600x60`,
		good: `kick_webhook_certificate_expiry_timestamp_seconds{pod="a"} 1213201x60`,
	},
	"KickWebhookCertificateExpires, a day before": {
		values: `metrics: {prometheusRule: {certificateDays: 1}}`,
		bad:    `kick_webhook_certificate_expiry_timestamp_seconds{pod="a"} 86400x60`,
		good:   `kick_webhook_certificate_expiry_timestamp_seconds{pod="a"} 1209600x60`,
	},
	"KickLedgerWriteErrors": {
		bad:  `kick_ledger_write_errors_total{pod="a"} 0x50 1+1x10`,
		good: `kick_ledger_write_errors_total{pod="a"} 0+1x20 20x40`,
	},
	"KickRestartFailed": {
		bad:  `kick_requests{phase="Failed",pod="a"} 0x59 1`,
		good: `kick_requests{phase="Failed",pod="a"} 0x60` + "\n" + `kick_requests{phase="Succeeded",pod="a"} 1x60`,
	},
	"KickRequestStalled": {
		bad:  `kick_requests_stalled{pod="a"} 1x60`,
		good: `kick_requests_stalled{pod="a"} 0x60`,
	},
	"KickRequestWaitsTooLong": {
		bad:  `kick_oldest_waiting_seconds{pod="a"} 259201x60`,
		good: `kick_oldest_waiting_seconds{pod="a"} 259200x60` + "\n" + `kick_oldest_waiting_seconds{pod="b"} 259200x60`,
	},
	"KickRequestWaitsTooLong, an hour": {
		values: `metrics: {prometheusRule: {waitingHours: 1}}`,
		bad:    `kick_oldest_waiting_seconds{pod="a"} 3601x60`,
		good:   `kick_oldest_waiting_seconds{pod="a"} 3599x60`,
	},
	"KickNotificationsNotDelivered": {
		bad:  `kick_notifications_pending{pod="a"} 3x60`,
		good: `kick_notifications_pending{pod="a"} 0x60`,
	},
	"KickPolicyNotInForce": {
		bad:  `kick_policies{ready="False",pod="a"} 1x60`,
		good: `kick_policies{ready="True",pod="a"} 9x60` + "\n" + `kick_policies{ready="Unknown",pod="a"} 1x60`,
	},
}

func TestAlertsFireWhenTheyShould(t *testing.T) {
	tested := map[string]bool{}
	for name, c := range alertCases {
		alert, _, _ := strings.Cut(name, ",")
		tested[alert] = true
		t.Run(name, func(t *testing.T) {
			rule, exists := alerts(t, overlay(t, monitored, c.values))[alert]
			if !exists {
				t.Fatal("there is no such alert")
			}
			if !holds(t, rule.Expr, c.bad) {
				t.Errorf("%s does not hold for\n%s", rule.Expr, c.bad)
			}
			if holds(t, rule.Expr, c.good) {
				t.Errorf("%s holds for\n%s", rule.Expr, c.good)
			}
		})
	}
	for name := range alerts(t, monitored) {
		if !tested[name] {
			t.Errorf("alert %s has no row in this test", name)
		}
	}
}

// holds asks Prometheus's own engine, after an hour of the series.
func holds(t *testing.T, query, series string) bool {
	t.Helper()
	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples: 10_000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, Parser: promQL,
	})
	defer func() { _ = engine.Close() }()
	asked, err := engine.NewInstantQuery(t.Context(), minutes(t, series), nil, query, time.Unix(3600, 0))
	if err != nil {
		t.Fatal(err)
	}
	defer asked.Close()
	vector, err := asked.Exec(t.Context()).Vector()
	if err != nil {
		t.Fatal(err)
	}
	return len(vector) > 0
}

func TestTheDashboardIsAboutMetricsThatThereAre(t *testing.T) {
	all := standard(monitored).mustRender(t)
	board := only(t, all, anyOf[*corev1.ConfigMap])
	if board.Labels["grafana_dashboard"] != "1" {
		t.Errorf("labels are %v", board.Labels)
	}
	var dashboard struct {
		UID, Title string
		Panels     []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(board.Data["kick.json"]), &dashboard); err != nil {
		t.Fatal(err)
	}
	metrics, shown := exported(t), map[string]bool{}
	for _, panel := range dashboard.Panels {
		if len(panel.Targets) == 0 {
			t.Errorf("panel %q shows nothing", panel.Title)
		}
		for _, target := range panel.Targets {
			query := strings.NewReplacer("$__rate_interval", "5m", "$namespace", ".*").Replace(target.Expr)
			expectExported(t, query, metrics)
			for name := range metrics {
				shown[name] = shown[name] || strings.Contains(query, name+"{")
			}
		}
	}
	for name := range metrics {
		if !shown[name] && !strings.HasSuffix(name, "_sum") && !strings.HasSuffix(name, "_count") {
			t.Errorf("no panel shows %s", name)
		}
	}
}
