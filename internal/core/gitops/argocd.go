package gitops

import (
	"regexp"
	"slices"
	"strings"

	"github.com/gobwas/glob"
	"k8s.io/apimachinery/pkg/labels"
)

// Keys by which Argo CD marks what it deploys (argoproj/argo-cd, common/common.go).
const (
	TrackingAnnotation     = "argocd.argoproj.io/tracking-id"
	InstallationAnnotation = "argocd.argoproj.io/installation-id"
)

// The destinations by which every Argo CD names the cluster it runs in
// (argoproj/argo-cd, pkg/apis/application/v1alpha1/application_defaults.go).
const (
	localServer = "https://kubernetes.default.svc"
	localName   = "in-cluster"
)

// defaultProject is the project of an Application that names none.
const defaultProject = "default"

// ArgoCD is what Argo CD says about one workload.
type ArgoCD struct {
	Availability
	// Applications that list the workload, or that its tracking annotation names.
	Applications []Application
	// Planes are the control planes that reconcile the Applications, by namespace.
	Planes map[string]Plane
	// LocalDestinations are further names and URLs under which this cluster is registered.
	LocalDestinations []string
}

// Plane is one Argo CD control plane.
type Plane struct {
	// InstallationID that its objects have to carry, empty where none is configured.
	InstallationID string
	// Globals are the projects from which others inherit.
	Globals []GlobalProject
	// GlobalsFault says why the global projects cannot be read, empty if they can.
	GlobalsFault string
	// Projects by name, as far as the Applications can use them.
	Projects map[string]Project
}

// GlobalProject is one entry of the setting globalProjects.
type GlobalProject struct {
	// Selector selects, by their labels, the projects that inherit.
	Selector labels.Selector
	// Project they inherit from.
	Project string
}

// Project is an AppProject.
type Project struct {
	Name   string
	Labels map[string]string
	// SourceNamespaces are the globs of the namespaces, beside the control plane's own, whose Applications may use it.
	SourceNamespaces []string
	Windows          []SyncWindow
}

// Application is an Argo CD Application.
type Application struct {
	Namespace string
	Name      string

	Deleting bool
	// SkipReconcile is true while the annotation skip-reconcile freezes the status.
	SkipReconcile bool
	// RefreshRequested is true until Argo CD has compared again, as the annotation refresh asks.
	RefreshRequested bool

	// Project it belongs to; empty stands for "default".
	Project     string
	Destination Destination
	Sources     []Source
	// Hydrated is true where a source hydrator stands between spec and sources.
	Hydrated bool
	// AutoSync is true where Argo CD syncs by itself.
	AutoSync bool

	// ControllerNamespace is where the control plane that reconciles it runs; empty before the first comparison.
	ControllerNamespace string
	// OperationRequested is true while an operation is requested or runs, until the patch that ends it.
	OperationRequested bool
	// Operation is the last operation, nil for none.
	Operation *Operation
	Sync      Sync
	// ConditionTypes are the types of its conditions, all of which are warnings or errors.
	ConditionTypes []string

	// Workloads it lists as its own.
	Workloads []ListedWorkload
	// Differing is how many of its objects are not in sync.
	Differing int
}

// Destination is where an Application deploys to.
type Destination struct{ Server, Name, Namespace string }

// Source is where an Application comes from, as far as a comparison depends on it.
type Source struct{ RepoURL, Path, Chart, TargetRevision string }

// Operation is the state of an operation.
type Operation struct {
	// Phase is Running, Terminating, Succeeded, Failed or Error.
	Phase   string
	Message string
}

// Sync is the result of the last comparison.
type Sync struct {
	// Status is Synced, OutOfSync or Unknown, and empty before the first comparison.
	Status string
	// ComparedSources and ComparedDestination are what was compared; with another spec the result is out of date.
	ComparedSources     []Source
	ComparedDestination Destination
}

// ListedWorkload is an entry of the inventory of an Application. Hooks, ignored objects and those whose tracking
// annotation is another's have no sync status and are not listed.
type ListedWorkload struct {
	ID
	// Status of this object alone.
	Status string
}

// ProjectName is the project it belongs to.
func (a *Application) ProjectName() string {
	if a.Project == "" {
		return defaultProject
	}
	return a.Project
}

func (a *Application) String() string { return "Application " + a.Namespace + "/" + a.Name }

// listed returns the entry of a workload in the inventory, nil if there is none.
func (a *Application) listed(id ID) *ListedWorkload {
	at := slices.IndexFunc(a.Workloads, func(w ListedWorkload) bool { return w.ID == id })
	if at < 0 {
		return nil
	}
	return &a.Workloads[at]
}

// local tells whether it deploys to the cluster it lives in.
func (a *Application) local(registered []string) bool {
	server, name := a.Destination.Server, a.Destination.Name
	return server == localServer || name == localName ||
		server != "" && slices.Contains(registered, server) || name != "" && slices.Contains(registered, name)
}

// disown says why an Application that may claim the workload does not own it, empty if it does.
func (c *ArgoCD) disown(a *Application, w Workload) string {
	switch {
	case a.listed(w.ID()) == nil:
		return a.String() + " does not list the workload among its resources"
	case !a.local(c.LocalDestinations):
		return a.String() + " deploys to another cluster"
	case !c.sameInstallation(a, w):
		return "the installation id of the workload is not that of the Argo CD of " + a.String()
	default:
		return ""
	}
}

// sameInstallation compares installation ids strictly, also where either has none. A workload that Argo CD has only
// labelled carries no id to compare.
func (c *ArgoCD) sameInstallation(a *Application, w Workload) bool {
	_, tracked := w.Annotations[TrackingAnnotation]
	id, marked := w.Annotations[InstallationAnnotation]
	return !tracked && !marked || id == c.Planes[a.ControllerNamespace].InstallationID
}

// permits tells whether Applications of a namespace may use the project (argoproj/argo-cd,
// docs/operator-manual/app-any-namespace.md).
func (p *Project) permits(namespace, plane string) bool {
	return namespace == plane || slices.ContainsFunc(p.SourceNamespaces, func(pattern string) bool {
		if len(pattern) > 1 && strings.HasPrefix(pattern, "/") && strings.HasSuffix(pattern, "/") {
			expression, err := regexp.Compile(pattern[1 : len(pattern)-1])
			return err == nil && expression.MatchString(namespace)
		}
		return matches(pattern, namespace)
	})
}

// matches tells whether a glob of Argo CD matches: without separators, so that * also stands for / and the dot. One that
// does not compile matches nothing.
func matches(pattern, text string) bool {
	compiled, err := glob.Compile(pattern)
	return err == nil && compiled.Match(text)
}

// TrackingID is the parsed tracking annotation of Argo CD.
type TrackingID struct {
	// AppNamespace is empty for an Application in the namespace of its control plane.
	AppNamespace, App           string
	Group, Kind                 string
	ObjectNamespace, ObjectName string
}

// ParseTrackingID parses the value of the tracking annotation: <app>:<group>/<kind>:<namespace>/<name>, where the app
// of another namespace than the control plane's is <namespace>_<app> (argoproj/argo-cd, util/argo/resource_tracking.go).
func ParseTrackingID(value string) (TrackingID, bool) {
	parts := strings.SplitN(value, ":", 3)
	if len(parts) != 3 {
		return TrackingID{}, false
	}
	kind, object := strings.Split(parts[1], "/"), strings.Split(parts[2], "/")
	if len(kind) != 2 || len(object) != 2 {
		return TrackingID{}, false
	}
	id := TrackingID{
		App: parts[0], Group: kind[0], Kind: kind[1], ObjectNamespace: object[0], ObjectName: object[1],
	}
	if namespace, name, found := strings.Cut(parts[0], "_"); found {
		id.AppNamespace, id.App = namespace, name
	}
	return id, true
}

// of tells whether the id is the workload's own, and not one that was copied to it.
func (t TrackingID) of(w Workload) bool {
	return t.Group == WorkloadsGroup && t.Kind == string(w.Kind) && t.ObjectNamespace == w.Namespace && t.ObjectName == w.Name
}
