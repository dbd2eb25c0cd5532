package notify

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kick-dev/kick/api/v1alpha1"
)

var opened = time.Date(2026, 8, 6, 12, 0, 0, 0, time.UTC)

// request is one in a phase, whose condition Ready last changed when it opened, and which ended a minute later.
func request(phase v1alpha1.Phase, reason string) *v1alpha1.KickRequest {
	ended := metav1.NewMicroTime(opened.Add(time.Minute + time.Microsecond))
	r := &v1alpha1.KickRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "deployment-web", UID: "u1"},
		Spec:       v1alpha1.KickRequestSpec{TargetRef: v1alpha1.TargetRef{Kind: v1alpha1.Deployment, Name: "web"}},
		Status: v1alpha1.KickRequestStatus{
			Phase: phase,
			Conditions: []metav1.Condition{{
				Type: v1alpha1.ConditionReady, Reason: reason, Message: "because", LastTransitionTime: metav1.NewTime(opened),
			}},
			Causes: []v1alpha1.SourceChange{{Kind: v1alpha1.Secret, Name: "db", ChangedAt: metav1.NewMicroTime(opened)}},
		},
	}
	if phase.Terminal() {
		r.Status.CompletedAt = &ended
	}
	return r
}

func TestOnlySuccessAndFailureAreEnds(t *testing.T) {
	for phase, want := range map[v1alpha1.Phase]v1alpha1.NotificationEvent{
		v1alpha1.PhaseSucceeded:        v1alpha1.NotifySucceeded,
		v1alpha1.PhaseFailed:           v1alpha1.NotifyFailed,
		v1alpha1.PhaseNoLongerRequired: "",
		v1alpha1.PhaseExecuting:        "",
		"":                             "",
	} {
		var got v1alpha1.NotificationEvent
		if end := End(request(phase, "R")); end != nil {
			got = end.Type
		}
		if got != want {
			t.Errorf("phase %q tells %q, want %q", phase, got, want)
		}
	}
}

func TestAnEventIsTheSameHoweverOftenItIsDerived(t *testing.T) {
	first, again := End(request(v1alpha1.PhaseSucceeded, "R")), End(request(v1alpha1.PhaseSucceeded, "R"))
	if diff := cmp.Diff(first, again); diff != "" {
		t.Error(diff)
	}
	if want := "u1-Succeeded-1786017660000001"; first.ID != want {
		t.Errorf("id %s, want %s", first.ID, want)
	}
	later := request(v1alpha1.PhaseSucceeded, "R")
	at := metav1.NewMicroTime(later.Status.CompletedAt.Add(time.Microsecond))
	later.Status.CompletedAt = &at
	if End(later).ID == first.ID {
		t.Error("two ends have one id")
	}
	if End(request(v1alpha1.PhaseFailed, "R")).ID == first.ID {
		t.Error("a failure has the id of a success")
	}
}

func TestARequestWaitsTooLongFromTheThresholdOn(t *testing.T) {
	waiting := request(v1alpha1.PhaseWaitingForGate, v1alpha1.ReasonOutsideSchedule)
	for after, want := range map[time.Duration]bool{0: false, time.Hour - 1: false, time.Hour: true, 50 * time.Hour: true} {
		event, dueAt := Waiting(waiting, time.Hour, opened.Add(after))
		if got := event != nil; got != want {
			t.Errorf("after %s: %v, want %v", after, got, want)
		}
		if event == nil && !dueAt.Equal(opened.Add(time.Hour)) {
			t.Errorf("after %s: due at %s", after, dueAt)
		}
		if event != nil && (!event.Time.Time.Equal(opened.Add(time.Hour)) || event.Reason != v1alpha1.ReasonOutsideSchedule) {
			t.Errorf("after %s: %+v", after, event)
		}
	}
	if event, dueAt := Waiting(request(v1alpha1.PhaseSucceeded, "R"), time.Hour, opened.Add(2*time.Hour)); event != nil || !dueAt.IsZero() {
		t.Errorf("a request that has ended waits: %+v", event)
	}
}

func TestWhatWasToldIsNotToldAgain(t *testing.T) {
	end, failure := *End(request(v1alpha1.PhaseSucceeded, "R")), *End(request(v1alpha1.PhaseFailed, "R"))
	record, news := Record{}.Defer(end)
	if !news || len(record.Pending) != 1 || !record.Untold(end) {
		t.Fatalf("%v %+v", news, record)
	}
	if _, news := record.Defer(end); news {
		t.Error("what is deferred already is news")
	}
	record, _ = record.Defer(failure)
	record = record.Settle(end)
	if record.Untold(end) || !record.Untold(failure) || len(record.Pending) != 1 || record.Pending[0].ID != failure.ID {
		t.Errorf("%+v", record)
	}
	text, err := record.Settle(failure).Text()
	if err != nil {
		t.Fatal(err)
	}
	stored := request(v1alpha1.PhaseSucceeded, "R")
	stored.Annotations = map[string]string{"notification.kick.dev/ops": text}
	read := RecordOf(stored, "ops")
	if read.Untold(end) || read.Untold(failure) || len(read.Pending) != 0 {
		t.Errorf("%+v from %s", read, text)
	}
	if other := RecordOf(stored, "others"); !other.Untold(end) {
		t.Error("what one notification has told, another has not")
	}
}

func TestADeferredEventIsReadBackAsItWas(t *testing.T) {
	end := *End(request(v1alpha1.PhaseFailed, v1alpha1.ReasonRolloutFailed))
	record, _ := Record{}.Defer(end)
	text, err := record.Text()
	if err != nil {
		t.Fatal(err)
	}
	stored := request(v1alpha1.PhasePending, "R")
	stored.Annotations = map[string]string{"notification.kick.dev/ops": text}
	if diff := cmp.Diff([]Event{end}, RecordOf(stored, "ops").Pending); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestARecordThatCannotBeReadCountsAsEmpty(t *testing.T) {
	stored := request(v1alpha1.PhaseSucceeded, "R")
	stored.Annotations = map[string]string{"notification.kick.dev/ops": `{"told":[`}
	if record := RecordOf(stored, "ops"); !record.Untold(*End(stored)) {
		t.Errorf("%+v", record)
	}
}

func TestARequestKeepsItsNewestEventsPending(t *testing.T) {
	record := Record{}
	for i := range 3 * maxPending {
		event := *End(request(v1alpha1.PhaseSucceeded, "R"))
		event.ID, event.Time = strings.Repeat("x", i+1), metav1.NewMicroTime(opened.Add(time.Duration(i)*time.Minute))
		record, _ = record.Defer(event)
	}
	if len(record.Pending) != maxPending || len(record.Pending[maxPending-1].ID) != 3*maxPending {
		t.Errorf("%+v", record.Pending)
	}
}

func TestEventsAreToldInTheirOrderAndOnce(t *testing.T) {
	early, late := Event{ID: "b", Time: metav1.NewMicroTime(opened)}, Event{ID: "a", Time: metav1.NewMicroTime(opened.Add(1000))}
	if diff := cmp.Diff([]Event{early, late}, InOrder([]Event{late, early, late})); diff != "" {
		t.Error(diff)
	}
}

func TestPausesGrowUpToALimit(t *testing.T) {
	for failures, want := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 5: 16 * time.Second, 9: 256 * time.Second, 10: 5 * time.Minute, 1000: 5 * time.Minute} {
		if got := Pause(failures); got != want {
			t.Errorf("after %d failures %s, want %s", failures, got, want)
		}
	}
}
