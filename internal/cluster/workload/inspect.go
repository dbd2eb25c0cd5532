package workload

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/internal/core/freshness"
	"github.com/kick-dev/kick/internal/core/rollout"
)

// Inspection reads, from the API server, what runs under one workload. Each list is made at most once.
type Inspection struct {
	live        client.Reader
	workload    *Workload
	replicaSets []appsv1.ReplicaSet
	listed      bool
}

// Inspect begins an inspection.
func (c *Client) Inspect(workload *Workload) *Inspection {
	return &Inspection{live: c.Live, workload: workload}
}

// Revision returns the current revision of the workload, nil if there is none yet.
func (i *Inspection) Revision(ctx context.Context) (*rollout.Revision, error) {
	if i.workload.kind.replicaSets {
		if err := i.listReplicaSets(ctx); err != nil {
			return nil, err
		}
		return found(rollout.DeploymentRevision(i.workload.object.(*appsv1.Deployment), i.replicaSets))
	}
	var revisions appsv1.ControllerRevisionList
	if err := i.list(ctx, &revisions); err != nil {
		return nil, err
	}
	revision, ok := i.workload.kind.revision(i.workload.object, revisions.Items)
	if ok && i.workload.kind.newestRevision {
		var err error
		if ok, err = i.unchanged(ctx); err != nil {
			return nil, err
		}
	}
	return found(revision, ok)
}

// unchanged tells whether the workload still has the spec it was judged by. Where the newest revision counts as the current
// one, a workload from a cache that lags behind would be given the revision of a template that it does not show yet.
func (i *Inspection) unchanged(ctx context.Context) (bool, error) {
	present := i.workload.kind.object()
	err := i.live.Get(ctx, i.workload.Key.objectKey(), present)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read workload %s: %w", i.workload.Key, err)
	}
	return err == nil && present.GetUID() == i.workload.UID() && present.GetGeneration() == i.workload.Generation(), nil
}

func found(revision rollout.Revision, ok bool) (*rollout.Revision, error) {
	if !ok {
		return nil, nil //nolint:nilnil // documented: no revision, no error
	}
	return &revision, nil
}

// Pods returns the live Pods that the workload owns.
func (i *Inspection) Pods(ctx context.Context) ([]freshness.Pod, error) { return i.pods(ctx) }

// LatePods returns them as the API server has them in its cache, which may be a moment behind. It neither asks etcd nor waits:
// for a list without that moment, the API server waits until etcd tells how far the cache is, for which it asks ten times a
// second at most.
//
// Source: https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions, "Any".
func (i *Inspection) LatePods(ctx context.Context) ([]freshness.Pod, error) {
	return i.pods(ctx, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0"}})
}

func (i *Inspection) pods(ctx context.Context, options ...client.ListOption) ([]freshness.Pod, error) {
	var list corev1.PodList
	if err := i.list(ctx, &list, options...); err != nil {
		return nil, err
	}
	var pods []freshness.Pod
	for j := range list.Items {
		owned, err := i.owns(ctx, &list.Items[j])
		if err != nil {
			return nil, err
		}
		if !owned {
			continue
		}
		if pod, runs := freshness.PodOf(&list.Items[j]); runs {
			pods = append(pods, pod)
		}
	}
	return pods, nil
}

// owns tells whether a Pod belongs to the workload. Its ReplicaSet is looked up only if its name does not say whose it
// is.
func (i *Inspection) owns(ctx context.Context, pod *corev1.Pod) (bool, error) {
	controller := metav1.GetControllerOfNoCopy(pod)
	switch {
	case controller == nil:
		return false, nil
	case controller.UID == i.workload.UID():
		return true, nil
	case !i.workload.kind.replicaSets || controller.Kind != "ReplicaSet":
		return false, nil
	case !i.listed && controller.Name == i.workload.Key.Name+"-"+pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]:
		return true, nil
	}
	if err := i.listReplicaSets(ctx); err != nil {
		return false, err
	}
	return slices.ContainsFunc(i.replicaSets, func(set appsv1.ReplicaSet) bool {
		return set.UID == controller.UID && metav1.IsControlledBy(&set, i.workload.object)
	}), nil
}

func (i *Inspection) listReplicaSets(ctx context.Context) error {
	if i.listed {
		return nil
	}
	var list appsv1.ReplicaSetList
	if err := i.list(ctx, &list); err != nil {
		return err
	}
	i.replicaSets, i.listed = list.Items, true
	return nil
}

// list reads the objects that the workload's selector matches.
func (i *Inspection) list(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	selector, err := metav1.LabelSelectorAsSelector(i.workload.kind.selector(i.workload.object))
	if err != nil {
		return fmt.Errorf("parse the selector of workload %s: %w", i.workload.Key, err)
	}
	options = append(options, client.InNamespace(i.workload.Key.Namespace), client.MatchingLabelsSelector{Selector: selector})
	err = i.live.List(ctx, list, options...)
	if err != nil {
		return fmt.Errorf("list %T of workload %s: %w", list, i.workload.Key, err)
	}
	return nil
}
