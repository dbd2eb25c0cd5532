package kubelet

import (
	"fmt"
	"sync"

	"github.com/kick-dev/kick/test/testbed/internal/loopback"
)

// addressBook gives each Pod an IP of 10.244.0.0/16, and knows which loopback
// port plays which port of it.
type addressBook struct {
	mu    sync.Mutex
	last  int
	ports map[string]map[int32]int
}

// assign returns an IP that no other Pod has.
func (a *addressBook) assign() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ports == nil {
		a.ports = map[string]map[int32]int{}
	}
	for {
		a.last = a.last%65534 + 1
		ip := fmt.Sprintf("10.244.%d.%d", a.last/256, a.last%256)
		if _, taken := a.ports[ip]; !taken {
			a.ports[ip] = map[int32]int{}
			return ip
		}
	}
}

func (a *addressBook) set(ip string, port int32, local int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ports[ip][port] = local
}

func (a *addressBook) release(ip string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.ports, ip)
}

func (a *addressBook) find(ip string, port int) (string, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	local, ok := a.ports[ip][int32(port)]
	return loopback.Address(local), ok
}
