package owner

import (
	"context"
	"slices"

	"github.com/kick-dev/kick/internal/cluster/workload"
	"github.com/kick-dev/kick/internal/core/gitops"
)

// changed tells which workloads an event concerns: those that the object lists or listed, and for what several
// Applications share those of all of them.
func (r *Reader) changed(ctx context.Context, old, next *entry) {
	var ids []gitops.ID
	for _, e := range []*entry{old, next} {
		if e == nil {
			continue
		}
		switch o := e.facts.(type) {
		case *gitops.Project:
			ids = append(ids, r.usersOf(e.Namespace, o)...)
		case *gitops.Plane:
			ids = append(ids, r.usersOf(e.Namespace, nil)...)
		case *gitops.FluxObject:
			if !o.HasInventory && o.Kind == gitops.HelmRelease {
				r.ChangedUnlisted(ctx)
			}
			ids = append(ids, o.Inventory...)
		default:
			ids = append(ids, listedBy(e)...)
		}
	}
	var keys []workload.Key
	distinct := map[gitops.ID]bool{}
	for _, id := range ids {
		if !distinct[id] {
			distinct[id] = true
			keys = append(keys, workload.Key{Namespace: id.Namespace, Kind: id.Kind, Name: id.Name})
		}
	}
	if len(keys) > 0 {
		r.Changed(ctx, keys)
	}
}

// usersOf returns the workloads of the Applications for which a project counts, or of all in the control plane if it is
// nil or one from which others inherit.
func (r *Reader) usersOf(plane string, project *gitops.Project) []gitops.ID {
	if project != nil && r.global(plane, project.Name) {
		project = nil
	}
	var ids []gitops.ID
	for _, e := range r.watches.indexed(applicationKind, planeIndex, plane) {
		if a, ok := e.facts.(*gitops.Application); ok && (project == nil || a.ProjectName() == project.Name) {
			ids = append(ids, listedBy(e)...)
		}
	}
	return ids
}

// global tells whether projects inherit from a project.
func (r *Reader) global(plane, project string) bool {
	for _, e := range r.watches.named(settingsKind, plane, settingsName) {
		if settings, ok := e.facts.(*gitops.Plane); ok {
			return slices.ContainsFunc(settings.Globals, func(g gitops.GlobalProject) bool { return g.Project == project })
		}
	}
	return false
}
