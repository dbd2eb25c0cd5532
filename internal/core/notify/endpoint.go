package notify

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/kick-dev/kick/api/v1alpha1"
)

// Header is an HTTP header to send along.
type Header struct{ Name, Value string }

// Endpoint is where messages go. All of it is secret: it never writes itself.
type Endpoint struct {
	URL     *url.URL
	Headers []Header
}

// String implements fmt.Stringer and hides what the endpoint is.
func (Endpoint) String() string { return "(secret)" }

// GoString implements fmt.GoStringer likewise.
func (Endpoint) GoString() string { return "(secret)" }

// headerName is what RFC 9110 calls a token.
var headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

// ownHeaders are those that KICK or HTTP itself sets.
var ownHeaders = []string{
	"connection", "content-encoding", "content-length", "content-type", "expect", "host", "idempotency-key", "keep-alive",
	"proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
}

// Parse reads an endpoint from a Secret. Its errors say what is wrong with which key, and repeat nothing of its value.
func Parse(data map[string][]byte) (Endpoint, error) {
	target, err := parseURL(string(data[v1alpha1.NotificationURLKey]))
	if err != nil {
		return Endpoint{}, err
	}
	headers, err := parseHeaders(string(data[v1alpha1.NotificationHeadersKey]))
	return Endpoint{URL: target, Headers: headers}, err
}

func parseURL(text string) (*url.URL, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, fmt.Errorf("its key %s is missing or empty; it has to hold the URL to send to", v1alpha1.NotificationURLKey)
	}
	target, err := url.Parse(text)
	if err != nil || target.Hostname() == "" || (target.Scheme != "https" && target.Scheme != "http") {
		return nil, fmt.Errorf("its key %s holds no URL of the form https://host/path", v1alpha1.NotificationURLKey)
	}
	if target.User != nil {
		return nil, fmt.Errorf("its key %s holds a URL with a user name; put credentials into the key %s instead",
			v1alpha1.NotificationURLKey, v1alpha1.NotificationHeadersKey)
	}
	return target, nil
}

func parseHeaders(text string) ([]Header, error) {
	var headers []Header
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		name, value, found := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		if !found || !headerName.MatchString(name) || strings.ContainsFunc(value, isControl) {
			return nil, fmt.Errorf("line %d of its key %s is no header of the form Name: value", number, v1alpha1.NotificationHeadersKey)
		}
		if slices.Contains(ownHeaders, strings.ToLower(name)) {
			return nil, fmt.Errorf("line %d of its key %s sets a header that KICK sets itself; remove it",
				number, v1alpha1.NotificationHeadersKey)
		}
		headers = append(headers, Header{Name: name, Value: value})
	}
	return headers, nil
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// Hosts are those that messages may go to.
type Hosts []host

// host is one permission: a scheme, a name, a port, where empty stands for the port of the scheme and "*" for any.
type host struct{ scheme, name, port string }

// errHost says what a permission looks like.
var errHost = errors.New("want a host such as hooks.example.com, *.example.com or https://hooks.example.com:8443")

// ParseHosts reads permissions. A host alone stands for https and its usual port; a first label of * stands for one label or
// more; a port of * for any.
func ParseHosts(texts []string) (Hosts, error) {
	var hosts Hosts
	for _, text := range texts {
		scheme, rest, found := strings.Cut(text, "://")
		if !found {
			scheme, rest = "https", text
		}
		name, port, _ := strings.Cut(rest, ":")
		if address, sixth := strings.CutPrefix(rest, "["); sixth { // an address of IPv6
			name, port, _ = strings.Cut(address, "]")
			port = strings.TrimPrefix(port, ":")
		}
		if !hostPart.MatchString(name) || !portPart.MatchString(port) || (scheme != "https" && scheme != "http") {
			return nil, fmt.Errorf("%q is no host: %w", text, errHost)
		}
		hosts = append(hosts, host{scheme: scheme, name: strings.ToLower(name), port: port})
	}
	return hosts, nil
}

var (
	hostPart = regexp.MustCompile(`^(\*\.)?[0-9A-Za-z:]([0-9A-Za-z.:-]*[0-9A-Za-z:])?$`)
	portPart = regexp.MustCompile(`^(\*|[0-9]{1,5})?$`)
)

// Permit tells whether messages may go to a URL.
func (h Hosts) Permit(target *url.URL) bool {
	return slices.ContainsFunc(h, func(permitted host) bool {
		return permitted.scheme == target.Scheme && permitted.admitsName(strings.ToLower(target.Hostname())) &&
			permitted.admitsPort(target.Port())
	})
}

func (h host) admitsName(name string) bool {
	if domain, wild := strings.CutPrefix(h.name, "*"); wild {
		return strings.HasSuffix(name, domain) && len(name) > len(domain)
	}
	return name == h.name
}

// usualPorts are those that a URL need not name.
var usualPorts = map[string]string{"http": "80", "https": "443"}

func (h host) admitsPort(port string) bool {
	usual := usualPorts[h.scheme]
	if port == "" {
		port = usual
	}
	want := h.port
	if want == "" {
		want = usual
	}
	return want == "*" || want == port
}
