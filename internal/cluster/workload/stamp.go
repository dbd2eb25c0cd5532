package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/core/rollout"
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
// judged. A change outside the Pod template, such as scaling, is no reason to judge again; ErrMoved means any other. A
// workload from the cache is stamped at the version judged, and otherwise only if nothing that a decision looks at differs.
func (c *Client) Stamp(ctx context.Context, judged *Workload, value string) error {
	current := judged
	if judged.cached {
		err := c.patch(ctx, judged, client.RawPatch(types.MergePatchType, stampAtVersion(judged, value)), value)
		if !apierrors.IsConflict(err) {
			return err
		}
		if current, err = c.Read(ctx, judged.Key); err != nil {
			return err
		}
		if !sameForDecision(judged, current) {
			return ErrMoved
		}
	}
	return c.stampLive(ctx, current, value)
}

// stampLive stamps a workload that was read from the API server.
func (c *Client) stampLive(ctx context.Context, judged *Workload, value string) error {
	current := judged
	for range stampTries {
		patch, err := stampPatch(current, value)
		if err != nil {
			return err
		}
		refusal := c.patch(ctx, judged, client.RawPatch(types.JSONPatchType, patch), value)
		if !apierrors.IsInvalid(refusal) {
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

// patch writes a stamp and looks whether it was stored.
func (c *Client) patch(ctx context.Context, judged *Workload, patch client.Patch, value string) error {
	object := judged.kind.object()
	object.SetNamespace(judged.Key.Namespace)
	object.SetName(judged.Key.Name)
	if err := c.Writer.Patch(ctx, object, patch, client.FieldOwner(v1alpha1.FieldManager)); err != nil {
		return fmt.Errorf("stamp workload %s: %w", judged.Key, err)
	}
	return checkStored(object, value)
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

// sameForDecision tells whether a workload is still as the cache had it, in all that a decision about a restart looks at.
func sameForDecision(judged, current *Workload) bool {
	return current != nil && judged.UID() == current.UID() && judged.Generation() == current.Generation() &&
		maps.Equal(judged.Labels(), current.Labels()) && progress(judged) == progress(current)
}

// progress is the state of a rollout without what only describes it.
func progress(w *Workload) rollout.State {
	state := w.Rollout()
	state.RevisedBy, state.Message = time.Time{}, ""
	return state
}

// stampAtVersion is a merge patch (RFC 7386) that the API server applies to the version judged alone. What else the template
// has of annotations is not known of a workload from the cache.
func stampAtVersion(judged *Workload, value string) []byte {
	return fmt.Appendf(nil, `{"metadata":{"uid":%q,"resourceVersion":%q},"spec":{"template":{"metadata":{"annotations":{%q:%q}}}}}`,
		judged.UID(), judged.Version(), v1alpha1.RestartedAtAnnotation, value)
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
