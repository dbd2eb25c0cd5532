package notify

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/kick-dev/kick/api/v1alpha1"
)

// Message is what is sent.
type Message struct {
	// ID is that of the event, sent as the header Idempotency-Key whatever the format.
	ID          string
	ContentType string
	Body        []byte
}

// cloudEvent is an event in the structured mode of CloudEvents 1.0.
type cloudEvent struct {
	SpecVersion     string `json:"specversion"`
	ID              string `json:"id"`
	Source          string `json:"source"`
	Type            string `json:"type"`
	Subject         string `json:"subject"`
	Time            string `json:"time"`
	DataContentType string `json:"datacontenttype"`
	Data            Event  `json:"data"`
}

// cloudEventTypes are the types of CloudEvents.
var cloudEventTypes = map[v1alpha1.NotificationEvent]string{
	v1alpha1.NotifyWaitingTooLong: "dev.kick.request.waiting",
	v1alpha1.NotifySucceeded:      "dev.kick.request.succeeded",
	v1alpha1.NotifyFailed:         "dev.kick.request.failed",
}

// Compose writes an event in a format.
func Compose(event Event, format v1alpha1.NotificationFormat) (Message, error) {
	message := Message{ID: event.ID, ContentType: "application/json"}
	var content any = event
	switch format {
	case v1alpha1.FormatCloudEvents:
		message.ContentType = "application/cloudevents+json"
		content = cloudEvent{
			SpecVersion:     "1.0",
			ID:              event.ID,
			Source:          fmt.Sprintf("/apis/%s/namespaces/%s/kickrequests/%s", v1alpha1.GroupVersion, event.Namespace, event.Request),
			Type:            cloudEventTypes[event.Type],
			Subject:         fmt.Sprintf("%s/%s", event.Workload.Kind, event.Workload.Name),
			Time:            event.Time.UTC().Format(time.RFC3339Nano),
			DataContentType: "application/json",
			Data:            event,
		}
	case v1alpha1.FormatSlack:
		content = map[string]string{"text": sentence(event)}
	default:
	}
	body, err := json.Marshal(content)
	if err != nil {
		return Message{}, fmt.Errorf("compose a message: %w", err)
	}
	message.Body = body
	return message, nil
}

// maxNamed is how many causes a sentence names.
const maxNamed = 4

// escape keeps names and messages from being taken for links and mentions.
var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// sentence says an event in words.
func sentence(event Event) string {
	what := map[v1alpha1.NotificationEvent]string{
		v1alpha1.NotifyWaitingTooLong: "waits to be restarted",
		v1alpha1.NotifySucceeded:      "was restarted",
		v1alpha1.NotifyFailed:         "failed to restart",
	}[event.Type]
	text := fmt.Sprintf("%s %s in %s %s", event.Workload.Kind, event.Workload.Name, event.Namespace, what)
	if event.Type != v1alpha1.NotifySucceeded {
		text += fmt.Sprintf(" (%s): %s", event.Reason, event.Message)
	}
	if causes := named(event); causes != "" {
		text += "\nBecause of " + causes
	}
	return escape.Replace(text)
}

func named(event Event) string {
	var names []string
	more := int(event.CausesOmitted)
	for i, cause := range event.Causes {
		if i == maxNamed {
			more += len(event.Causes) - i
			break
		}
		if cause.Kind == v1alpha1.Manual {
			names = append(names, "a request by "+cause.Name)
			continue
		}
		names = append(names, fmt.Sprintf("%s %s", cause.Kind, cause.Name))
	}
	text := strings.Join(names, ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
