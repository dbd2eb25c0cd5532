package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NotificationSecretLabel marks, with the value "true", a Secret that KickNotifications of its namespace may use. Without
// it whoever may write notifications, but not read Secrets, could have any Secret read.
const NotificationSecretLabel = "kick.dev/notification"

// NotificationRecordPrefix begins the annotations of a KickRequest in which KICK keeps what it has told about it, one
// annotation for each KickNotification, whose name follows.
const NotificationRecordPrefix = "notification.kick.dev/"

// The keys of a Secret that a KickNotification uses.
const (
	// NotificationURLKey holds the URL to send to.
	NotificationURLKey = "url"
	// NotificationHeadersKey holds HTTP headers to send along, one "Name: value" in each line.
	NotificationHeadersKey = "headers"
)

// NotificationEvent is something that a KickNotification tells.
//
// +kubebuilder:validation:Enum=WaitingTooLong;Succeeded;Failed
type NotificationEvent string

// The events of a KickNotification.
const (
	// NotifyWaitingTooLong: a request has been open for spec.waitingThreshold. Told once each time a request opens.
	NotifyWaitingTooLong NotificationEvent = "WaitingTooLong"
	// NotifySucceeded: a request ended in phase Succeeded.
	NotifySucceeded NotificationEvent = "Succeeded"
	// NotifyFailed: a request ended in phase Failed.
	NotifyFailed NotificationEvent = "Failed"
)

// NotificationFormat is what the body of a message looks like.
//
// +kubebuilder:validation:Enum=JSON;CloudEvents;Slack
type NotificationFormat string

// The formats of a KickNotification.
const (
	// FormatJSON is an object with the fields that docs/notifications.md lists.
	FormatJSON NotificationFormat = "JSON"
	// FormatCloudEvents is a CloudEvent 1.0 in structured mode, whose data is that object.
	FormatCloudEvents NotificationFormat = "CloudEvents"
	// FormatSlack is an object with the one field text, as incoming webhooks of Slack and of tools that imitate them take.
	FormatSlack NotificationFormat = "Slack"
)

// KickNotificationSpec says what is told, and where to.
type KickNotificationSpec struct {
	// events to tell about the requests of the namespace.
	//
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	Events []NotificationEvent `json:"events"`

	// waitingThreshold is after what time an open request has waited too long, at least 1m.
	//
	// Example: 30m
	//
	// +optional
	// +kubebuilder:default="1h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(h|m|s))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m')",message="waitingThreshold must be at least 1m"
	WaitingThreshold *metav1.Duration `json:"waitingThreshold,omitempty"`

	// format of the messages: JSON, CloudEvents or Slack.
	//
	// +optional
	// +kubebuilder:default=JSON
	Format NotificationFormat `json:"format,omitempty"`

	// secretRef names the Secret, in the same namespace, with where to send: the key url, and optionally the key headers with
	// one "Name: value" in each line. It must have the label kick.dev/notification: "true", or be permitted by whoever runs
	// KICK. The host has to be permitted by whoever runs KICK, too.
	//
	// +required
	SecretRef NotificationSecret `json:"secretRef"`
}

// NotificationSecret names a Secret in the namespace of the notification.
type NotificationSecret struct {
	// name of the Secret.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// KickNotificationStatus is whether messages get through.
type KickNotificationStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions: Ready, Reconciling and Stalled, always present. Nothing of the Secret is in them.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// KickNotification sends a message when a restart in its namespace waits too long, succeeds or fails. It is sent at least
// once, with an id that stays the same however often it is sent.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=kn,categories=kick
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Format",type=string,JSONPath=`.spec.format`
// +kubebuilder:printcolumn:name="Events",type=string,JSONPath=`.spec.events`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="metadata.name must have at most 63 characters"
type KickNotification struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec says what is told, and where to.
	//
	// +required
	Spec KickNotificationSpec `json:"spec"`

	// status is written by KICK alone.
	//
	// +optional
	Status KickNotificationStatus `json:"status,omitzero"`
}

// KickNotificationList is a list of KickNotifications.
//
// +kubebuilder:object:root=true
type KickNotificationList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []KickNotification `json:"items"`
}
