package timeline_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/kubectl/timeline"
	"github.com/kick-dev/kick/internal/testing/golden"
)

var noon = time.Date(2026, 8, 6, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

func micro(seconds int) metav1.MicroTime { return metav1.NewMicroTime(at(seconds)) }

func requestOf(name string, status v1alpha1.KickRequestStatus, reason, message string) v1alpha1.KickRequest {
	status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionReady, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(at(-300)),
	}}
	return v1alpha1.KickRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "deployment-" + name, UID: types.UID("request-" + name)},
		Spec:       v1alpha1.KickRequestSpec{TargetRef: v1alpha1.TargetRef{Kind: v1alpha1.Deployment, Name: name, UID: types.UID(name)}},
		Status:     status,
	}
}

func event(kind, name, uid, reason, note string, seconds int) eventsv1.Event {
	return eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}, EventTime: micro(seconds), Reason: reason, Note: note,
		Regarding: corev1.ObjectReference{Kind: kind, Name: name, UID: types.UID(uid)},
	}
}

func secretAt(seconds int) []v1alpha1.SourceChange {
	return []v1alpha1.SourceChange{{Kind: v1alpha1.Secret, Name: "db", ChangedAt: micro(seconds)}}
}

// day is an afternoon in a shop.
func day() timeline.Timeline {
	completed := micro(-3540)
	failed := micro(-2000)
	requests := []v1alpha1.KickRequest{
		requestOf("web", v1alpha1.KickRequestStatus{
			Phase: v1alpha1.PhaseSucceeded, Causes: secretAt(-3700), CompletedAt: &completed,
			CurrentRollout: &v1alpha1.Rollout{Stamp: at(-3600).Format(time.RFC3339Nano), StartedAt: micro(-3600), Covers: secretAt(-3700)},
		}, v1alpha1.ReasonSucceeded, "the restart is complete"),
		requestOf("orders", v1alpha1.KickRequestStatus{
			Phase: v1alpha1.PhaseWaitingForGate, Causes: secretAt(-310),
			Gate: &v1alpha1.Gate{Reason: v1alpha1.ReasonOutsideSchedule, RequeueAt: "2026-08-06T14:30:00+02:00"},
		}, v1alpha1.ReasonOutsideSchedule, "outside the schedule of policy nights"),
		requestOf("mail", v1alpha1.KickRequestStatus{
			Phase: v1alpha1.PhaseFailed, Causes: secretAt(-2900), CompletedAt: &failed,
			CurrentRollout: &v1alpha1.Rollout{Stamp: at(-2899).Format(time.RFC3339Nano), StartedAt: micro(-2899), Covers: secretAt(-2900)},
		}, v1alpha1.ReasonRolloutFailed, "the Deployment exceeded its progress deadline"),
		requestOf("old", v1alpha1.KickRequestStatus{Phase: v1alpha1.PhaseSucceeded, Causes: secretAt(-900000)}, v1alpha1.ReasonSucceeded, ""),
	}
	events := []eventsv1.Event{
		event("Deployment", "web", "web", "KickSucceeded", "the restart is complete", -3540),
		event("KickRequest", "deployment-web", "request-web", "KickWaiting", "QuietPeriod: collecting changes", -3700),
		event("Deployment", "web", "web", "Kicked", "restarting because of Secret db", -3600),
		event("Deployment", "web", "another", "Kicked", "of an earlier workload of that name", -3000),
		event("Pod", "web", "web", "Started", "not KICK's", -3000),
	}
	return timeline.Of(requests, events, at(-4*3600), noon)
}

// crowded is a night on which much happened, to workloads with long names.
func crowded() timeline.Timeline {
	var requests []v1alpha1.KickRequest
	var events []eventsv1.Event
	for i := range 14 {
		name := fmt.Sprintf("payments-reconciliation-worker-%d", i)
		if i%5 == 0 {
			name += "-of-a-team-that-likes-long-names-and-has-many-of-them"
		}
		stamped := -40000 + 2500*i
		completed := micro(stamped + 90 + 40*i)
		requests = append(requests, requestOf(name, v1alpha1.KickRequestStatus{
			Phase: v1alpha1.PhaseSucceeded, Causes: secretAt(stamped - 600), CompletedAt: &completed,
			CurrentRollout: &v1alpha1.Rollout{
				Stamp: at(stamped).Format(time.RFC3339Nano), StartedAt: micro(stamped), Covers: secretAt(stamped - 600),
			},
		}, v1alpha1.ReasonSucceeded, "the restart is complete"))
		events = append(events, event("KickRequest", "deployment-"+name, "request-"+name, "KickWaiting", "QuietPeriod: collecting changes", stamped-600))
	}
	return timeline.Of(requests, events, at(-24*3600), noon)
}

// An event that got lost does not make what it would have ended go on for ever.
func TestWhatARequestHasEndedDoesNotGoOn(t *testing.T) {
	for _, lane := range crowded().Lanes {
		for _, item := range lane.Items {
			if item.Going || item.Kind == timeline.Wait && item.To.Sub(item.From) != 10*time.Minute {
				t.Errorf("%s: %+v", lane.Workload, item)
			}
		}
	}
}

func TestTimelines(t *testing.T) {
	for name, line := range map[string]timeline.Timeline{
		"day": day(), "nothing": timeline.Of(nil, nil, at(-3600), noon), "crowded": crowded(),
	} {
		for suffix, write := range map[string]func(io.Writer) error{".txt": line.WriteText, ".svg": line.WriteSVG, ".html": line.WriteHTML} {
			t.Run(name+suffix, func(t *testing.T) {
				var out strings.Builder
				if err := write(&out); err != nil {
					t.Fatal(err)
				}
				golden.Compare(t, name+suffix, out.String())
				if suffix == ".svg" {
					wellFormed(t, out.String())
				}
				for _, outside := range []string{"src=", "href=", "url(", "@import", "<script"} {
					if strings.Contains(out.String(), outside) {
						t.Errorf("refers to something outside, or runs something: %s", outside)
					}
				}
			})
		}
	}
}

func wellFormed(t *testing.T, text string) {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("no XML: %v", err)
		}
	}
}

// What an event and a request tell both is shown once.
func TestNothingIsShownTwice(t *testing.T) {
	for _, lane := range day().Lanes {
		kinds := map[timeline.Kind]int{}
		for _, item := range lane.Items {
			kinds[item.Kind]++
		}
		for kind, n := range kinds {
			if n > 1 {
				t.Errorf("%s: %d times %s in %+v", lane.Workload, n, kind, lane.Items)
			}
		}
	}
}
