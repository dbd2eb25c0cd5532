package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kick-dev/kick/test/testbed"
)

const (
	kickNamespace = "kick-system"
	kickUser      = "system:serviceaccount:" + kickNamespace + ":kick"
)

// stillness is how long no request of KICK is seen before its work counts as done. It is longer than any delay by which KICK
// gathers writes.
const stillness = 3 * time.Second

// Traffic counts what KICK asked of the API server, by verb and resource. Watches, the lease with its events, and what is
// asked for callers of the metrics endpoint are left out: they do not depend on what happens in the cluster.
type Traffic map[string]int

// trafficSince counts since a mark.
func (b *bench) trafficSince(mark testbed.AuditMark) (Traffic, error) {
	events, err := b.bed.Audit().Events(testbed.AuditFilter{User: kickUser, From: mark, Match: counts})
	if err != nil {
		return nil, err
	}
	traffic := Traffic{}
	for _, event := range events {
		traffic[nameOf(event)]++
	}
	return traffic, nil
}

func counts(event testbed.AuditEvent) bool {
	switch event.Resource {
	case "leases", "tokenreviews", "subjectaccessreviews":
		return false
	case "events":
		return event.Namespace != kickNamespace
	default:
		return event.Verb != "watch"
	}
}

func nameOf(event testbed.AuditEvent) string {
	if event.Resource == "" {
		return event.Verb + " discovery"
	}
	name := event.Verb + " " + event.Resource
	if event.Subresource != "" {
		name += "/" + event.Subresource
	}
	if event.Code >= 400 {
		name += fmt.Sprintf(" %d", event.Code)
	}
	return name
}

// Total number of requests.
func (t Traffic) Total() int { return t.Reads() + t.Writes() }

// Reads are requests that change nothing, but for the discovery of what the API server serves.
func (t Traffic) Reads() int {
	return t.sum(func(verb, resource string) bool { return reads(verb) && resource != "discovery" })
}

// Writes are all others.
func (t Traffic) Writes() int { return t.sum(func(verb, _ string) bool { return !reads(verb) }) }

// SourceReads are reads of the content of single Secrets and ConfigMaps.
func (t Traffic) SourceReads() int {
	return t.sum(func(verb, resource string) bool {
		return verb == "get" && (strings.HasPrefix(resource, "secrets") || strings.HasPrefix(resource, "configmaps"))
	})
}

// of counts the writes of one kind, and of its status.
func (t Traffic) of(kind string) int {
	return t.sum(func(verb, resource string) bool {
		resource, _, _ = strings.Cut(resource, "/")
		return !reads(verb) && resource == kind
	})
}

func (t Traffic) sum(counts func(verb, resource string) bool) int {
	total := 0
	for name, n := range t {
		if verb, resource, _ := strings.Cut(name, " "); counts(verb, resource) {
			total += n
		}
	}
	return total
}

// String lists the counts.
func (t Traffic) String() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(t)) {
		parts = append(parts, fmt.Sprintf("%d× %s", t[name], name))
	}
	return strings.Join(parts, ", ")
}

func reads(verb string) bool { return verb == "get" || verb == "list" }

// calm waits until KICK has asked nothing for a while and returns the traffic since the mark.
func (b *bench) calm(ctx context.Context, mark testbed.AuditMark) (Traffic, error) {
	var traffic Traffic
	last, since := -1, time.Now()
	err := b.poll(ctx, stillness/10, "KICK to have nothing to do", func() (bool, error) {
		var err error
		if traffic, err = b.trafficSince(mark); err != nil {
			return false, err
		}
		if total := traffic.sum(func(_, _ string) bool { return true }); total != last {
			last, since = total, time.Now()
		}
		return time.Since(since) >= stillness, nil
	})
	return traffic, err
}
