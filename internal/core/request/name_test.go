package request_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/request"
)

func TestNameIsTheKindAndTheName(t *testing.T) {
	if got := request.Name(v1alpha1.StatefulSet, "web"); got != "statefulset-web" {
		t.Errorf("name %q", got)
	}
}

func TestLongNamesAreCutAndStayUniqueAndValid(t *testing.T) {
	long := strings.Repeat("a", 240)
	seen := map[string]string{}
	for _, workload := range []string{
		long + strings.Repeat("b", 13), long + strings.Repeat("b", 12) + "c", strings.Repeat("a.", 126) + "a",
	} {
		for _, kind := range []v1alpha1.WorkloadKind{v1alpha1.Deployment, v1alpha1.StatefulSet, v1alpha1.DaemonSet} {
			name := request.Name(kind, workload)
			if faults := validation.IsDNS1123Subdomain(name); len(faults) > 0 {
				t.Errorf("%s %s: %q is no valid name: %v", kind, workload, name, faults)
			}
			if other, taken := seen[name]; taken {
				t.Errorf("%s %s and %s have the same request", kind, workload, other)
			}
			seen[name] = string(kind) + " " + workload
		}
	}
}
