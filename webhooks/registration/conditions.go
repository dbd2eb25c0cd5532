// Package registration holds what the webhook registration needs and the markers of controller-gen cannot say: when the
// API server calls a webhook at all. The chart is generated from it.
//
// A condition that does not hold costs nothing and cannot lock anybody out, because it is evaluated in the API server: a
// write it skips works while KICK is down.
package registration

import (
	"fmt"
	"strconv"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kick-dev/kick/api/v1alpha1"
)

// The names of the webhooks.
const (
	KickPolicy  = "kickpolicy.kick.dev"
	KickRequest = "kickrequest.kick.dev"
	Guard       = "guard.kick.dev"
)

// MatchConditions returns the conditions of the webhook of that name. The account is the user name of KICK's own service
// account, whose writes need no judgement.
func MatchConditions(webhook, account string) []admissionregistrationv1.MatchCondition {
	switch webhook {
	case KickPolicy:
		return []admissionregistrationv1.MatchCondition{specWritten()}
	case KickRequest:
		return []admissionregistrationv1.MatchCondition{notBy(account), specWritten()}
	case Guard:
		return []admissionregistrationv1.MatchCondition{notBy(account), restartWritten()}
	default:
		return nil
	}
}

// NamespaceSelector keeps the guard out of the namespaces that the cluster, and KICK itself, need to come back. It is nil
// for the other webhooks, which are about KICK's own kinds.
func NamespaceSelector(webhook, ownNamespace string) *metav1.LabelSelector {
	if webhook != Guard {
		return nil
	}
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key:      corev1.LabelMetadataName,
		Operator: metav1.LabelSelectorOpNotIn,
		Values:   []string{metav1.NamespaceSystem, corev1.NamespaceNodeLease, ownNamespace},
	}}}
}

func notBy(account string) admissionregistrationv1.MatchCondition {
	return admissionregistrationv1.MatchCondition{
		Name:       "not-by-kick",
		Expression: "request.userInfo.username != " + strconv.Quote(account),
	}
}

// specWritten skips labels, annotations, finalizers and owners.
func specWritten() admissionregistrationv1.MatchCondition {
	return admissionregistrationv1.MatchCondition{
		Name:       "spec-written",
		Expression: `request.operation == "CREATE" || object.?spec != oldObject.?spec`,
	}
}

// restartWritten holds where the annotation is added or gets another value, the empty one included.
func restartWritten() admissionregistrationv1.MatchCondition {
	const annotation = "%s.?spec.?template.?metadata.?annotations[?%q]"
	updated := fmt.Sprintf(annotation, "object", v1alpha1.RestartedAtAnnotation)
	old := fmt.Sprintf(annotation, "oldObject", v1alpha1.RestartedAtAnnotation)
	return admissionregistrationv1.MatchCondition{
		Name:       "restart-written",
		Expression: updated + ".hasValue() && " + updated + " != " + old,
	}
}
