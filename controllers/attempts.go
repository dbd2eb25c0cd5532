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
	// putOff are the versions of requests on which a restart is on record whose stamp was not tried yet.
	putOff map[types.UID]string
}

func newAttempts() *attempts {
	return &attempts{
		issued: map[types.UID]string{}, decided: map[types.UID]string{}, denied: map[types.UID]request.Denial{},
		putOff: map[types.UID]string{},
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

// setPutOff remembers that the restart on record was not tried to be written: it cannot be under way.
func (a *attempts) setPutOff(object *v1alpha1.KickRequest) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.putOff[object.UID] = object.ResourceVersion
}

// wasPutOff tells whether that holds of the restart on record.
func (a *attempts) wasPutOff(object *v1alpha1.KickRequest) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	version, putOff := a.putOff[object.UID]
	return putOff && version == object.ResourceVersion
}

// setTried is to be called before a stamp is written. What becomes of it may never be known.
func (a *attempts) setTried(object *v1alpha1.KickRequest) {
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
