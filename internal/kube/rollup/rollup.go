// Package rollup sums conditions up as kstatus has it, the convention by which Flux, kpt and `kubectl wait`-like tools judge objects of kinds that they don't
// know: condition Reconciling is there, and True, while an object gets to what is asked for; condition Stalled while it does not without somebody. A settled
// object has neither, so that whoever compares the conditions of settled objects with a list finds nothing new.
package rollup

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hcp.internal/platform/internal/kube/conditions"
)

// The conditions, as sigs.k8s.io/cli-utils names them.
const (
	Reconciling = "Reconciling"
	Stalled     = "Stalled"
)

// Set brings both up to date: each has reason and message of the condition that it stands for, and goes when that is nil. With both only Stalled is told.
func Set(list *[]metav1.Condition, now time.Time, generation int64, reconciling, stalled *metav1.Condition) {
	if stalled != nil {
		reconciling = nil
	}
	for conditionType, of := range map[string]*metav1.Condition{Reconciling: reconciling, Stalled: stalled} {
		if of == nil {
			conditions.Remove(list, conditionType)
			continue
		}
		c := conditions.True(conditionType, of.Reason, of.Message)
		c.ObservedGeneration = generation
		conditions.Set(list, now, c)
	}
}
