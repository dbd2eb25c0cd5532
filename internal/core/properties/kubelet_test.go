package properties_test

import (
	"slices"
	"time"

	"github.com/kick-dev/kick/internal/core/deps"
)

// Delays that are the same for all Pods.
const (
	scheduling  = 130 * time.Millisecond
	retryMount  = 2 * time.Second
	initRuns    = 400 * time.Millisecond
	termination = 700 * time.Millisecond
)

// pod is a Pod, with what its containers have really read.
type pod struct {
	w        *workload
	name     string
	revision *revision
	ordinal  int
	created  time.Time
	deleted  bool
	ready    bool
	// startedAt is when the kubelet took it up, zero before. Its volumes were written then or later.
	startedAt  time.Time
	volumes    map[deps.Source]content
	containers []*container
}

// container is the present run of a container.
type container struct {
	name     string
	initial  bool // an init container that ends
	started  time.Time
	running  bool
	ended    bool
	restarts int32
	reads    []reading
}

// reading is what a container has read by one use.
type reading struct {
	use use
	content
	// at is when what was read came from the API server: for files that is before the container started.
	at time.Time
}

func (p *pod) shape() shape { return shapes[p.revision.id.shape] }

func (w *workload) createPod(r *revision, ordinal int) {
	p := &pod{w: w, name: w.key.name + "-" + w.c.id(), revision: r, ordinal: ordinal, created: w.c.now}
	w.pods = append(w.pods, p)
	w.unkept = true
	w.c.agenda.add(w.c.now.Add(scheduling), p.takeUp)
}

func (w *workload) deletePod(p *pod) {
	if p.deleted {
		return
	}
	p.deleted, p.ready, p.w.unkept = true, false, true
	w.c.agenda.add(w.c.now.Add(termination), func() {
		w.pods, w.unkept = slices.DeleteFunc(w.pods, func(other *pod) bool { return other == p }), true
		w.resync()
	})
}

// takeUp is the kubelet seeing the Pod for the first time.
func (p *pod) takeUp() {
	if p.deleted {
		return
	}
	p.startedAt, p.w.unkept = p.w.c.now, true
	p.mount()
}

// mount writes the volumes, as soon as all that they need exists.
func (p *pod) mount() {
	if p.deleted {
		return
	}
	c := p.w.c
	for _, u := range p.shape().uses {
		if !u.environment() && !c.provides(u) {
			c.agenda.add(c.now.Add(retryMount), p.mount)
			return
		}
	}
	p.volumes = map[deps.Source]content{}
	for _, u := range p.shape().uses {
		if !u.environment() {
			p.volumes[u.source] = c.content(u.source)
		}
	}
	s := p.shape()
	for _, name := range s.containers() {
		p.containers = append(p.containers, &container{name: name, initial: slices.Contains(s.inits, name)})
	}
	c.agenda.add(c.now.Add(p.w.pace.pull), func() { p.startNext(0) })
}

// startNext starts the containers one after the other; an init container has to end before the next one starts.
func (p *pod) startNext(i int) {
	c := p.w.c
	switch {
	case p.deleted:
		return
	case i == len(p.containers):
		c.agenda.add(c.now.Add(p.w.pace.boot), p.boot)
		return
	case !p.start(p.containers[i]):
		c.agenda.add(c.now.Add(retryMount), func() { p.startNext(i) })
	case p.containers[i].initial:
		c.agenda.add(c.now.Add(initRuns), func() {
			p.containers[i].running, p.containers[i].ended, p.w.unkept = false, true, true
			p.startNext(i + 1)
		})
	default:
		c.agenda.add(c.now.Add(initRuns/2), func() { p.startNext(i + 1) })
	}
}

// start runs a container if what its environment needs exists: it reads the environment now, and the files as they are.
func (p *pod) start(k *container) bool {
	c := p.w.c
	var reads []reading
	for _, u := range p.shape().uses {
		switch {
		case u.container != "" && u.container != k.name:
		case u.environment() && !c.provides(u):
			return false
		case u.environment():
			reads = append(reads, reading{use: u, content: c.content(u.source), at: c.now})
		default:
			files := p.volumes[u.source]
			reads = append(reads, reading{use: u, content: files, at: files.readAt})
		}
	}
	k.started, k.running, k.reads, p.w.unkept = c.now, true, reads, true
	c.judge.tell("%s: container %s of %s starts, revision %s", p.w.key, k.name, p.name, p.revision.name)
	return true
}

func (p *pod) boot() {
	if p.deleted {
		return
	}
	if p.w.pace.stuck {
		p.w.c.agenda.add(p.w.c.now.Add(time.Minute), p.boot)
		return
	}
	p.ready = true
	p.w.resync()
}

// crash lets a container die and run again in its Pod.
func (p *pod) crash(k *container) {
	if !k.running || p.deleted {
		return
	}
	k.running, p.w.unkept = false, true
	k.restarts++
	p.again(k)
}

func (p *pod) again(k *container) {
	if !p.deleted && !p.start(k) {
		p.w.c.agenda.add(p.w.c.now.Add(retryMount), func() { p.again(k) })
	}
}

// refresh brings the files of a source up to date. A required source that is gone leaves the old files.
func (p *pod) refresh(source deps.Source) {
	for _, u := range p.shape().usesOf(source) {
		if _, mounted := p.volumes[source]; mounted && !u.environment() && !p.deleted && p.w.c.provides(u) {
			p.volumes[source] = p.w.c.content(source)
		}
	}
}
