package faults

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/kick-dev/kick/test/testbed"
)

// Call is a kind of request to the API server, as far as faults tell them apart.
type Call struct {
	Verb     string
	Resource string // with the subresource after a slash
	// Concerns is the namespace whose workloads or sources the request is about, empty for the whole cluster. A ledger
	// concerns the namespace of its sources.
	Concerns string
}

// String is the call without the namespace.
func (c Call) String() string { return c.Verb + " " + c.Resource }

// Is tells whether a call is of the kind of another, in which an empty field stands for anything.
func (c Call) Is(kind Call) bool {
	return (kind.Verb == "" || kind.Verb == c.Verb) && (kind.Resource == "" || kind.Resource == c.Resource) &&
		(kind.Concerns == "" || kind.Concerns == c.Concerns)
}

const ledgers = "kickledgers"

// callOf reads what a request is about from its path, and for a new ledger from its body.
func callOf(request *http.Request) Call {
	path := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	skip := map[string]int{"api": 2, "apis": 3}[path[0]]
	if skip == 0 || len(path) <= skip {
		return Call{Verb: strings.ToLower(request.Method), Resource: request.URL.Path}
	}
	path = path[skip:]
	call := Call{}
	if path[0] == "namespaces" && len(path) > 2 {
		call.Concerns, path = path[1], path[2:]
	}
	call.Resource = path[0]
	named := len(path) > 1
	if len(path) > 2 {
		call.Resource += "/" + path[2]
	}
	call.Verb = verbOf(request, named)
	if call.Resource != ledgers {
		return call
	}
	call.Concerns = ""
	if named {
		call.Concerns, _, _ = strings.Cut(path[1], ".")
	} else if request.Method == http.MethodPost {
		call.Concerns = sourceNamespace(request)
	}
	return call
}

func verbOf(request *http.Request, named bool) string {
	switch request.Method {
	case http.MethodGet:
		switch {
		case request.URL.Query().Get("watch") != "":
			return "watch"
		case named:
			return "get"
		default:
			return "list"
		}
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	default:
		return strings.ToLower(request.Method)
	}
}

// sourceNamespace reads a ledger out of the body of a request and leaves the body to be read again.
func sourceNamespace(request *http.Request) string {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return ""
	}
	request.Body = io.NopCloser(bytes.NewReader(body))
	var ledger struct {
		SourceNamespace string `json:"sourceNamespace"`
	}
	_ = json.Unmarshal(body, &ledger) // What is no ledger concerns no namespace.
	return ledger.SourceNamespace
}

// callIn is the call of an audited request.
func callIn(event testbed.AuditEvent) Call {
	call := Call{Verb: event.Verb, Resource: event.Resource, Concerns: event.Namespace}
	if event.Subresource != "" {
		call.Resource += "/" + event.Subresource
	}
	if event.Resource == ledgers {
		call.Concerns, _, _ = strings.Cut(event.Name, ".")
	}
	return call
}

// Nth is the n-th request of a kind, counted from 1.
type Nth struct {
	Call
	N int
}

// String is the call, with its number if it is not the first.
func (n Nth) String() string {
	if n.N == 1 {
		return n.Call.String()
	}
	return fmt.Sprintf("%s #%d", n.Call, n.N)
}

// numbered gives each of a sequence of calls its number among those of its kind.
func numbered(calls []Call) []Nth {
	var list []Nth
	seen := map[Call]int{}
	for _, call := range calls {
		seen[call]++
		list = append(list, Nth{Call: call, N: seen[call]})
	}
	return list
}
