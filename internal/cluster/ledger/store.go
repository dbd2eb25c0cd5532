// Package ledger is the durable memory of the sources: Ω, §4 of the model. It is loaded once by the leader, which
// then owns it; every write carries the version it was read at, so that a replica that wrongly believes to lead
// cannot overwrite what the leader knows.
package ledger

import (
	"context"
	"fmt"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/source"
	"github.com/kick-dev/kick/internal/core/deps"
	"github.com/kick-dev/kick/internal/core/fingerprint"
	"github.com/kick-dev/kick/internal/core/observation"
)

// pageSize bounds one answer while the ledgers are loaded.
const pageSize = 50

// Store keeps the records of all namespaces. Load has to succeed before anything else is called. It is safe for
// concurrent use.
type Store struct {
	reader    client.Reader
	writer    client.Writer
	namespace string

	// Written counts the writes of ledger objects; it may be nil.
	Written func()
	// WriteFailed counts the writes that failed, other than by a lost race; it may be nil.
	WriteFailed func()
	// Undecided is told of sources to look at because somebody else wrote the ledger: those with a change that is pending in
	// it, and those that are no longer in it. It may be nil.
	Undecided func(...source.Key)

	// keyLock keeps two looks at the Secret of the key apart. keyVersion is the resourceVersion at which it was last seen.
	keyLock    sync.Mutex
	keyVersion string

	mu     sync.Mutex
	loaded bool
	key    fingerprint.Key
	books  map[string]*book
}

// NewStore returns a store that keeps its objects in the given namespace. The reader must not be a cache.
func NewStore(reader client.Reader, writer client.Writer, namespace string) *Store {
	return &Store{reader: reader, writer: writer, namespace: namespace, books: map[string]*book{}}
}

// Load reads the key and all ledgers, once. It may be called again after an error.
func (s *Store) Load(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loaded {
		return nil
	}
	key, err := s.loadKey(ctx)
	if err != nil {
		return err
	}
	books := map[string]*book{}
	page := &v1alpha1.KickLedgerList{}
	for {
		err := s.reader.List(ctx, page, client.InNamespace(s.namespace), client.Limit(pageSize), client.Continue(page.Continue))
		if err != nil {
			return fmt.Errorf("load the ledgers: %w", err)
		}
		for i := range page.Items {
			name := page.Items[i].SourceNamespace
			if books[name] == nil {
				books[name] = newBook(s, name)
			}
			books[name].adopt(ctx, &page.Items[i])
		}
		if page.Continue == "" {
			break
		}
	}
	s.key, s.books, s.loaded = key, books, true
	return nil
}

// Key is the key under which fingerprints are to be made.
func (s *Store) Key() fingerprint.Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.key
}

// Get returns the record of a source, nil if there is none. Only what is durable is returned, but for what Note has
// changed.
func (s *Store) Get(key source.Key) *observation.Record {
	book := s.book(key.Namespace, false)
	if book == nil {
		return nil
	}
	return book.get(key.Source)
}

// Put makes a record durable and returns when it is. Records of one namespace that are put while a write is under way
// go together into the next one. It is an error if the present record is no longer the one before, nil for none, on
// which the new one was decided: then it has to be decided again.
func (s *Store) Put(ctx context.Context, key source.Key, before *observation.Record, record observation.Record) error {
	return s.book(key.Namespace, true).commit(ctx, map[deps.Source]change{key.Source: {before: before, after: &record}})
}

// PutAll makes the first records of sources of one namespace durable together and returns when they are. It is an error
// if one of them has a record already, which is left as it is.
func (s *Store) PutAll(ctx context.Context, namespace string, records map[deps.Source]observation.Record) error {
	changes := make(map[deps.Source]change, len(records))
	for source, record := range records {
		changes[source] = change{after: &record}
	}
	return s.book(namespace, true).commit(ctx, changes)
}

// Forget removes the record of a source and returns when that is durable.
func (s *Store) Forget(ctx context.Context, key source.Key) error {
	book := s.book(key.Namespace, false)
	if book == nil {
		return nil
	}
	present := book.get(key.Source)
	if present == nil {
		return nil
	}
	return book.commit(ctx, map[deps.Source]change{key.Source: {before: present}})
}

// Note changes a record in memory; it becomes durable with the next write of its namespace. It is meant for what may
// be lost: a version seen, a change delivered. It is lost if the present record is no longer the one before.
func (s *Store) Note(key source.Key, before, record observation.Record) {
	s.book(key.Namespace, true).note(key.Source, before, record)
}

// Keys lists all sources on record.
func (s *Store) Keys() []source.Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	var keys []source.Key
	for _, book := range s.books {
		keys = append(keys, book.keys()...)
	}
	return keys
}

// Size is the number of sources on record, zero before Load.
func (s *Store) Size() int { return len(s.Keys()) }

// Flush writes what Note has left in memory about delivered changes.
func (s *Store) Flush(ctx context.Context) error {
	s.mu.Lock()
	books := make([]*book, 0, len(s.books))
	for _, book := range s.books {
		books = append(books, book)
	}
	s.mu.Unlock()
	for _, book := range books {
		if err := book.flush(ctx); err != nil {
			return err
		}
	}
	return nil
}

// book returns the book of a namespace. Without one it opens one, or returns nil.
func (s *Store) book(namespace string, open bool) *book {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.books[namespace] == nil && open {
		s.books[namespace] = newBook(s, namespace)
	}
	return s.books[namespace]
}
