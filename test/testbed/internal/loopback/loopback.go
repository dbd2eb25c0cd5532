// Package loopback hands out free TCP ports of the loopback interface.
package loopback

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// Ports are taken from below the range that the kernel uses for outgoing
// connections: a server that is stopped for a moment must get its port back.
const (
	lowest  = 12000
	highest = 32000
)

// Ports remembers what it handed out, so that no two callers get the same port
// between choice and use. The zero value is ready for use.
type Ports struct {
	mu    sync.Mutex
	taken map[int]bool
}

// Free returns a port that nobody listens on.
func (p *Ports) Free() (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken == nil {
		p.taken = map[int]bool{}
	}
	const attempts = 1000
	for range attempts {
		port := lowest + rand.IntN(highest-lowest)
		if !p.taken[port] && IsFree(port) {
			p.taken[port] = true
			return port, nil
		}
	}
	return 0, errors.New("no free loopback port found")
}

// Release gives ports back.
func (p *Ports) Release(ports ...int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, port := range ports {
		delete(p.taken, port)
	}
}

// IsFree tells whether a server can listen on the port now, on the loopback
// address as well as on all of them.
func IsFree(port int) bool {
	for _, host := range []string{"127.0.0.1", ""} {
		listener, err := net.Listen("tcp", fmt.Sprintf("%s:%d", host, port))
		if err != nil {
			return false
		}
		_ = listener.Close()
	}
	return true
}

// Address is the address of a port on the loopback interface.
func Address(port int) string {
	return fmt.Sprintf("127.0.0.1:%d", port)
}
