package workload

import (
	"context"
	"encoding/json"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kick-dev/kick/api/v1alpha1"
)

// Stamps returns the values of the restartedAt annotation that the workload's own revisions carry, whoever wrote them.
// What cannot be read of a revision is no value.
func (i *Inspection) Stamps(ctx context.Context) ([]string, error) {
	if i.workload.kind.replicaSets {
		return i.replicaSetStamps(ctx)
	}
	var list appsv1.ControllerRevisionList
	if err := i.list(ctx, &list); err != nil {
		return nil, err
	}
	var stamps []string
	for j := range list.Items {
		if metav1.IsControlledBy(&list.Items[j], i.workload.object) {
			stamps = appendStamp(stamps, recorded(list.Items[j].Data.Raw))
		}
	}
	return stamps, nil
}

func (i *Inspection) replicaSetStamps(ctx context.Context) ([]string, error) {
	if err := i.listReplicaSets(ctx); err != nil {
		return nil, err
	}
	var stamps []string
	for j := range i.replicaSets {
		if metav1.IsControlledBy(&i.replicaSets[j], i.workload.object) {
			stamps = appendStamp(stamps, i.replicaSets[j].Spec.Template.Annotations)
		}
	}
	return stamps, nil
}

// recorded reads the annotations of the Pod template out of the data of a ControllerRevision: the patch, in JSON, by which
// the controllers of StatefulSets and DaemonSets return to it.
func recorded(data []byte) map[string]string {
	var patch struct {
		Spec struct {
			Template struct {
				Metadata struct {
					Annotations map[string]string `json:"annotations"`
				} `json:"metadata"`
			} `json:"template"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(data, &patch); err != nil {
		return nil
	}
	return patch.Spec.Template.Metadata.Annotations
}

func appendStamp(stamps []string, annotations map[string]string) []string {
	if stamp, stamped := annotations[v1alpha1.RestartedAtAnnotation]; stamped {
		stamps = append(stamps, stamp)
	}
	return stamps
}
