// Package intern lets equal values that many cached objects hold share one copy. It changes nothing about what they say;
// what it returns must not be modified.
package intern

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

const (
	// maxKnown is how many values are remembered. Beyond it all are forgotten and remembered anew as they come: who holds one
	// keeps it, and what is common soon is shared again.
	maxKnown = 8192
	// maxLength is the longest text that is remembered.
	maxLength = 256
)

// Pool remembers values by what they say. The zero value is ready for use.
type Pool[V any] struct {
	mu    sync.Mutex
	known map[string]V
}

// Share returns the value remembered under the key, or remembers the one that is made of it now.
func (p *Pool[V]) Share(key string, value func(key string) V) V {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known, ok := p.known[key]; ok {
		return known
	}
	if p.known == nil || len(p.known) >= maxKnown {
		p.known = map[string]V{}
	}
	key = strings.Clone(key) // What is remembered must not keep alive what it was cut from.
	made := value(key)
	p.known[key] = made
	return made
}

var (
	texts Pool[string]
	sets  Pool[map[string]string]
)

// String returns a string equal to the given one, the same copy for all. It is meant for what many objects say alike, such
// as namespaces, kinds and reasons; for what each says differently it is a waste.
func String(text string) string {
	if text == "" || len(text) > maxLength {
		return text
	}
	return texts.Share(text, func(key string) string { return key })
}

// Map returns a map equal to the given one, such as labels, the same copy for all.
func Map(set map[string]string) map[string]string {
	if len(set) == 0 {
		return set
	}
	key := keyOf(set)
	if len(key) > maxLength {
		return set
	}
	return sets.Share(key, func(string) map[string]string { return set })
}

// keyOf writes a map so that only equal ones look the same: a label or an annotation may hold anything but NUL.
func keyOf(set map[string]string) string {
	var key strings.Builder
	for _, name := range slices.Sorted(maps.Keys(set)) {
		key.WriteString(name)
		key.WriteByte(0)
		key.WriteString(set[name])
		key.WriteByte(0)
	}
	return key.String()
}
