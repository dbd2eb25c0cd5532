package controllers

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/request"
)

// denialPause is the time between two tries to write a stamp that the API server refuses.
const denialPause = time.Minute

// attempts remembers, for this process, what became of the stamps it wrote, by the UID of the request.
type attempts struct {
	mu     sync.Mutex
	issued map[types.UID]string
	// decided are the stamps of the last restarts that this process put on record.
	decided map[types.UID]string
	denied  map[types.UID]request.Denial
	// putOff are the restarts on record whose stamps are put off.
	putOff map[types.UID]putOff
}

// putOff is a restart on record whose stamp was not tried yet.
type putOff struct {
	// version of the request that has it on record.
	version string
	// since when restarts of the workload have been put off. One that takes the place of another, because of a later change,
	// has waited as long.
	since time.Time
}

func newAttempts() *attempts {
	return &attempts{
		issued: map[types.UID]string{}, decided: map[types.UID]string{}, denied: map[types.UID]request.Denial{},
		putOff: map[types.UID]putOff{},
	}
}

// recall adds what is remembered of a request to the facts. A stamp that this process wrote is no longer the last one where
// another process has put a restart on record since, and is forgotten.
func (a *attempts) recall(object *v1alpha1.KickRequest, facts *request.Facts) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if last := object.Status.CurrentRollout; last != nil && last.Stamp != "" &&
		last.Stamp != a.decided[object.UID] && last.Stamp != a.issued[object.UID] {
		delete(a.issued, object.UID)
	}
	facts.Issued = a.issued[object.UID]
	facts.Denied = a.denied[object.UID]
}

// setDecided remembers that this process put the restart with a stamp on record.
func (a *attempts) setDecided(object *v1alpha1.KickRequest, stamp string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.decided[object.UID] = stamp
}

// putOffSince is since when restarts of the workload have been put off, now if none is.
func (a *attempts) putOffSince(object *v1alpha1.KickRequest, now time.Time) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if waiting, found := a.putOff[object.UID]; found {
		return waiting.since
	}
	return now
}

// setPutOff remembers that the restart on record was not tried to be written: it cannot be under way.
func (a *attempts) setPutOff(object *v1alpha1.KickRequest, since time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.putOff[object.UID] = putOff{object.ResourceVersion, since}
}

// wasPutOff tells whether that holds of the restart on record.
func (a *attempts) wasPutOff(object *v1alpha1.KickRequest) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	waiting, found := a.putOff[object.UID]
	return found && waiting.version == object.ResourceVersion
}

// endPutOff is to be called before a stamp is written, since what becomes of it may never be known, and when something else
// was decided than a restart.
func (a *attempts) endPutOff(object *v1alpha1.KickRequest) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.putOff, object.UID)
}

func (a *attempts) setIssued(object *v1alpha1.KickRequest, stamp string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.issued[object.UID] = stamp
	delete(a.denied, object.UID)
}

func (a *attempts) setDenied(object *v1alpha1.KickRequest, stamp, message string, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.denied[object.UID] = request.Denial{Stamp: stamp, Message: message, Until: now.Add(denialPause)}
}

func (a *attempts) forget(object *v1alpha1.KickRequest) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.issued, object.UID)
	delete(a.decided, object.UID)
	delete(a.denied, object.UID)
	delete(a.putOff, object.UID)
}
