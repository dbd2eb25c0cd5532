package main

import (
	"strings"
	"testing"
)

func TestParseOptions(t *testing.T) {
	for name, tc := range map[string]struct {
		arguments []string
		want      string // in the error; empty for none
	}{
		"the defaults":          {[]string{"--namespace=kick-system"}, ""},
		"no namespace":          {nil, "--namespace is empty"},
		"a stray argument":      {[]string{"--namespace=n", "leader"}, `unexpected argument "leader"`},
		"no time to live":       {[]string{"--namespace=n", "--request-ttl=0s"}, "--request-ttl=0s must be positive"},
		"no workers":            {[]string{"--namespace=n", "--workers=0"}, "--workers=0 must be at least 1"},
		"a negative limit":      {[]string{"--namespace=n", "--max-concurrent-restarts=-1"}, "--max-concurrent-restarts=-1 must not be negative"},
		"no requests":           {[]string{"--namespace=n", "--kube-api-qps=0"}, "--kube-api-qps=0"},
		"a port too high":       {[]string{"--namespace=n", "--webhook-port=70000"}, "--webhook-port=70000 is not a port"},
		"two replicas":          {[]string{"--namespace=n", "--replicas=2"}, ""},
		"one without election":  {[]string{"--namespace=n", "--leader-elect=false", "--replicas=1"}, ""},
		"two without election":  {[]string{"--namespace=n", "--leader-elect=false", "--replicas=2"}, "--replicas=2 needs --leader-elect"},
		"some namespaces":       {[]string{"--namespace=n", "--metrics-bind-address=0", "--watch-namespaces=a, b"}, ""},
		"all namespaces":        {[]string{"--namespace=n", "--watch-namespaces="}, ""},
		"no such name":          {[]string{"--namespace=n", "--metrics-bind-address=0", "--watch-namespaces=a,Shop"}, `"Shop" is no name of a namespace`},
		"a name twice":          {[]string{"--namespace=n", "--metrics-bind-address=0", "--watch-namespaces=a,b,a"}, `names "a" twice`},
		"its own namespace":     {[]string{"--namespace=n", "--metrics-bind-address=0", "--watch-namespaces=a,n"}, `"n", KICK's own namespace`},
		"reviews for metrics":   {[]string{"--namespace=n", "--watch-namespaces=a"}, "--metrics-auth takes rights in the whole cluster"},
		"metrics for everybody": {[]string{"--namespace=n", "--watch-namespaces=a", "--metrics-auth=false"}, ""},
		"a look at the registration": {
			[]string{"--namespace=n", "--metrics-bind-address=0", "--watch-namespaces=a", "--webhook-configuration=kick"},
			"--webhook-configuration takes rights",
		},
		"a duration gone wrong": {[]string{"--namespace=n", "--request-ttl=soon"}, "request-ttl"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("POD_NAMESPACE", "")
			_, err := parseOptions(tc.arguments)
			if tc.want == "" && err != nil {
				t.Errorf("error %v", err)
			}
			if tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

func TestListsOfExemptWriters(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "kick-system")
	t.Setenv("SERVICE_ACCOUNT_NAME", "kick")
	o, err := parseOptions([]string{"--guard-exempt-users=alice, system:admin,", "--guard-exempt-users=bob", "--guard-exempt-groups=on-call"})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(o.exempt.Users, "|"); got != "alice|system:admin|bob" {
		t.Errorf("users %s", got)
	}
	if got := strings.Join(o.exempt.Groups, "|"); got != "on-call" {
		t.Errorf("groups %s", got)
	}
	if o.serviceAccount != "kick" {
		t.Errorf("service account %q", o.serviceAccount)
	}
}
