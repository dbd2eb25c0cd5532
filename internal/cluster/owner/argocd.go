package owner

import (
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kick-dev/kick/internal/core/gitops"
)

// settingsName is the ConfigMap with the settings of an Argo CD.
const settingsName = "argocd-cm"

// Annotations on Applications (argoproj/argo-cd, common/common.go and pkg/apis/application/v1alpha1).
const (
	skipReconcileAnnotation = "argocd.argoproj.io/skip-reconcile"
	refreshAnnotation       = "argocd.argoproj.io/refresh"
)

// argoApplication are the fields of an Application that are read (argoproj/argo-cd,
// pkg/apis/application/v1alpha1/types.go).
type argoApplication struct {
	Spec struct {
		Project     string          `json:"project"`
		Destination argoDestination `json:"destination"`
		argoSources `json:",inline"`
		SyncPolicy  struct {
			Automated *struct {
				Enabled *bool `json:"enabled"`
			} `json:"automated"`
		} `json:"syncPolicy"`
	} `json:"spec"`
	Status struct {
		ControllerNamespace string `json:"controllerNamespace"`
		Conditions          []struct {
			Type string `json:"type"`
		} `json:"conditions"`
		OperationState *struct {
			Phase   string `json:"phase"`
			Message string `json:"message"`
		} `json:"operationState"`
		Sync struct {
			Status     string `json:"status"`
			ComparedTo struct {
				Destination argoDestination `json:"destination"`
				argoSources `json:",inline"`
			} `json:"comparedTo"`
		} `json:"sync"`
		Resources []argoResource `json:"resources"`
	} `json:"status"`
}

type argoDestination struct {
	Server    string `json:"server"`
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

// argoSources is the one source of an Application, or the many.
type argoSources struct {
	Source  *argoSource  `json:"source"`
	Sources []argoSource `json:"sources"`
}

type argoSource struct {
	RepoURL        string `json:"repoURL"`
	Path           string `json:"path"`
	Chart          string `json:"chart"`
	TargetRevision string `json:"targetRevision"`
}

type argoResource struct {
	Group     string `json:"group"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Status    string `json:"status"`
	Hook      bool   `json:"hook"`
}

func (s argoSources) facts() []gitops.Source {
	var sources []gitops.Source
	for _, source := range s.Sources {
		sources = append(sources, gitops.Source(source))
	}
	if len(sources) == 0 && s.Source != nil {
		sources = []gitops.Source{gitops.Source(*s.Source)}
	}
	return sources
}

func parseApplication(options Options, object *unstructured.Unstructured) any {
	var read argoApplication
	decode(object, &read)
	annotations := object.GetAnnotations()
	skip, _ := strconv.ParseBool(annotations[skipReconcileAnnotation])
	_, refresh := annotations[refreshAnnotation]
	automated := read.Spec.SyncPolicy.Automated
	a := &gitops.Application{
		Namespace: object.GetNamespace(), Name: object.GetName(),
		Deleting: object.GetDeletionTimestamp() != nil, SkipReconcile: skip, RefreshRequested: refresh,
		Project: read.Spec.Project, Destination: gitops.Destination(read.Spec.Destination), Sources: read.Spec.facts(),
		Hydrated:            present(object, "spec", "sourceHydrator"),
		AutoSync:            automated != nil && (automated.Enabled == nil || *automated.Enabled),
		ControllerNamespace: options.plane(read.Status.ControllerNamespace, object.GetNamespace()),
		OperationRequested:  present(object, "operation"),
		Sync: gitops.Sync{
			Status:              read.Status.Sync.Status,
			ComparedSources:     read.Status.Sync.ComparedTo.facts(),
			ComparedDestination: gitops.Destination(read.Status.Sync.ComparedTo.Destination),
		},
	}
	if state := read.Status.OperationState; state != nil {
		a.Operation = &gitops.Operation{Phase: state.Phase, Message: state.Message}
	}
	for _, condition := range read.Status.Conditions {
		a.ConditionTypes = append(a.ConditionTypes, condition.Type)
	}
	for _, resource := range read.Status.Resources {
		if resource.Status == "OutOfSync" {
			a.Differing++
		}
		id, isWorkload := gitops.IDOf(resource.Group, resource.Kind, resource.Namespace, resource.Name)
		if isWorkload && !resource.Hook && resource.Status != "" {
			a.Workloads = append(a.Workloads, gitops.ListedWorkload{ID: id, Status: resource.Status})
		}
	}
	return a
}

// present tells whether a field has a value.
func present(object *unstructured.Unstructured, path ...string) bool {
	value, found, err := unstructured.NestedFieldNoCopy(object.Object, path...)
	return err == nil && found && value != nil
}

// plane is the namespace of the control plane of an Application. An Application says it itself from its first comparison
// on; before that it can only be guessed.
func (o Options) plane(said, application string) string {
	switch {
	case said != "":
		return said
	case slices.Contains(o.ArgoCDNamespaces, application) || len(o.ArgoCDNamespaces) != 1:
		return application
	default:
		return o.ArgoCDNamespaces[0]
	}
}

// argoProject are the fields of an AppProject that are read.
type argoProject struct {
	Spec struct {
		SourceNamespaces []string     `json:"sourceNamespaces"`
		SyncWindows      []argoWindow `json:"syncWindows"`
	} `json:"spec"`
}

type argoWindow struct {
	Kind         string   `json:"kind"`
	Schedule     string   `json:"schedule"`
	Duration     string   `json:"duration"`
	TimeZone     string   `json:"timeZone"`
	Applications []string `json:"applications"`
	Namespaces   []string `json:"namespaces"`
	Clusters     []string `json:"clusters"`
	AndOperator  bool     `json:"andOperator"`
	ManualSync   bool     `json:"manualSync"`
}

func parseProject(_ Options, object *unstructured.Unstructured) any {
	var read argoProject
	decode(object, &read)
	p := &gitops.Project{Name: object.GetName(), Labels: object.GetLabels(), SourceNamespaces: read.Spec.SourceNamespaces}
	for _, w := range read.Spec.SyncWindows {
		p.Windows = append(p.Windows, gitops.SyncWindow(w))
	}
	return p
}

// globalProject is an entry of the setting globalProjects.
type globalProject struct {
	LabelSelector metav1.LabelSelector `json:"labelSelector"`
	ProjectName   string               `json:"projectName"`
}

func parseSettings(_ Options, object *unstructured.Unstructured) any {
	data, _, _ := unstructured.NestedStringMap(object.Object, "data")
	plane := &gitops.Plane{InstallationID: data["installationID"]}
	var read []globalProject
	if err := yaml.Unmarshal([]byte(data["globalProjects"]), &read); err != nil {
		plane.GlobalsFault = "it is no list of projects with label selectors"
		return plane
	}
	for i, global := range read {
		selector, err := metav1.LabelSelectorAsSelector(&global.LabelSelector)
		if err != nil {
			plane.GlobalsFault = fmt.Sprintf("the label selector of entry %d is invalid", i)
			return plane
		}
		plane.Globals = append(plane.Globals, gitops.GlobalProject{Selector: selector, Project: global.ProjectName})
	}
	return plane
}

// argoCD gathers what Argo CD says about a workload.
func (r *Reader) argoCD(w *gitops.Workload) gitops.ArgoCD {
	facts := gitops.ArgoCD{
		Availability:      r.watches.availability(kinds[applicationKind].provider),
		LocalDestinations: r.options.LocalDestinations,
		Planes:            map[string]gitops.Plane{},
	}
	if facts.Presence != gitops.Readable {
		return facts
	}
	known := map[string]bool{}
	for _, e := range append(r.watches.indexed(applicationKind, workloadIndex, idKey(w.ID())), r.tracked(w)...) {
		if a, ok := e.facts.(*gitops.Application); ok && !known[a.String()] {
			known[a.String()] = true
			facts.Applications = append(facts.Applications, *a)
			r.addPlane(facts.Planes, a)
		}
	}
	return facts
}

// tracked returns the Applications that the tracking annotation of a workload names.
func (r *Reader) tracked(w *gitops.Workload) []*entry {
	id, ok := gitops.ParseTrackingID(w.Annotations[gitops.TrackingAnnotation])
	if !ok {
		return nil
	}
	if id.AppNamespace != "" {
		return r.watches.named(applicationKind, id.AppNamespace, id.App)
	}
	return slices.DeleteFunc(r.watches.indexed(applicationKind, nameIndex, id.App), func(e *entry) bool {
		a, ok := e.facts.(*gitops.Application)
		return !ok || a.Namespace != a.ControllerNamespace
	})
}

// addPlane adds the control plane of an Application with the projects that count for it.
func (r *Reader) addPlane(planes map[string]gitops.Plane, a *gitops.Application) {
	namespace := a.ControllerNamespace
	plane, known := planes[namespace]
	if !known {
		for _, e := range r.watches.named(settingsKind, namespace, settingsName) {
			if settings, ok := e.facts.(*gitops.Plane); ok {
				plane = *settings
			}
		}
		plane.Projects = map[string]gitops.Project{}
	}
	names := []string{a.ProjectName()}
	for _, global := range plane.Globals {
		names = append(names, global.Project)
	}
	for _, name := range names {
		for _, e := range r.watches.named(projectKind, namespace, name) {
			if project, ok := e.facts.(*gitops.Project); ok {
				plane.Projects[name] = *project
			}
		}
	}
	planes[namespace] = plane
}
