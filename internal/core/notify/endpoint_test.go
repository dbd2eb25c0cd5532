package notify

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const token = "s3cr3t-t0k3n"

func TestAnEndpointComesFromItsSecret(t *testing.T) {
	endpoint, err := Parse(map[string][]byte{
		"url": []byte(" https://hooks.example.com/" + token + "\n"), "headers": []byte("Authorization: Bearer a:b\n\n  X-Team:  shop \r\n"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Header{{"Authorization", "Bearer a:b"}, {"X-Team", "shop"}}, endpoint.Headers); diff != "" {
		t.Error(diff)
	}
	if endpoint.URL.String() != "https://hooks.example.com/"+token {
		t.Errorf("URL %s", endpoint.URL)
	}
	for _, text := range []string{fmt.Sprint(endpoint), fmt.Sprintf("%v %+v %#v %s", endpoint, endpoint, endpoint, &endpoint)} {
		if strings.Contains(text, token) || strings.Contains(text, "Bearer") {
			t.Errorf("it writes itself as %s", text)
		}
	}
}

func TestAFaultyEndpointIsRefusedWithoutRepeatingIt(t *testing.T) {
	const good = "https://hooks.example.com/"
	for name, c := range map[string]struct{ url, headers, want string }{
		"no URL":           {"", "", "its key url is missing or empty"},
		"blanks":           {" \n", "", "its key url is missing or empty"},
		"no scheme":        {"hooks.example.com/" + token, "", "no URL of the form"},
		"another scheme":   {"ftp://hooks.example.com/" + token, "", "no URL of the form"},
		"no host":          {"https:///" + token, "", "no URL of the form"},
		"a broken escape":  {"https://hooks.example.com/%zz" + token, "", "no URL of the form"},
		"a password":       {"https://user:" + token + "@hooks.example.com/", "", "with a user name"},
		"no colon":         {good, "A: b\nAuthorization " + token, "line 2 of its key headers is no header"},
		"a blank in it":    {good, "Author ization: " + token, "line 1 of its key headers is no header"},
		"a control":        {good, "A: " + token + "\x00", "line 1 of its key headers is no header"},
		"the content type": {good, "content-type: " + token, "line 1 of its key headers sets a header that KICK sets itself"},
		"the host":         {good, "A: b\n\nHost: " + token, "line 3 of its key headers sets a header that KICK sets itself"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(map[string][]byte{"url": []byte(c.url), "headers": []byte(c.headers)})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%v, want %q", err, c.want)
			}
			if strings.Contains(err.Error(), token) || strings.Contains(err.Error(), "example.com") {
				t.Errorf("it repeats the value: %v", err)
			}
		})
	}
}

func TestMessagesGoToPermittedHostsOnly(t *testing.T) {
	for permission, rows := range map[string]map[string]bool{
		"hooks.example.com": {
			"https://hooks.example.com/a":        true,
			"https://HOOKS.example.com/a":        true,
			"https://hooks.example.com:443/a":    true,
			"https://hooks.example.com:8443/a":   false,
			"http://hooks.example.com/a":         false,
			"https://a.hooks.example.com/":       false,
			"https://hooks.example.com.evil.org": false,
			"https://evil.org/hooks.example.com": false,
		},
		"*.example.com": {
			"https://a.example.com/":     true,
			"https://b.a.example.com/":   true,
			"https://example.com/":       false,
			"https://.example.com/":      false,
			"https://evilexample.com/":   false,
			"https://a.example.com:8/":   false,
			"https://a.example.com.org/": false,
		},
		"https://hooks.example.com:8443": {"https://hooks.example.com:8443/": true, "https://hooks.example.com/": false},
		"http://127.0.0.1:*":             {"http://127.0.0.1:1234/": true, "http://127.0.0.1/": true, "https://127.0.0.1:1234/": false, "http://127.0.0.2:1/": false},
		"http://[::1]:80":                {"http://[::1]/": true, "http://[::1]:81/": false},
	} {
		hosts, err := ParseHosts([]string{permission})
		if err != nil {
			t.Error(err)
		}
		for text, want := range rows {
			target, err := url.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			if got := hosts.Permit(target); got != want {
				t.Errorf("%s permits %s: %v, want %v", permission, text, got, want)
			}
		}
	}
	if anywhere, _ := url.Parse("https://a.test"); (Hosts{}).Permit(anywhere) {
		t.Error("no permission permits")
	}
}

func TestPermissionsThatAreNoneAreRefused(t *testing.T) {
	for _, text := range []string{"", "*", "*.", "https://", "a.test/path", "ftp://a.test", "a.test:http", "a.*.test", "user@a.test", "a b", "https://a.test:123456"} {
		if hosts, err := ParseHosts([]string{"good.test", text}); err == nil || !strings.Contains(err.Error(), "want a host such as") {
			t.Errorf("%q: %v, %v", text, hosts, err)
		}
	}
}
