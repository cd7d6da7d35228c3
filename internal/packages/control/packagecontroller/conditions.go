package packagecontroller

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/clip"
	"hcp.internal/platform/internal/kube/conditions"
)

// copied are conditions of the ObjectDeployment that a Package has, too, besides mapped ones.
var copied = []string{v1alpha1.ConditionAvailable, v1alpha1.ConditionProgressing, v1alpha1.ConditionPaused}

// fromDeployment copies what an ObjectDeployment reports about its present generation. It returns the conditions to set and the types to remove.
func fromDeployment(od *v1alpha1.ObjectDeployment, have []metav1.Condition) (set []metav1.Condition, remove []string) {
	current := map[string]bool{}
	if od != nil {
		for _, c := range od.Status.Conditions {
			if c.ObservedGeneration != od.Generation {
				continue
			}
			wanted := strings.Contains(c.Type, "/")
			for _, name := range copied {
				wanted = wanted || c.Type == name
			}
			if c.Type == v1alpha1.ConditionPaused && c.Status != metav1.ConditionTrue {
				wanted = false
			}
			if wanted {
				current[c.Type] = true
				set = append(set, conditions.New(c.Type, c.Status, c.Reason, c.Message))
			}
		}
	}
	for _, c := range have {
		if !current[c.Type] && (strings.Contains(c.Type, "/") || c.Type == v1alpha1.ConditionPaused) {
			remove = append(remove, c.Type)
		}
	}
	return set, remove
}

// maxMessage is what a condition has room for.
const maxMessage = 32768

func bounded(message string) string {
	if len(message) > maxMessage {
		return clip.To(message, maxMessage-3) + "…"
	}
	return message
}

// afterFailure are the conditions of a package that can't be installed. One that was wrong and can't be pulled now is still wrong.
func afterFailure(f *failure) []metav1.Condition {
	message := bounded(f.err.Error())
	if f.condition == v1alpha1.ConditionUnpacked {
		return []metav1.Condition{{Type: v1alpha1.ConditionUnpacked, Status: metav1.ConditionFalse, Reason: f.reason, Message: message}}
	}
	return []metav1.Condition{
		// Whoever waits for a change of the spec to arrive must not believe that it has.
		{Type: v1alpha1.ConditionUnpacked, Status: metav1.ConditionFalse, Reason: f.reason, Message: message},
		{Type: v1alpha1.ConditionInvalid, Status: metav1.ConditionTrue, Reason: f.reason, Message: message},
	}
}

// unpacked are the conditions of a package that was installed; Invalid goes.
func unpacked(have []metav1.Condition, again bool) []metav1.Condition {
	if again {
		if c := conditions.Get(have, v1alpha1.ConditionUnpacked); c != nil && c.Status == metav1.ConditionTrue {
			return []metav1.Condition{{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message}}
		}
		return []metav1.Condition{{Type: v1alpha1.ConditionUnpacked, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAlreadyUnpacked, Message: "Package already unpacked"}}
	}
	return []metav1.Condition{{Type: v1alpha1.ConditionUnpacked, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonUnpackSuccess, Message: "Unpack job succeeded"}}
}
