package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/source"
	"github.com/kick-dev/kick/internal/core/deps"
	"github.com/kick-dev/kick/internal/core/observation"
)

// writeTimeout bounds one group of writes. A write that lands all the same is found by its version.
const writeTimeout = 30 * time.Second

// book holds the records of one source namespace, spread over shards, and commits changes to them in groups.
type book struct {
	store     *Store
	namespace string

	mu     sync.Mutex
	shards []*shard
	// next gathers the changes for the write after the one under way, nil if there are none.
	next    *batch
	writing bool
}

// errMoved says that a change was decided on a record that is no longer the present one: another replica has written the
// ledger since.
var errMoved = errors.New("the record was replaced while the change was decided")

// change replaces the record that it was decided on. A nil record is none: before, of a source that is new, and after,
// of one that is removed.
type change struct {
	before, after *observation.Record
}

// batch is a group of changes that becomes durable, or fails, together.
type batch struct {
	changes map[deps.Source]change
	// moved are the changes that no longer fit.
	moved map[deps.Source]bool
	done  chan struct{}
	err   error
}

func newBook(store *Store, namespace string) *book { return &book{store: store, namespace: namespace} }

// adopt takes over a ledger object read from the API server.
func (b *book) adopt(ctx context.Context, object *v1alpha1.KickLedger) {
	shard := newShard(object.Name)
	shard.adopt(ctx, object)
	b.shards = append(b.shards, shard)
}

func (b *book) get(source deps.Source) *observation.Record {
	b.mu.Lock()
	defer b.mu.Unlock()
	if shard := b.holder(source); shard != nil {
		record := shard.records[source]
		return &record
	}
	return nil
}

func (b *book) keys() []source.Key {
	b.mu.Lock()
	defer b.mu.Unlock()
	var keys []source.Key
	for _, shard := range b.shards {
		for name := range shard.records {
			keys = append(keys, source.Key{Namespace: b.namespace, Source: name})
		}
	}
	return keys
}

func (b *book) note(source deps.Source, before, record observation.Record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	shard := b.holder(source)
	if shard == nil || !b.holds(source, &before) {
		return
	}
	if shard.records[source].Pending != record.Pending {
		shard.noted++
	}
	shard.records[source] = record
}

// holds tells whether the record of a source is still the one that a decision was made on. The caller holds the lock.
func (b *book) holds(source deps.Source, before *observation.Record) bool {
	shard := b.holder(source)
	if shard == nil || before == nil {
		return shard == nil && before == nil
	}
	return reflect.DeepEqual(shard.records[source], *before)
}

// commit joins the next group and waits until it is written.
func (b *book) commit(ctx context.Context, changes map[deps.Source]change) error {
	b.mu.Lock()
	group := b.join()
	maps.Copy(group.changes, changes)
	b.mu.Unlock()
	if err := b.await(ctx, group); err != nil {
		return err
	}
	for source := range changes {
		if group.moved[source] {
			return fmt.Errorf("change the record of %s/%s: %w", b.namespace, source, errMoved)
		}
	}
	return nil
}

// flush writes the shards that hold delivered changes, if any.
func (b *book) flush(ctx context.Context) error {
	b.mu.Lock()
	dirty := false
	for _, shard := range b.shards {
		dirty = dirty || shard.dirty()
	}
	if !dirty {
		b.mu.Unlock()
		return nil
	}
	group := b.join()
	b.mu.Unlock()
	return b.await(ctx, group)
}

// join returns the group to add to and sees to it that somebody writes it. The caller holds the lock.
func (b *book) join() *batch {
	if b.next == nil {
		b.next = &batch{changes: map[deps.Source]change{}, moved: map[deps.Source]bool{}, done: make(chan struct{})}
	}
	if !b.writing {
		b.writing = true
		go b.writeGroups()
	}
	return b.next
}

func (b *book) await(ctx context.Context, group *batch) error {
	select {
	case <-group.done:
		return group.err
	case <-ctx.Done():
		return fmt.Errorf("wait for the ledger of namespace %s: %w", b.namespace, ctx.Err())
	}
}

// writeGroups writes one group after the other until none is left. It outlives the callers that wait: a write that
// one of them gave up on may still be needed by another.
func (b *book) writeGroups() {
	for {
		b.mu.Lock()
		group := b.next
		b.next = nil
		if group == nil {
			b.writing = false
			b.mu.Unlock()
			return
		}
		b.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
		group.err = b.write(ctx, group)
		cancel()
		close(group.done)
	}
}

// write stores the shards that a group touches, and those left dirty.
func (b *book) write(ctx context.Context, group *batch) error {
	b.mu.Lock()
	pending := b.plan(group)
	b.mu.Unlock()
	for shard, content := range pending {
		stored, err := b.store.save(ctx, b.namespace, shard, content.records)
		switch {
		case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err):
			b.reload(ctx, shard)
		case err != nil && b.store.WriteFailed != nil:
			b.store.WriteFailed()
		}
		if err != nil {
			return fmt.Errorf("write the ledger %s: %w", shard.name, err)
		}
		b.mu.Lock()
		shard.settle(stored, content, group.changes)
		b.mu.Unlock()
	}
	return nil
}

// plan distributes a group over the shards and returns what each is to hold. Changes that no longer fit are taken out of
// the group. The caller holds the lock.
func (b *book) plan(group *batch) map[*shard]*content {
	planned := map[*shard]*content{}
	contentOf := func(shard *shard) *content {
		if planned[shard] == nil {
			planned[shard] = shard.snapshot()
		}
		return planned[shard]
	}
	for source, change := range group.changes {
		if !b.holds(source, change.before) {
			group.moved[source] = true
			delete(group.changes, source)
			continue
		}
		shard, record := b.holder(source), change.after
		switch {
		case record == nil && shard == nil:
		case record == nil:
			delete(contentOf(shard).records, source)
		default:
			if shard == nil {
				shard = b.roomy(planned)
			}
			contentOf(shard).records[source] = *record
		}
	}
	for _, shard := range b.shards {
		if shard.dirty() {
			contentOf(shard)
		}
	}
	return planned
}

// holder is the shard that holds the record of a source, nil for none. The caller holds the lock.
func (b *book) holder(source deps.Source) *shard {
	for _, shard := range b.shards {
		if _, held := shard.records[source]; held {
			return shard
		}
	}
	return nil
}

// roomy is the first shard with room for another record, a new one if all are full. The caller holds the lock.
func (b *book) roomy(planned map[*shard]*content) *shard {
	taken := map[string]bool{}
	for _, shard := range b.shards {
		taken[shard.name] = true
		records := shard.records
		if content := planned[shard]; content != nil {
			records = content.records
		}
		if roomy(records) {
			return shard
		}
	}
	name := b.namespace
	for n := 1; taken[name]; n++ {
		name = fmt.Sprintf("%s.%d", b.namespace, n)
	}
	shard := newShard(name)
	b.shards = append(b.shards, shard)
	return shard
}

// reload takes a shard anew after somebody else wrote it: another replica that leads, or a person. What was to be
// written is void and is decided again, and so is what is pending in there: whoever wrote it may not come to deliver it.
// Sources that are no longer on record are taken anew.
func (b *book) reload(ctx context.Context, shard *shard) {
	object := &v1alpha1.KickLedger{}
	err := b.store.reader.Get(ctx, types.NamespacedName{Namespace: b.store.namespace, Name: shard.name}, object)
	if err != nil {
		return // The next write finds out.
	}
	b.mu.Lock()
	before := shard.records
	shard.adopt(ctx, object)
	var undecided []source.Key
	for name, record := range shard.records {
		if record.Pending {
			undecided = append(undecided, source.Key{Namespace: b.namespace, Source: name})
		}
	}
	for name := range before {
		if b.holder(name) == nil {
			undecided = append(undecided, source.Key{Namespace: b.namespace, Source: name})
		}
	}
	b.mu.Unlock()
	if b.store.Undecided != nil {
		b.store.Undecided(undecided...)
	}
}
