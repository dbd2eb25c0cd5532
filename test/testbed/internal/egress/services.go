package egress

import (
	"fmt"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
)

// Services resolves cluster IPs and DNS names of Services, and Pod IPs. It
// reads from informers, so it goes on while the API server restarts.
type Services struct {
	services corelisters.ServiceLister
	slices   discoverylisters.EndpointSliceLister
	// pod finds the loopback address of a port of a Pod.
	pod  func(ip string, port int) (string, bool)
	turn atomic.Uint64
}

// NewServices registers its informers with the factory, which the caller
// starts.
func NewServices(factory informers.SharedInformerFactory, pod func(ip string, port int) (string, bool)) *Services {
	return &Services{
		services: factory.Core().V1().Services().Lister(),
		slices:   factory.Discovery().V1().EndpointSlices().Lister(),
		pod:      pod,
	}
}

// Resolve finds a process for a Service, in turn among its ready endpoints, or
// for a Pod IP.
func (s *Services) Resolve(host string, port int) (string, error) {
	if address, ok := s.pod(host, port); ok {
		return address, nil
	}
	service, err := s.find(host)
	if err != nil {
		return "", err
	}
	if service == nil {
		return "", fmt.Errorf("resolve %s:%d: no Service and no process has this address", host, port)
	}
	addresses, err := s.endpoints(service, port)
	if err != nil {
		return "", err
	}
	if len(addresses) == 0 {
		return "", fmt.Errorf("resolve %s:%d: Service %s/%s has no ready endpoint that is a process",
			host, port, service.Namespace, service.Name)
	}
	return addresses[s.turn.Add(1)%uint64(len(addresses))], nil
}

func (s *Services) find(host string) (*corev1.Service, error) {
	all, err := s.services.List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("list Services: %w", err)
	}
	for _, service := range all {
		if service.Spec.ClusterIP == host || isNameOf(host, service) {
			return service, nil
		}
	}
	return nil, nil
}

// isNameOf tells whether host is a DNS name of the Service.
func isNameOf(host string, service *corev1.Service) bool {
	rest, ok := strings.CutPrefix(host, service.Name+"."+service.Namespace)
	return ok && (rest == "" || rest == ".svc" || strings.HasPrefix(rest, ".svc."))
}

// endpoints lists the processes behind a port of a Service.
func (s *Services) endpoints(service *corev1.Service, port int) ([]string, error) {
	name, ok := portName(service, port)
	if !ok {
		return nil, nil
	}
	slices, err := s.slices.EndpointSlices(service.Namespace).List(
		labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: service.Name}))
	if err != nil {
		return nil, fmt.Errorf("list EndpointSlices: %w", err)
	}
	var addresses []string
	for _, slice := range slices {
		for _, target := range slice.Ports {
			if target.Port == nil || target.Name == nil || *target.Name != name {
				continue
			}
			for _, ip := range readyIPs(slice) {
				if address, ok := s.pod(ip, int(*target.Port)); ok {
					addresses = append(addresses, address)
				}
			}
		}
	}
	return addresses, nil
}

func portName(service *corev1.Service, port int) (string, bool) {
	for _, p := range service.Spec.Ports {
		if int(p.Port) == port {
			return p.Name, true
		}
	}
	return "", false
}

func readyIPs(slice *discoveryv1.EndpointSlice) []string {
	var ips []string
	for _, endpoint := range slice.Endpoints {
		if endpoint.Conditions.Ready != nil && !*endpoint.Conditions.Ready {
			continue
		}
		ips = append(ips, endpoint.Addresses...)
	}
	return ips
}
