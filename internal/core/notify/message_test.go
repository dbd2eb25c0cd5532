package notify

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kick-dev/kick/api/v1alpha1"
)

func TestMessagesByFormat(t *testing.T) {
	event := *End(request(v1alpha1.PhaseFailed, v1alpha1.ReasonRolloutFailed))
	const id = "u1-Failed-1786017660000001"
	data := map[string]any{
		"id": id, "type": "Failed", "time": "2026-08-06T12:01:00.000001Z", "namespace": "shop", "request": "deployment-web",
		"workload": map[string]any{"kind": "Deployment", "name": "web"}, "phase": "Failed", "reason": "RolloutFailed", "message": "because",
		"causes": []any{map[string]any{"kind": "Secret", "name": "db", "changedAt": "2026-08-06T12:00:00.000000Z"}},
	}
	for format, want := range map[v1alpha1.NotificationFormat]struct {
		contentType string
		body        map[string]any
	}{
		v1alpha1.FormatJSON: {"application/json", data},
		"":                  {"application/json", data},
		v1alpha1.FormatCloudEvents: {"application/cloudevents+json", map[string]any{
			"specversion": "1.0", "id": id, "source": "/apis/kick.dev/v1alpha1/namespaces/shop/kickrequests/deployment-web",
			"type": "dev.kick.request.failed", "subject": "Deployment/web", "time": "2026-08-06T12:01:00.000001Z",
			"datacontenttype": "application/json", "data": data,
		}},
		v1alpha1.FormatSlack: {"application/json", map[string]any{
			"text": "Deployment web in shop failed to restart (RolloutFailed): because\nBecause of Secret db",
		}},
	} {
		message, err := Compose(event, format)
		if err != nil {
			t.Fatal(err)
		}
		var body map[string]any
		if err := json.Unmarshal(message.Body, &body); err != nil {
			t.Fatal(err)
		}
		if message.ID != id || message.ContentType != want.contentType {
			t.Errorf("%q: id %s, content type %s", format, message.ID, message.ContentType)
		}
		if diff := cmp.Diff(want.body, body); diff != "" {
			t.Errorf("%q (-want +got):\n%s", format, diff)
		}
	}
}

func TestSentences(t *testing.T) {
	for want, edit := range map[string]func(*Event){
		"Deployment web in shop was restarted\nBecause of Secret db": func(e *Event) { e.Type = v1alpha1.NotifySucceeded },
		"Deployment web in shop waits to be restarted (R): because\nBecause of Secret db": func(e *Event) {
			e.Type, e.Reason = v1alpha1.NotifyWaitingTooLong, "R"
		},
		"Deployment web in shop failed to restart (R): &lt;!channel&gt; &amp; more\nBecause of Secret db": func(e *Event) {
			e.Reason, e.Message = "R", "<!channel> & more"
		},
		"Deployment web in shop was restarted\nBecause of a request by alice": func(e *Event) {
			e.Type, e.Causes = v1alpha1.NotifySucceeded, []v1alpha1.SourceChange{{Kind: v1alpha1.Manual, Name: "alice"}}
		},
		"Deployment web in shop was restarted\nBecause of ConfigMap a, ConfigMap a, ConfigMap a, ConfigMap a and 5 more": func(e *Event) {
			e.Type, e.CausesOmitted = v1alpha1.NotifySucceeded, 3
			e.Causes = nil
			for range 6 {
				e.Causes = append(e.Causes, v1alpha1.SourceChange{Kind: v1alpha1.ConfigMap, Name: "a"})
			}
		},
		"Deployment web in shop was restarted": func(e *Event) { e.Type, e.Causes = v1alpha1.NotifySucceeded, nil },
	} {
		event := *End(request(v1alpha1.PhaseFailed, "R"))
		edit(&event)
		if got := sentence(event); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

func TestStatusesOfReceivers(t *testing.T) {
	for status, want := range map[int]struct{ delivered, refused bool }{
		200: {true, false}, 202: {true, false}, 204: {true, false},
		301: {}, 302: {}, 307: {}, 308: {},
		400: {refused: true}, 413: {refused: true}, 415: {refused: true}, 422: {refused: true},
		401: {}, 403: {}, 404: {}, 408: {}, 429: {}, 500: {}, 503: {},
	} {
		got := OutcomeOfStatus(status)
		if got.Delivered() != want.delivered || got.Refused != want.refused {
			t.Errorf("status %d: %+v", status, got)
		}
	}
}
