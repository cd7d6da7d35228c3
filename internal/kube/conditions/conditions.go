// Package conditions sets and reads lists of metav1.Condition.
package conditions

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hcp.internal/platform/internal/clip"
)

// maxMessage is the bound that the CustomResourceDefinitions put on a condition's message.
const maxMessage = 32768

// New is a condition that has not been set anywhere yet: Set says since when it is so.
func New(conditionType string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message}
}

// True is New with status True.
func True(conditionType, reason, message string) metav1.Condition {
	return New(conditionType, metav1.ConditionTrue, reason, message)
}

// False is New with status False.
func False(conditionType, reason, message string) metav1.Condition {
	return New(conditionType, metav1.ConditionFalse, reason, message)
}

// Unknown is New with status Unknown.
func Unknown(conditionType, reason, message string) metav1.Condition {
	return New(conditionType, metav1.ConditionUnknown, reason, message)
}

// Set writes conds into list, each keyed by its type. The transition time of a condition moves to now only when its
// status moves, so that setting the same conditions again changes nothing. Messages are cut at 32,768 bytes.
func Set(list *[]metav1.Condition, now time.Time, conds ...metav1.Condition) {
	for _, c := range conds {
		if c.Type == "" {
			panic("conditions.Set: a condition without a type")
		}
		if len(c.Message) > maxMessage {
			c.Message = clip.To(c.Message, maxMessage-3) + "..."
		}
		if old := Get(*list, c.Type); old != nil && old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		} else {
			c.LastTransitionTime = metav1.NewTime(now.Truncate(time.Second))
		}
		meta.SetStatusCondition(list, c)
	}
}

// Remove drops the conditions of the given types.
func Remove(list *[]metav1.Condition, types ...string) {
	for _, t := range types {
		meta.RemoveStatusCondition(list, t)
	}
}

// Get returns the condition of a type, nil when there is none. The result points into list.
func Get(list []metav1.Condition, conditionType string) *metav1.Condition {
	return meta.FindStatusCondition(list, conditionType)
}

// Current returns the condition of a type if it is about this generation of the object, else nil: one of an earlier generation says nothing of what was
// changed since. The result points into list.
func Current(list []metav1.Condition, conditionType string, generation int64) *metav1.Condition {
	if c := Get(list, conditionType); c != nil && c.ObservedGeneration == generation {
		return c
	}
	return nil
}

// IsTrue says whether the condition of a type is there and True.
func IsTrue(list []metav1.Condition, conditionType string) bool {
	return meta.IsStatusConditionTrue(list, conditionType)
}

// IsFalse says whether the condition of a type is there and False.
func IsFalse(list []metav1.Condition, conditionType string) bool {
	return meta.IsStatusConditionFalse(list, conditionType)
}
