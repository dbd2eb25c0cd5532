package webhooks

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kick-dev/kick/api/v1alpha1"
)

func policyOf(selector metav1.LabelSelector) *v1alpha1.KickPolicy {
	p := &v1alpha1.KickPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	p.Spec.Discovery.WorkloadSelector = selector
	return p
}

func matching(key, value string) metav1.LabelSelector {
	return metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

func expression(key, operator string, values ...string) metav1.LabelSelector {
	return metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: key, Operator: metav1.LabelSelectorOperator(operator), Values: values},
	}}
}

// Malformed selectors, with the place below the selector and part of the sentence.
var malformedSelectors = map[string]struct {
	selector   metav1.LabelSelector
	path, text string
}{
	"a value with spaces (C096)":      {matching("app", "my web"), ".matchLabels", "alphanumeric characters"},
	"an invalid key (C096)":           {matching("a b", "x"), ".matchLabels", "name part must consist of"},
	"an empty key":                    {matching("", "x"), ".matchLabels", "name part must be non-empty"},
	"a key that is only a prefix":     {matching("kick.dev/", "x"), ".matchLabels", "name part must be non-empty"},
	"a key with two slashes":          {matching("a/b/c", "x"), ".matchLabels", "optional DNS subdomain prefix"},
	"a prefix in capitals":            {matching("Kick.dev/app", "x"), ".matchLabels", "prefix part"},
	"a key that is too long":          {matching(strings.Repeat("a", 64), "x"), ".matchLabels", "63"},
	"a prefix that is too long":       {matching(strings.Repeat("a", 254)+"/b", "x"), ".matchLabels", "253"},
	"a key that begins with a hyphen": {matching("-app", "x"), ".matchLabels", "must start and end with an alphanumeric"},
	"a value that is too long":        {matching("app", strings.Repeat("a", 64)), ".matchLabels", "63"},
	"a value that ends with a hyphen": {matching("app", "web-"), ".matchLabels", "must start and end with an alphanumeric"},
	"a value with a slash":            {matching("app", "a/b"), ".matchLabels", "alphanumeric characters"},
	"a value with an umlaut":          {matching("app", "büro"), ".matchLabels", "alphanumeric characters"},
	"a value with a line break":       {matching("app", "a\nb"), ".matchLabels", "alphanumeric characters"},
	"an unknown operator (C096)":      {expression("app", "Foo", "x"), ".matchExpressions[0].operator", "not a valid selector operator"},
	"an operator in small letters":    {expression("app", "in", "x"), ".matchExpressions[0].operator", "not a valid selector operator"},
	"an operator of node selectors":   {expression("app", "Gt", "1"), ".matchExpressions[0].operator", "not a valid selector operator"},
	"no operator":                     {expression("app", ""), ".matchExpressions[0].operator", "not a valid selector operator"},
	"In without values (C096)":        {expression("app", "In"), ".matchExpressions[0].values", "must be specified when `operator` is 'In' or 'NotIn'"},
	"NotIn without values":            {expression("app", "NotIn"), ".matchExpressions[0].values", "must be specified when `operator` is 'In' or 'NotIn'"},
	"Exists with values (C096)":       {expression("app", "Exists", "x"), ".matchExpressions[0].values", "may not be specified when `operator` is 'Exists'"},
	"DoesNotExist with values":        {expression("app", "DoesNotExist", "x"), ".matchExpressions[0].values", "may not be specified when `operator` is 'Exists'"},
	"an invalid key in an expression": {expression("a b", "Exists"), ".matchExpressions[0].key", "name part must consist of"},
	"no key in an expression":         {expression("", "Exists"), ".matchExpressions[0].key", "name part must be non-empty"},
	"a listed value with spaces":      {expression("app", "In", "a", "b c"), ".matchExpressions[0].values[1]", "alphanumeric characters"},
	"a listed value that is too long": {expression("app", "NotIn", strings.Repeat("a", 64)), ".matchExpressions[0].values[0]", "63"},
}

// matchPlace checks that faults are found in one place only, and that the first of them says what is wanted.
func matchPlace(t *testing.T, faults field.ErrorList, want wanted) {
	t.Helper()
	if len(faults) == 0 {
		t.Fatal("no fault is found")
	}
	matchFaults(t, faults[:1], []wanted{want})
	for _, fault := range faults {
		if fault.Field != want.path {
			t.Errorf("another fault: %v", fault)
		}
	}
}

func TestMalformedSelectorsAreRefusedWithTheirPlace(t *testing.T) {
	for name, tc := range malformedSelectors {
		t.Run(name+", of workloads", func(t *testing.T) {
			matchPlace(t, ValidateKickPolicy(policyOf(tc.selector)), wanted{"spec.discovery.workloadSelector" + tc.path, tc.text})
		})
		t.Run(name+", of dependencies", func(t *testing.T) {
			policy := policyOf(matching("app", "web"))
			policy.Spec.Discovery.DependencySelector = &tc.selector
			matchPlace(t, ValidateKickPolicy(policy), wanted{"spec.discovery.dependencySelector" + tc.path, tc.text})
		})
	}
}

func window(kind v1alpha1.WindowKind, cron, duration, zone string) v1alpha1.Window {
	return v1alpha1.Window{Kind: kind, Cron: cron, Duration: duration, TimeZone: zone}
}

func open(cron, duration, zone string) v1alpha1.Window {
	return window(v1alpha1.WindowAllow, cron, duration, zone)
}

func scheduled(windows ...v1alpha1.Window) *v1alpha1.KickPolicy {
	policy := policyOf(matching("app", "web"))
	policy.Spec.Schedule.Windows = windows
	return policy
}

// Malformed windows, with their field and part of the sentence.
var malformedWindows = map[string]struct {
	window      v1alpha1.Window
	field, text string
}{
	"a range of days that wraps (C060)":    {open("0 0 * * sat-sun", "1h", ""), "cron", "beyond end of range"},
	"Sunday as 7 (C060)":                   {open("0 0 * * 7", "1h", ""), "cron", "0 (Sunday) to 6"},
	"a range to 7 (C060)":                  {open("30 10 * * 1-7", "1h", ""), "cron", "0 (Sunday) to 6"},
	"a zone before the fields (C063)":      {open("TZ=Europe/Paris 0 2 * * *", "1h", ""), "cron", "into the field timeZone"},
	"a zone in both places (C063)":         {open("TZ=Europe/Paris 0 2 * * *", "1h", "Europe/Paris"), "cron", "into the field timeZone"},
	"a cron zone before the fields (C063)": {open("CRON_TZ=UTC 0 2 * * *", "1h", ""), "cron", "into the field timeZone"},
	"nothing but a zone (C063)":            {open("TZ=UTC", "1h", ""), "cron", "into the field timeZone"},
	"nothing but the beginning of a zone":  {open("TZ=", "1h", ""), "cron", "into the field timeZone"},
	"a descriptor":                         {open("@daily", "1h", ""), "cron", "descriptors are not supported"},
	"a descriptor with an interval":        {open("@every 1h", "1h", ""), "cron", "descriptors are not supported"},
	"a descriptor after a space":           {open(" @hourly", "1h", ""), "cron", "descriptors are not supported"},
	"no expression":                        {open("", "1h", ""), "cron", "has 0 fields; write five"},
	"four fields":                          {open("0 2 * *", "1h", ""), "cron", "has 4 fields"},
	"six fields, with seconds":             {open("0 0 2 * * *", "1h", ""), "cron", "has 6 fields"},
	"minute 60":                            {open("60 2 * * *", "1h", ""), "cron", "above maximum (59)"},
	"hour 24":                              {open("0 24 * * *", "1h", ""), "cron", "above maximum (23)"},
	"day 0":                                {open("0 2 0 * *", "1h", ""), "cron", "below minimum (1)"},
	"day 32":                               {open("0 2 32 * *", "1h", ""), "cron", "above maximum (31)"},
	"month 13":                             {open("0 2 * 13 *", "1h", ""), "cron", "above maximum (12)"},
	"a negative minute":                    {open("-5 2 * * *", "1h", ""), "cron", "failed to parse"},
	"a step of 0":                          {open("*/0 2 * * *", "1h", ""), "cron", "step of range should be a positive number"},
	"a name of no day":                     {open("0 2 * * funday", "1h", ""), "cron", "failed to parse"},
	"words":                                {open("every night at two o'clock", "1h", ""), "cron", "failed to parse"},
	"the 30th of February":                 {open("0 0 30 2 *", "1h", ""), "cron", "no date ever matches"},
	"the 31st of short months":             {open("0 0 31 4,6,9,11 *", "1h", ""), "cron", "no date ever matches"},
	"no duration":                          {open("0 2 * * *", "", ""), "duration", "must be a duration such as 90m"},
	"a duration in days":                   {open("0 2 * * *", "3d", ""), "duration", "days are written in hours"},
	"a duration without a unit":            {open("0 2 * * *", "90", ""), "duration", "must be a duration such as 90m"},
	"a duration in words":                  {open("0 2 * * *", "two hours", ""), "duration", "must be a duration such as 90m"},
	"a duration beyond all times":          {open("0 2 * * *", "9999999999h", ""), "duration", "must be a duration such as 90m"},
	"no time at all":                       {open("0 2 * * *", "0s", ""), "duration", "must be positive"},
	"less than no time":                    {open("0 2 * * *", "-1h", ""), "duration", "must be positive"},
	"an unknown zone":                      {open("0 2 * * *", "1h", "Europe/Atlantis"), "timeZone", "IANA"},
	"the zone of the process":              {open("0 2 * * *", "1h", "Local"), "timeZone", "the zone of the process is no zone"},
	"the zone of the process in small":     {open("0 2 * * *", "1h", "local"), "timeZone", "the zone of the process is no zone"},
	"an offset for a zone":                 {open("0 2 * * *", "1h", "+02:00"), "timeZone", "IANA"},
	"a path for a zone":                    {open("0 2 * * *", "1h", "../../etc/passwd"), "timeZone", "IANA"},
	"an unknown kind":                      {window("Maybe", "0 2 * * *", "1h", ""), "kind", `"Allow", "Deny"`},
	"a kind in small letters":              {window("allow", "0 2 * * *", "1h", ""), "kind", `"Allow", "Deny"`},
	"no kind":                              {window("", "0 2 * * *", "1h", ""), "kind", `"Allow", "Deny"`},
}

func TestMalformedWindowsAreRefusedWithTheirPlace(t *testing.T) {
	good := open("0 2 * * *", "1h", "")
	for name, tc := range malformedWindows {
		t.Run(name, func(t *testing.T) {
			matchFaults(t, ValidateKickPolicy(scheduled(good, tc.window, good)), []wanted{{"spec.schedule.windows[1]." + tc.field, tc.text}})
		})
	}
}

func TestAllFaultsAreReportedAtOnce(t *testing.T) {
	policy := scheduled(window("Maybe", "TZ=UTC", "3d", "Local"), open("0 2 * * *", "1h", ""), open("0 0 30 2 *", "1h", ""))
	policy.Spec.Discovery.WorkloadSelector = matching("a b", "c d")
	dependencies := expression("app", "In")
	policy.Spec.Discovery.DependencySelector = &dependencies
	matchFaults(t, ValidateKickPolicy(policy), []wanted{
		{"spec.discovery.workloadSelector.matchLabels", "name part"},
		{"spec.discovery.workloadSelector.matchLabels", "c d"},
		{"spec.discovery.dependencySelector.matchExpressions[0].values", "must be specified"},
		{"spec.schedule.windows[0].cron", "timeZone"},
		{"spec.schedule.windows[0].duration", "72h"},
		{"spec.schedule.windows[0].timeZone", "process"},
		{"spec.schedule.windows[0].kind", "Allow"},
		{"spec.schedule.windows[2].cron", "no date ever matches"},
	})
}

// Neighbours of the faults above that are in order.
func TestWellFormedPoliciesPass(t *testing.T) {
	for name, policy := range map[string]*v1alpha1.KickPolicy{
		"the selector {}":            policyOf(metav1.LabelSelector{}),
		"an empty value":             policyOf(matching("app", "")),
		"a key with a prefix":        policyOf(matching("kick.dev/app", "web")),
		"a key of 63 characters":     policyOf(matching(strings.Repeat("a", 63), "x")),
		"a value of 63 characters":   policyOf(matching("app", strings.Repeat("a", 63))),
		"In with an empty value":     policyOf(expression("app", "In", "")),
		"NotIn with two values":      policyOf(expression("app", "NotIn", "a", "b")),
		"Exists":                     policyOf(expression("app", "Exists")),
		"DoesNotExist":               policyOf(expression("app", "DoesNotExist")),
		"no windows":                 scheduled(),
		"days as names":              scheduled(open("0 2 * * mon-fri", "2h", "")),
		"a range to Saturday":        scheduled(open("30 10 * * 1-6", "2h", "")),
		"Sunday as 0":                scheduled(open("0 0 * * 0", "1h", "")),
		"minute 59, hour 23":         scheduled(open("59 23 * * *", "1h", "")),
		"the 29th of February":       scheduled(open("0 0 29 2 *", "1h", "")),
		"a step of 1":                scheduled(open("*/1 2 * * *", "1h", "")),
		"more than a day":            scheduled(window(v1alpha1.WindowDeny, "0 0 24 12 *", "72h", "")),
		"half an hour":               scheduled(open("0 2 * * *", "0.5h", "")),
		"a zone":                     scheduled(open("0 2 * * *", "1h", "Europe/Berlin")),
		"the zone UTC":               scheduled(open("0 2 * * *", "1h", "UTC")),
		"spaces between the fields":  scheduled(open("  0   2 * * *  ", "1h", "")),
		"a zone of fixed offset":     scheduled(open("0 2 * * *", "1h", "Etc/GMT-2")),
		"Allow and Deny in one list": scheduled(open("0 2 * * *", "4h", ""), window(v1alpha1.WindowDeny, "0 3 * * *", "1h", "")),
	} {
		t.Run(name, func(t *testing.T) { matchFaults(t, ValidateKickPolicy(policy), nil) })
	}
}

// An invalid policy may be stored while the webhook is away. It can then be mended or labelled, and not made worse.
func TestAnUpdateIsRefusedOnlyForFaultsItBrings(t *testing.T) {
	good := policyOf(matching("app", "web"))
	bad := policyOf(matching("app", "a b"))
	worse := policyOf(metav1.LabelSelector{MatchLabels: map[string]string{"app": "a b", "tier": "c d"}})
	labelled := bad.DeepCopy()
	labelled.Labels = map[string]string{"team": "x"}
	fine, broken, other := open("0 2 * * *", "1h", ""), open("0 2 * * 7", "1h", ""), open("0 0 30 2 *", "1h", "")
	for name, tc := range map[string]struct {
		old, updated *v1alpha1.KickPolicy
		faults       int
	}{
		"a good one made bad":                 {good, bad, 1},
		"a bad one mended":                    {bad, good, 0},
		"a bad one labelled":                  {bad, labelled, 0},
		"a bad one made worse":                {bad, worse, 1},
		"a worse one made less bad":           {worse, bad, 0},
		"a good one left as it was":           {good, good, 0},
		"a bad window moved down":             {scheduled(broken), scheduled(fine, broken), 0},
		"a bad window moved up":               {scheduled(fine, broken), scheduled(broken), 0},
		"a bad window removed before another": {scheduled(other, broken), scheduled(broken), 0},
		"a bad window doubled":                {scheduled(broken), scheduled(broken, broken), 1},
		"a bad window made bad otherwise":     {scheduled(broken), scheduled(other), 1},
		"a second fault in a bad window":      {scheduled(broken), scheduled(open("0 2 * * 7", "3d", "")), 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ValidateKickPolicyUpdate(tc.old, tc.updated); len(got) != tc.faults {
				t.Errorf("faults %v, want %d", got, tc.faults)
			}
		})
	}
}
