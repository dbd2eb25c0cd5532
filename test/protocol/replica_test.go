package protocol

import (
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/deps"
	"github.com/kick-dev/kick/internal/core/freshness"
	"github.com/kick-dev/kick/internal/core/observation"
	"github.com/kick-dev/kick/internal/core/policy"
	"github.com/kick-dev/kick/internal/core/request"
	"github.com/kick-dev/kick/internal/core/rollout"
)

// broken names rules of the protocol that the replicas do not keep, to see that it is noticed.
type broken struct {
	// stampUnfenced: a stamp is written whatever has become of the Pod template since it was judged.
	stampUnfenced bool
	// deliveredFirst: a change counts as delivered as soon as it is on record, and a new leader looks at no workload by
	// itself.
	deliveredFirst bool
}

// replica is one process of KICK.
type replica struct {
	Alive bool
	// Seen is what its watches have shown last.
	Seen view
	// Own is the request as this replica has written it last.
	Own *kickRequest
	// Ledger is what it remembers of the ledger, Dirty whether that is ahead of what is stored.
	Ledger ledger
	Dirty  bool
	// Issued is the stamp it has written last.
	Issued string
	// What it has to look at.
	DueSource, DueWorkload bool
	// Job is under way, nil for none.
	Job *job
}

// view is what the watches show.
type view struct {
	Source   source
	Workload workload
	Request  *kickRequest
}

// call is a request to the API server.
type call string

const (
	readSource   call = "read the source"
	putRecord    call = "put the record"
	readWorkload call = "read the workload"
	readAhead    call = "read the workload ahead"
	listPods     call = "list the Pods"
	create       call = "create the request"
	saveStatus   call = "save the status"
	stamp        call = "stamp"
)

// job is a reconcile that waits for the API server. It is replaced and never modified.
type job struct {
	Awaits call
	// Record is to be put.
	Record *observation.Record
	// Delivers tells a request that is created for a change from one for a workload that came into scope.
	Delivers bool

	// Workload is what is decided about, Live whether it was read from the API server; Ahead is the workload that was.
	Workload workload
	Live     bool
	Ahead    *workload
	// Present is the request that is decided about, nil for none.
	Present *kickRequest
	// Pods are those that were listed, nil before.
	Pods *pod
	// RevisionRead is true once the revision was asked for.
	RevisionRead bool

	// Status is to be saved, and Stamp to be written.
	Status *v1alpha1.KickRequestStatus
	Stamp  string
}

var (
	settings = request.Settings{TTL: 1000 * time.Hour, RolloutDeadline: 1000 * time.Hour}
	scope    = everything()

	references = []deps.Reference{{
		Source: db, Readers: []deps.Reader{{Container: "app", Channel: deps.Environment}}, Whole: true, Required: true,
	}}
)

func everything() policy.Scope {
	parsed, _ := policy.Parse(&v1alpha1.KickPolicy{ObjectMeta: metav1.ObjectMeta{Name: "all"}})
	return policy.ScopeOf([]policy.Policy{parsed}, labels.Set{})
}

func (s *state) start(i int, broken broken) {
	s.Replicas[i] = replica{
		Alive: true, Seen: s.view(), Ledger: s.Ledger, DueSource: true, DueWorkload: !broken.deliveredFirst,
	}
}

func (s *state) view() view { return view{Source: s.Source, Workload: s.Workload, Request: s.Request} }

// hear brings the caches of a replica up to date.
func (s *state) hear(i int) {
	r := &s.Replicas[i]
	now := s.view()
	r.DueSource = r.DueSource || now.Source != r.Seen.Source
	r.DueWorkload = r.DueWorkload || now.Workload != r.Seen.Workload || (now.Request == nil) != (r.Seen.Request == nil)
	r.Seen = now
	if r.Own != nil && now.Request != nil && r.Own.Version <= now.Request.Version {
		r.Own = nil
	}
}

// present is the request as the replica knows it.
func (r *replica) present() *kickRequest {
	if r.Own != nil {
		return r.Own
	}
	return r.Seen.Request
}

// observe begins to look at the source.
func (s *state) observe(i int) {
	r := &s.Replicas[i]
	r.DueSource = false
	record := r.Ledger.Record
	if record == nil || record.ResourceVersion != strconv.Itoa(r.Seen.Source.Version) {
		r.Job = &job{Awaits: readSource}
		return
	}
	s.deliver(r)
}

// deliver sees to it that a change that is on record is decided about.
func (s *state) deliver(r *replica) {
	r.Job = nil
	if !r.Ledger.Record.Pending {
		return
	}
	if r.present() == nil {
		r.Job = &job{Awaits: create, Delivers: true}
		return
	}
	r.DueWorkload = true
	r.delivered()
}

func (r *replica) delivered() {
	record := *r.Ledger.Record
	record.Pending = false
	r.Ledger.Record, r.Dirty = &record, true
}

// flush stores that changes were delivered.
func (s *state) flush(i int) {
	r := &s.Replicas[i]
	r.Dirty = false
	if r.Ledger.Version != s.Ledger.Version {
		s.adopt(r)
		return
	}
	s.Ledger = ledger{Version: s.Ledger.Version + 1, Record: r.Ledger.Record}
	r.Ledger = s.Ledger
}

// adopt takes the ledger as another replica has left it.
func (s *state) adopt(r *replica) {
	r.Ledger, r.Dirty, r.DueSource = s.Ledger, false, true
}

// decide begins to look at the workload.
func (s *state) decide(i int) {
	r := &s.Replicas[i]
	r.DueWorkload = false
	r.Job = &job{Workload: r.Seen.Workload, Present: r.present()}
	s.goOn(r)
}

// goOn decides as far as what was read suffices.
func (s *state) goOn(r *replica) {
	next := *r.Job
	r.Job = &next
	for {
		if next.Present == nil {
			if s.consider(r, &next) {
				continue
			}
			return
		}
		step := request.Next(*next.Present.Status, s.facts(r, &next), settings, s.Now)
		switch step.Need {
		case request.NeedRevision:
			next.RevisionRead = true
			continue
		case request.NeedPods:
			next.Awaits = readAhead
			if next.Live {
				next.Awaits = listPods
			}
			return
		case request.NeedLive:
			if next.Ahead == nil {
				next.Awaits = readWorkload
				return
			}
			next.take(*next.Ahead)
			continue
		case request.NeedNothing, request.NeedRoom:
		}
		s.act(r, &next, step)
		return
	}
}

// act begins to carry out what was decided.
func (s *state) act(r *replica, j *job, step request.Step) {
	status := step.Status
	j.Status, j.Stamp = &status, step.Stamp
	switch {
	case !equality.Semantic.DeepEqual(*j.Present.Status, status):
		j.Awaits = saveStatus
	case step.Stamp != "":
		j.Awaits = stamp
	default:
		r.Job = nil
	}
}

// consider asks whether a workload without a request needs one. It reports whether to ask again.
func (s *state) consider(r *replica, j *job) bool {
	stale, need := request.Warranted(s.facts(r, j))
	switch {
	case need == request.NeedRevision:
		j.RevisionRead = true
		return true
	case need == request.NeedPods:
		j.Awaits = listPods
	case stale && r.present() != nil:
		r.DueWorkload, r.Job = true, nil
	case stale:
		j.Awaits = create
	default:
		r.Job = nil
	}
	return false
}

// take goes on with the workload as it was read. What was gathered before stays true for the same template.
func (j *job) take(live workload) {
	if live.Generation != j.Workload.Generation {
		j.Pods, j.RevisionRead = nil, false
	}
	j.Workload, j.Live, j.Ahead = live, true, nil
}

// facts are what a job knows.
func (s *state) facts(r *replica, j *job) request.Facts {
	facts := request.Facts{
		Scope: scope, Stamp: j.Workload.Stamp, Live: j.Live, Issued: r.Issued, Room: request.Room{Asked: true},
		Evidence: freshness.Evidence{
			CreatedAt:    j.Workload.Created,
			Rollout:      rollout.State{Complete: j.Workload.complete(), Message: "rolling out"},
			RevisionRead: j.RevisionRead,
			PodsRead:     j.Pods != nil,
		},
	}
	facts.Changes = freshness.Changes{}
	record := r.Ledger.Record
	if facts.Unobserved = record == nil; record != nil {
		facts.Changes[db] = record.ChangedAt
		if record.ResourceVersion != strconv.Itoa(r.Seen.Source.Version) {
			facts.Unread = []string{db.String()}
		}
	}
	if j.RevisionRead && !j.Workload.Revised.IsZero() {
		facts.Evidence.Revision = &rollout.Revision{Name: "revision", CreatedAt: j.Workload.Revised}
	}
	if j.Pods != nil {
		facts.Evidence.Pods = []freshness.Pod{{
			StartedAt: j.Pods.Started, Containers: []freshness.Container{{Name: "app", StartedAt: j.Pods.Started}}, References: references,
		}}
	}
	return facts
}

// perform lets the API server answer what a replica waits for, and the replica go on to its next request.
func (s *state) perform(i int, broken broken) error {
	r := &s.Replicas[i]
	j := *r.Job
	r.Job = &j
	switch j.Awaits {
	case readSource:
		s.sight(r)
	case putRecord:
		s.put(r, j.Record, broken)
	case create:
		s.create(r, j.Delivers)
	case readWorkload:
		j.take(s.Workload)
		s.goOn(r)
	case readAhead:
		ahead := s.Workload
		j.Ahead, j.Awaits = &ahead, listPods
	case listPods:
		pods := s.Workload.Pod
		j.Pods = &pods
		s.goOn(r)
	case saveStatus:
		s.save(r)
	case stamp:
		return s.stamp(r, broken)
	}
	return nil
}

func (s *state) sight(r *replica) {
	next, result := observation.Observe(r.Ledger.Record, observation.Sight{
		ResourceVersion: strconv.Itoa(s.Source.Version), LastWrite: s.Source.Written,
		Fingerprint: []byte(strconv.Itoa(s.Source.Version)), KeyID: "key",
	}, s.Now)
	if result == observation.NoChange || result == observation.MetaOnly {
		r.Ledger.Record = &next
		s.deliver(r)
		return
	}
	r.Job = &job{Awaits: putRecord, Record: &next}
}

func (s *state) put(r *replica, record *observation.Record, broken broken) {
	if r.Ledger.Version != s.Ledger.Version {
		r.Job = nil
		s.adopt(r)
		return
	}
	if broken.deliveredFirst {
		forgotten := *record
		forgotten.Pending = false
		s.Ledger = ledger{Version: s.Ledger.Version + 1, Record: &forgotten}
		r.Ledger = ledger{Version: s.Ledger.Version, Record: record}
	} else {
		s.Ledger = ledger{Version: s.Ledger.Version + 1, Record: record}
		r.Ledger = s.Ledger
	}
	s.deliver(r)
}

func (s *state) create(r *replica, delivers bool) {
	r.Job = nil
	if s.Request != nil { // AlreadyExists: another replica was quicker.
		r.DueSource, r.DueWorkload = r.DueSource || delivers, r.DueWorkload || !delivers
		return
	}
	s.Request = &kickRequest{Version: 1, Status: &v1alpha1.KickRequestStatus{}}
	r.Own = s.Request
	if delivers {
		r.delivered()
	}
}

func (s *state) save(r *replica) {
	j := r.Job
	if s.Request.Version != j.Present.Version {
		r.Own, r.Job, r.DueWorkload = nil, nil, true
		return
	}
	s.Request = &kickRequest{Version: s.Request.Version + 1, Status: j.Status}
	r.Own, j.Present = s.Request, s.Request
	if j.Awaits = stamp; j.Stamp == "" || s.Workload.Stamp == j.Stamp {
		r.Job = nil
	}
}

// stamp writes the template, and checks that it was due.
func (s *state) stamp(r *replica, broken broken) error {
	j := r.Job
	w := &s.Workload
	if !broken.stampUnfenced && w.Generation != j.Workload.Generation {
		r.Job, r.DueWorkload = nil, true
		return nil
	}
	if s.Stamped {
		return violation("I6: a second stamp for the same change")
	}
	if w.complete() && w.Pod.Content == s.Source.Version {
		return violation("I6: a stamp, and the Pod runs the present content")
	}
	w.Version++
	w.Generation++
	w.Stamp, w.Revised = j.Stamp, time.Time{}
	s.Stamped, r.Issued = true, j.Stamp
	r.Job = nil
	return nil
}
