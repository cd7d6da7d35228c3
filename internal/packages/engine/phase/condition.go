package phase

import (
	"regexp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hcp.internal/platform/internal/clip"
	"hcp.internal/platform/internal/kube/conditions"
)

// Bounds of a condition in the schema of every kind.
const (
	maxMessage = 32768
	maxReason  = 1024
)

// reasonPattern is what the schema demands of reasons.
var reasonPattern = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

// Condition is a condition that the schema accepts whatever its parts are: what comes from somebody's object may be anything.
func Condition(conditionType string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	switch status {
	case metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown:
	default:
		status = metav1.ConditionUnknown
	}
	if len(reason) > maxReason || !reasonPattern.MatchString(reason) {
		reason = "Unknown"
	}
	return conditions.New(conditionType, status, reason, Bounded(message))
}

// Bounded cuts a message to the length that the schema of conditions allows. The limit counts characters; bytes are stricter.
func Bounded(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	const rest = " …"
	return clip.To(message, maxMessage-len(rest)) + rest
}
