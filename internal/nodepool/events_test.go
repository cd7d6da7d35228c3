package nodepool

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

type told []string

func (l *told) Eventf(_, _ runtime.Object, eventType, reason, action, note string, args ...any) {
	*l = append(*l, fmt.Sprintf("%s %s %s: %s", eventType, reason, action, fmt.Sprintf(note, args...)))
}

func TestTellChanges(t *testing.T) {
	with := func(list ...hyperv1.NodePoolCondition) *hyperv1.NodePool {
		return &hyperv1.NodePool{Status: hyperv1.NodePoolStatus{Conditions: list}}
	}
	updating := func(status corev1.ConditionStatus, message string) hyperv1.NodePoolCondition {
		return condition(hyperv1.NodePoolUpdatingVersionConditionType, status, hyperv1.AsExpectedReason, message)
	}
	broken := condition(hyperv1.NodePoolValidMachineConfigConditionType, corev1.ConditionFalse, hyperv1.NodePoolValidationFailedReason, "ConfigMap a does not exist")
	for name, tc := range map[string]struct {
		before, after *hyperv1.NodePool
		want          told
	}{
		"When a rollout begins it should tell":    {with(updating(corev1.ConditionFalse, "")), with(updating(corev1.ConditionTrue, "Updating version to 1.36.3")), told{"Normal UpdatingVersion RollOut: Updating version to 1.36.3"}},
		"When a rollout is done it should tell":   {with(updating(corev1.ConditionTrue, "Updating version to 1.36.3")), with(updating(corev1.ConditionFalse, "")), told{"Normal VersionUpdated RollOut: VersionUpdated"}},
		"When a rollout goes on it should not":    {with(updating(corev1.ConditionTrue, "Updating")), with(updating(corev1.ConditionTrue, "Updating")), nil},
		"When the spec is invalid it should warn": {with(), with(broken), told{"Warning ValidationFailed Validate: ConfigMap a does not exist"}},
		"When it stays invalid it should not":     {with(broken), with(broken), nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got told
			tellChanges(&got, tc.before, tc.after)
			NewWithT(t).Expect(got).To(Equal(tc.want))
		})
	}
}

func TestTellSlowDeletion(t *testing.T) {
	g := NewWithT(t)
	var got told
	clk := clocktesting.NewFakePassiveClock(noon.Add(deletionSlow - time.Second))
	r := &Reconciler{Clock: clk, Events: &got}
	pool := &hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{UID: "u", DeletionTimestamp: ptr.To(metav1.NewTime(noon))}}
	r.tellSlowDeletion(pool, "there are still Machines: a")
	g.Expect(got).To(BeEmpty(), "it has just begun")
	clk.SetTime(noon.Add(deletionSlow))
	r.tellSlowDeletion(pool, "there are still Machines: a")
	r.tellSlowDeletion(pool, "there are still Machines: a")
	g.Expect(got).To(Equal(told{"Warning DeletionBlocked Delete: After 10m0s: there are still Machines: a"}))
}
