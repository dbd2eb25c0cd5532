package controllers

import (
	"encoding/json"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"github.com/kick-dev/kick/api/v1alpha1"
)

// read decodes a request, as a cache does, into strings of its own.
func read(t *testing.T) *v1alpha1.KickRequest {
	t.Helper()
	const text = `{
		"apiVersion": "kick.dev/v1alpha1", "kind": "KickRequest",
		"metadata": {
			"namespace": "shop", "name": "deployment-web", "uid": "u1", "resourceVersion": "7", "generation": 1,
			"creationTimestamp": "2026-08-06T12:00:00Z", "labels": {"tier": "front"}, "annotations": {"a": "b"},
			"ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "w1"}],
			"managedFields": [{"manager": "kick"}]
		},
		"spec": {
			"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "w1"},
			"manual": {"requestedAt": "2026-08-06T12:00:00.000000Z", "requestedBy": "ann", "reason": "a try"}
		},
		"status": {
			"observedGeneration": 1, "phase": "WaitingForGate", "latestObservedDependencyChange": "2026-08-06T12:00:00.000001Z",
			"causes": [{"kind": "Secret", "name": "db", "keys": ["password"], "changedAt": "2026-08-06T12:00:00.000001Z"}],
			"causesOmitted": 1,
			"owner": {"provider": "ArgoCD", "kind": "Application", "namespace": "argocd", "name": "shop", "project": "default"},
			"gate": {"reason": "OutsideSchedule", "message": "no window is open", "requeueAt": "2026-08-07T12:00:00Z"},
			"currentRollout": {
				"stamp": "2026-08-05T12:00:00Z", "startedAt": "2026-08-05T12:00:00.000000Z", "revision": "web-1",
				"covers": [{"kind": "Secret", "name": "db", "changedAt": "2026-08-05T12:00:00.000001Z"}]
			},
			"conditions": [{
				"type": "Ready", "status": "False", "reason": "OutsideSchedule", "message": "no window is open",
				"lastTransitionTime": "2026-08-06T12:00:00Z", "observedGeneration": 1
			}]
		}
	}`
	request := &v1alpha1.KickRequest{}
	if err := json.Unmarshal([]byte(text), request); err != nil {
		t.Fatal(err)
	}
	return request
}

func slim(t *testing.T) *v1alpha1.KickRequest {
	t.Helper()
	object, err := SlimRequest(read(t))
	if err != nil {
		t.Fatal(err)
	}
	return object.(*v1alpha1.KickRequest)
}

func TestASlimRequestSaysWhatItSaid(t *testing.T) {
	want := read(t)
	want.ManagedFields = nil
	if diff := cmp.Diff(want, slim(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSlimRequestsShareWhatTheySayAlike(t *testing.T) {
	first, second := slim(t), slim(t)
	for name, pair := range map[string][2]string{
		"namespace":        {first.Namespace, second.Namespace},
		"phase":            {string(first.Status.Phase), string(second.Status.Phase)},
		"reason":           {first.Status.Conditions[0].Reason, second.Status.Gate.Reason},
		"message":          {first.Status.Conditions[0].Message, second.Status.Gate.Message},
		"kind of a source": {string(first.Status.Causes[0].Kind), string(second.Status.CurrentRollout.Covers[0].Kind)},
		"name of a source": {first.Status.Causes[0].Name, first.Status.CurrentRollout.Covers[0].Name},
		"target":           {first.Spec.TargetRef.Name, first.OwnerReferences[0].Name},
		"UID of the target": {
			string(first.Spec.TargetRef.UID), string(first.OwnerReferences[0].UID),
		},
	} {
		if pair[0] != pair[1] || unsafe.StringData(pair[0]) != unsafe.StringData(pair[1]) {
			t.Errorf("%s: two copies, %q and %q", name, pair[0], pair[1])
		}
	}
}
