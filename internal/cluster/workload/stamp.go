package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
)

// ErrMoved says that the workload is no longer the one that was judged, so nothing was written.
var ErrMoved = errors.New("the workload changed since it was judged")

// ErrDropped says that the API server accepted the stamp and stored the workload without it.
var ErrDropped = errors.New("the API server stored the workload without the annotation " + v1alpha1.RestartedAtAnnotation +
	"; look for a mutating webhook or policy that removes it")

// stampTries bounds how often a stamp is tried against a workload whose spec is being changed elsewhere (scaled, say).
const stampTries = 10

// operation is one step of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// Stamp writes value to the restartedAt annotation of the Pod template: A(w), §8 of the model, the only write to a
// workload. The patch holds that one annotation and the preconditions that make it void on any object but the one
// judged. A change outside the Pod template, such as scaling, is no reason to judge again; ErrMoved means any other.
func (c *Client) Stamp(ctx context.Context, judged *Workload, value string) error {
	current := judged
	for range stampTries {
		patch, err := stampPatch(current, value)
		if err != nil {
			return err
		}
		object := current.kind.object()
		object.SetNamespace(judged.Key.Namespace)
		object.SetName(judged.Key.Name)
		err = c.Writer.Patch(ctx, object, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(v1alpha1.FieldManager))
		if err == nil {
			return checkStored(object, value)
		}
		refusal := fmt.Errorf("stamp workload %s: %w", judged.Key, err)
		if !apierrors.IsInvalid(err) {
			return refusal
		}
		tried := current.Generation()
		if current, err = c.Read(ctx, judged.Key); err != nil {
			return err
		}
		if !sameForStamp(judged, current) {
			return ErrMoved
		}
		if current.Generation() == tried {
			return refusal // The preconditions hold: it is an admission policy that finds the change invalid.
		}
	}
	return ErrMoved
}

func checkStored(object client.Object, value string) error {
	if stored, ok := Of(object); ok && stored.Stamp() == value {
		return nil
	}
	return ErrDropped
}

// sameForStamp tells whether all that the judgement looked at of the spec is unchanged.
func sameForStamp(judged, current *Workload) bool {
	return current != nil && judged.UID() == current.UID() &&
		judged.Rollout().Paused == current.Rollout().Paused &&
		equality.Semantic.DeepEqual(judged.template(), current.template())
}

func stampPatch(workload *Workload, value string) ([]byte, error) {
	const annotations = "/spec/template/metadata/annotations"
	path := annotations + "/" + strings.ReplaceAll(v1alpha1.RestartedAtAnnotation, "/", "~1")
	patch := []operation{
		{Op: "test", Path: "/metadata/uid", Value: workload.UID()},
		{Op: "test", Path: "/metadata/generation", Value: workload.Generation()},
	}
	present := workload.template().Annotations
	if len(present) == 0 {
		patch = append(patch, operation{Op: "add", Path: annotations, Value: map[string]string{}})
	}
	if old, stamped := present[v1alpha1.RestartedAtAnnotation]; stamped {
		patch = append(patch, operation{Op: "test", Path: path, Value: old})
	}
	patch = append(patch, operation{Op: "add", Path: path, Value: value})
	encoded, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encode the stamp of workload %s: %w", workload.Key, err)
	}
	return encoded, nil
}
