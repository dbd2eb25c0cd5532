package kubectl

import (
	"fmt"
	"strings"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/workload"
)

// kindNames are the names by which kubectl knows the kinds of workloads.
var kindNames = map[string]v1alpha1.WorkloadKind{
	"deployment": v1alpha1.Deployment, "deployments": v1alpha1.Deployment, "deploy": v1alpha1.Deployment,
	"statefulset": v1alpha1.StatefulSet, "statefulsets": v1alpha1.StatefulSet, "sts": v1alpha1.StatefulSet,
	"daemonset": v1alpha1.DaemonSet, "daemonsets": v1alpha1.DaemonSet, "ds": v1alpha1.DaemonSet,
}

// parseWorkload reads KIND/NAME or KIND NAME.
func parseWorkload(namespace string, arguments []string) (workload.Key, error) {
	text := strings.Join(arguments, "/")
	kind, name, found := strings.Cut(text, "/")
	if !found || name == "" || strings.Contains(name, "/") {
		return workload.Key{}, fmt.Errorf("%q names no workload: write KIND/NAME, such as deployment/web", strings.Join(arguments, " "))
	}
	plain, _, _ := strings.Cut(strings.ToLower(kind), ".")
	known, ok := kindNames[plain]
	if !ok {
		return workload.Key{}, fmt.Errorf("%q is no kind that KICK restarts: write deployment, statefulset or daemonset", kind)
	}
	return workload.Key{Namespace: namespace, Kind: known, Name: name}, nil
}

// shown is the name of a workload as the commands show it, which they also take.
func shown(kind v1alpha1.WorkloadKind, name string) string {
	return strings.ToLower(string(kind)) + "/" + name
}
