package owner

import (
	"slices"
	"sync"

	"k8s.io/client-go/tools/cache"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/gitops"
)

// watches are the watches of all kinds, and what is known of the kinds that are not watched.
type watches struct {
	mu      sync.Mutex
	running map[string]*watch
	// absent holds the kinds that were looked for and are not served.
	absent map[string]bool
	// news is closed, and made anew, whenever something above changes.
	news chan struct{}
}

func (s *watches) init() {
	s.running, s.absent, s.news = map[string]*watch{}, map[string]bool{}, make(chan struct{})
}

// announce lets all who wait for news look again.
func (s *watches) announce() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.news)
	s.news = make(chan struct{})
}

func (s *watches) get(kind string) *watch {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running[kind]
}

// start notes that a kind is watched.
func (s *watches) start(kind string, w *watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running[kind] = w
	delete(s.absent, kind)
}

// end notes that a kind is not served, and tells whether that is news.
func (s *watches) end(kind string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.absent[kind]
	delete(s.running, kind)
	s.absent[kind] = true
	return !known
}

// forget drops what is known of a kind that nobody wants and that was not there. It is looked for anew when somebody
// does.
func (s *watches) forget(kind string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.absent, kind)
}

// undecided tells whether a kind of the providers was not looked for yet or is being listed, and the channel that is
// closed at the next change of anything.
func (s *watches) undecided(providers []v1alpha1.GitOpsProvider) (bool, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(kindsOf(providers), func(k *kind) bool {
		w := s.running[k.name]
		if w == nil {
			return !s.absent[k.name]
		}
		return w.availability().Message == stillListing
	}), s.news
}

// availability of a tool: that of its kinds taken together. Flux may be installed without one of its controllers.
func (s *watches) availability(provider v1alpha1.GitOpsProvider) gitops.Availability {
	s.mu.Lock()
	defer s.mu.Unlock()
	served := 0
	for _, k := range kindsOf([]v1alpha1.GitOpsProvider{provider}) {
		w := s.running[k.name]
		switch {
		case w == nil && s.absent[k.name] && (k.of == "" || served == 0):
			continue
		case w == nil:
			return gitops.Availability{Presence: gitops.Unreadable, Message: k.resource.GroupResource().String() + " are not watched"}
		}
		served++
		if now := w.availability(); now.Presence != gitops.Readable {
			return now
		}
	}
	if served == 0 {
		return gitops.Availability{Presence: gitops.Absent}
	}
	return gitops.Availability{Presence: gitops.Readable}
}

// indexed returns the cached objects of a kind by an index.
func (s *watches) indexed(kind, index, value string) []*entry {
	return s.collect(kind, func(indexer cache.Indexer) []any {
		found, err := indexer.ByIndex(index, value)
		if err != nil {
			return nil // Only an index that does not exist makes an error.
		}
		return found
	})
}

// named returns the cached object of a kind by its name, in a list of at most one.
func (s *watches) named(kind, namespace, name string) []*entry {
	return s.collect(kind, func(indexer cache.Indexer) []any {
		found, exists, err := indexer.GetByKey(namespace + "/" + name)
		if err != nil || !exists {
			return nil
		}
		return []any{found}
	})
}

func (s *watches) collect(kind string, read func(cache.Indexer) []any) []*entry {
	w := s.get(kind)
	if w == nil {
		return nil
	}
	var entries []*entry
	for _, informer := range w.informers {
		for _, object := range read(informer.GetIndexer()) {
			if e, ok := object.(*entry); ok {
				entries = append(entries, e)
			}
		}
	}
	return entries
}
