package environment

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/conditions"
)

const outdated = "What is installed was rendered for another environment. A rollout renders it again when its turn comes, for environment "

// Outdated is the condition of a Package that was rendered for another environment than that of hash, and waits for its rollout.
func Outdated(hash string) metav1.Condition {
	return conditions.True(v1alpha1.ConditionEnvironmentOutdated, v1alpha1.ReasonEnvironmentChanged, outdated+hash+".")
}

// Wanted is the hash of the environment that a Package with such conditions is to be rendered for; empty when it need not be.
func Wanted(list []metav1.Condition) string {
	c := conditions.Get(list, v1alpha1.ConditionEnvironmentOutdated)
	if c == nil || c.Status != metav1.ConditionTrue {
		return ""
	}
	hash, ok := strings.CutPrefix(c.Message, outdated)
	if !ok {
		return ""
	}
	return strings.TrimSuffix(hash, ".")
}
