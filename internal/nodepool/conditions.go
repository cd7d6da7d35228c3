package nodepool

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/clip"
	"hcp.internal/platform/internal/nodepool/machines"
)

// maxMessage is the bound of the API.
const maxMessage = 32768

// severityError is that of conditions that are False because somebody has to do something.
const severityError = "Error"

func condition(t string, status corev1.ConditionStatus, reason, message string) hyperv1.NodePoolCondition {
	c := hyperv1.NodePoolCondition{Type: t, Status: status, Reason: reason, Message: message}
	if status == corev1.ConditionFalse && reason == hyperv1.NodePoolValidationFailedReason {
		c.Severity = severityError
	}
	return c
}

func good(t string) hyperv1.NodePoolCondition {
	return condition(t, corev1.ConditionTrue, hyperv1.AsExpectedReason, hyperv1.AllIsWellMessage)
}

func bad(t, reason, message string) hyperv1.NodePoolCondition {
	return condition(t, corev1.ConditionFalse, reason, message)
}

func fromFinding(t string, f machines.Finding) hyperv1.NodePoolCondition {
	return condition(t, corev1.ConditionStatus(f.Status), f.Reason, f.Message)
}

// setCondition puts c into the list, which is not a map on the wire. The transition time moves only when the status does. Duplicates of a
// type that others left are dropped.
func setCondition(list *[]hyperv1.NodePoolCondition, c hyperv1.NodePoolCondition, generation int64, now time.Time) {
	if len(c.Message) > maxMessage {
		c.Message = clip.To(c.Message, maxMessage-3) + "..."
	}
	c.ObservedGeneration = generation
	c.LastTransitionTime = metav1.NewTime(now.Truncate(time.Second))
	i := slices.IndexFunc(*list, func(o hyperv1.NodePoolCondition) bool { return o.Type == c.Type })
	if i < 0 {
		*list = append(*list, c)
		return
	}
	if (*list)[i].Status == c.Status {
		c.LastTransitionTime = (*list)[i].LastTransitionTime
	}
	(*list)[i] = c
	seen := false
	*list = slices.DeleteFunc(*list, func(o hyperv1.NodePoolCondition) bool {
		duplicate := seen && o.Type == c.Type
		seen = seen || o.Type == c.Type
		return duplicate
	})
}

func removeCondition(list *[]hyperv1.NodePoolCondition, t string) {
	*list = slices.DeleteFunc(*list, func(o hyperv1.NodePoolCondition) bool { return o.Type == t })
}

func findCondition(list []hyperv1.NodePoolCondition, t string) *hyperv1.NodePoolCondition {
	if i := slices.IndexFunc(list, func(o hyperv1.NodePoolCondition) bool { return o.Type == t }); i >= 0 {
		return &list[i]
	}
	return nil
}
