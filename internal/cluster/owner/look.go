package owner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kick-dev/kick/api/v1alpha1"
)

// lookPeriod is how often kinds are looked for that a policy wants and the API server did not serve.
const lookPeriod = 30 * time.Second

// lookPause is the shortest time between two looks.
const lookPause = time.Second

// settleTime is how long a reader of facts waits for kinds that are being looked for or listed.
const settleTime = 5 * time.Second

// NeedLeaderElection implements manager.LeaderElectionRunnable: only the leader decides about restarts.
func (r *Reader) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable: it looks for the kinds that policies want until the context ends.
func (r *Reader) Start(ctx context.Context) error {
	ctx = ctrl.LoggerInto(ctx, ctrl.LoggerFrom(ctx).WithName("gitops"))
	for {
		if err := r.look(ctx); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "look for GitOps kinds; will be tried again")
		}
		if !wait(ctx, time.After(lookPause), nil) || !wait(ctx, time.After(lookPeriod), r.nudges) {
			return nil
		}
	}
}

// wait returns false when the context has ended.
func wait(ctx context.Context, timer <-chan time.Time, nudges <-chan struct{}) bool {
	select {
	case <-ctx.Done():
		return false
	case <-timer:
	case <-nudges:
	}
	return true
}

// nudge asks for a look now.
func (r *Reader) nudge() {
	select {
	case r.nudges <- struct{}{}:
	default: // One is due already.
	}
}

// look starts the watches of wanted kinds that are served and stops those of kinds that no longer are. The API server is
// asked only about kinds that are wanted and not watched, or that a watch has lost.
func (r *Reader) look(ctx context.Context) error {
	wanted, err := r.Wanted(ctx)
	if err != nil {
		return err
	}
	var faults []error
	turned, answers := false, answers{}
	for _, k := range kindsOf([]v1alpha1.GitOpsProvider{v1alpha1.ProviderAuto}) {
		w := r.watches.get(k.name)
		switch {
		case w == nil && !slices.Contains(wanted, k.provider) && !slices.Contains(wanted, v1alpha1.ProviderAuto):
			r.watches.forget(k.name)
		case w != nil && !w.lost() && (k.of == "" || r.watches.get(k.of) != nil):
			turned = w.recovered() || turned
		default:
			changed, err := r.adapt(ctx, k, answers)
			turned = turned || changed
			faults = append(faults, err)
		}
	}
	if turned {
		r.turned(ctx)
	}
	return errors.Join(faults...)
}

// adapt starts the watch of a kind that is served and stops that of one that is not, and tells whether either was
// news.
func (r *Reader) adapt(ctx context.Context, k *kind, answers answers) (changed bool, err error) {
	exists, err := r.served(k, answers)
	if err != nil {
		return false, err
	}
	present := r.watches.get(k.name)
	switch {
	case exists && present != nil:
		return false, nil
	case exists:
		started, err := r.newWatch(ctx, k)
		if err != nil {
			return false, err
		}
		r.watches.start(k.name, started)
		return true, nil
	case present != nil:
		present.stop()
		ctrl.LoggerFrom(ctx).Info("no longer served", "kind", k.name)
	}
	return r.watches.end(k.name), nil
}

// lost tells, once, whether the API server has said that it does not know the kind.
func (w *watch) lost() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	lost := w.suspect
	w.suspect = false
	return lost
}

// answers of the API server during one look: the resources it serves, by group and version.
type answers map[schema.GroupVersion]map[string]bool

// served asks the API server whether it serves a kind.
func (r *Reader) served(k *kind, answers answers) (bool, error) {
	if k.of != "" && r.watches.get(k.of) == nil {
		return false, nil
	}
	version := k.resource.GroupVersion()
	if version.Group == "" {
		return true, nil
	}
	resources, asked := answers[version]
	if !asked {
		list, err := r.discovery.ServerResourcesForGroupVersion(version.String())
		if err != nil && !apierrors.IsNotFound(err) {
			return false, fmt.Errorf("ask for the kinds of %s: %w", version, err)
		}
		resources = names(list)
		answers[version] = resources
	}
	return resources[k.resource.Resource], nil
}

func names(list *metav1.APIResourceList) map[string]bool {
	resources := map[string]bool{}
	if list != nil {
		for i := range list.APIResources {
			resources[list.APIResources[i].Name] = true
		}
	}
	return resources
}

// settle waits until the kinds of the providers are known to be there or not, and listed, but not for long.
func (r *Reader) settle(ctx context.Context, providers []v1alpha1.GitOpsProvider) {
	timer := time.NewTimer(settleTime)
	defer timer.Stop()
	for {
		undecided, news := r.watches.undecided(providers)
		if !undecided {
			return
		}
		r.nudge()
		select {
		case <-news:
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// turned announces that a kind has become readable, or no longer is.
func (r *Reader) turned(ctx context.Context) {
	r.watches.announce()
	r.Turned(ctx)
}

// namespaces are those that are watched; the empty one stands for all.
func (r *Reader) namespaces() []string {
	if len(r.options.Namespaces) == 0 {
		return []string{metav1.NamespaceAll}
	}
	list := slices.Concat(r.options.Namespaces, r.options.ArgoCDNamespaces)
	slices.Sort(list)
	return slices.Compact(list)
}
