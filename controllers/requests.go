package controllers

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/workload"
	"github.com/kick-dev/kick/internal/core/request"
)

// requests reads and writes KickRequests. It remembers what it wrote until the cache shows it, so that a decision is
// not made on a status that KICK itself has replaced.
type requests struct {
	client client.Client

	mu      sync.Mutex
	written map[types.NamespacedName]*v1alpha1.KickRequest
}

func newRequests(c client.Client) *requests {
	return &requests{client: c, written: map[types.NamespacedName]*v1alpha1.KickRequest{}}
}

// nameOf the request of a workload.
func nameOf(key workload.Key) types.NamespacedName {
	return types.NamespacedName{Namespace: key.Namespace, Name: request.Name(key.Kind, key.Name)}
}

// get returns the request of a workload, nil if there is none. It must not be modified.
func (r *requests) get(ctx context.Context, key workload.Key) (*v1alpha1.KickRequest, error) {
	name := nameOf(key)
	cached := &v1alpha1.KickRequest{}
	err := r.client.Get(ctx, name, cached)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("get the request of workload %s: %w", key, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	written := r.written[name]
	switch {
	case err != nil:
		return written, nil
	case written == nil || !newer(written, cached):
		delete(r.written, name)
		return cached, nil
	default:
		return written, nil
	}
}

// newer tells whether a was written after b. Objects of different UIDs or unreadable versions are left to the cache.
func newer(a, b *v1alpha1.KickRequest) bool {
	order, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion)
	return err == nil && order > 0
}

// create makes the request of a workload. One that exists already, made by another replica, is a lost race: it has to be
// looked at first.
func (r *requests) create(ctx context.Context, w *workload.Workload) error {
	name := nameOf(w.Key)
	created := &v1alpha1.KickRequest{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       name.Namespace,
			Name:            name.Name,
			OwnerReferences: []metav1.OwnerReference{w.OwnerReference()},
		},
		Spec: v1alpha1.KickRequestSpec{TargetRef: w.TargetRef()},
	}
	if err := r.client.Create(ctx, created); err != nil {
		return fmt.Errorf("create the request of workload %s: %w", w.Key, err)
	}
	r.remember(created)
	return nil
}

// saveStatus stores a status on the request it was decided on, and nothing if the request has moved on since: that is
// the fence between two replicas that both believe to lead.
func (r *requests) saveStatus(
	ctx context.Context, old *v1alpha1.KickRequest, status v1alpha1.KickRequestStatus,
) (*v1alpha1.KickRequest, error) {
	changed := old.DeepCopy()
	changed.Status = status
	// A patch would take the API server a fifth longer, which applies it to the text of the whole object.
	if err := r.client.Status().Update(ctx, changed, client.FieldOwner(v1alpha1.FieldManager)); err != nil {
		r.forget(client.ObjectKeyFromObject(old))
		return nil, fmt.Errorf("store the status of request %s: %w", client.ObjectKeyFromObject(old), err)
	}
	r.remember(changed)
	return changed, nil
}

// remove deletes exactly the request that was looked at.
func (r *requests) remove(ctx context.Context, old *v1alpha1.KickRequest) error {
	r.forget(client.ObjectKeyFromObject(old))
	err := r.client.Delete(ctx, old, client.Preconditions{UID: &old.UID, ResourceVersion: &old.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete request %s: %w", client.ObjectKeyFromObject(old), err)
	}
	return nil
}

func (r *requests) remember(object *v1alpha1.KickRequest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.written[client.ObjectKeyFromObject(object)] = object
}

// forget drops what was remembered of a request, for one that is gone or was written by somebody else.
func (r *requests) forget(name types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.written, name)
}

// shown drops what was remembered of a request once the cache shows it: kept longer, it would be a second copy of every
// request.
func (r *requests) shown(object *v1alpha1.KickRequest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := client.ObjectKeyFromObject(object)
	if written := r.written[name]; written != nil && !newer(written, object) {
		delete(r.written, name)
	}
}

// gone drops what was remembered of a request that was deleted, but not of its successor.
func (r *requests) gone(object *v1alpha1.KickRequest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := client.ObjectKeyFromObject(object)
	if written := r.written[name]; written != nil && written.UID == object.UID {
		delete(r.written, name)
	}
}

// lostRace tells an error that only says that somebody else was quicker: the work is to be done again, on fresh
// objects.
func lostRace(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err)
}
