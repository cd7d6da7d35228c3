package server

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestUnhealthy(t *testing.T) {
	sick := metav1.Condition{Type: clusterv1.MachineHealthCheckSucceededCondition, Status: metav1.ConditionFalse, Reason: "UnhealthyNode", Message: "Ready is Unknown for 5m."}
	owner := func(status metav1.ConditionStatus, message string) metav1.Condition {
		return metav1.Condition{Type: clusterv1.MachineOwnerRemediatedCondition, Status: status, Reason: clusterv1.MachineOwnerRemediatedWaitingForRemediationReason, Message: message}
	}
	for name, c := range map[string]struct {
		conditions []metav1.Condition
		want       string
	}{
		"When nobody checks a machine nothing should be said":     {nil, ""},
		"When a machine is healthy nothing should be said":        {[]metav1.Condition{{Type: sick.Type, Status: metav1.ConditionTrue}}, ""},
		"When nobody was asked to replace it, it should say so":   {[]metav1.Condition{sick}, "Ready is Unknown for 5m. Nobody was asked to replace it: a health check holds back while too many machines are unhealthy"},
		"When it is being replaced it should say so":              {[]metav1.Condition{sick, owner(metav1.ConditionTrue, "")}, "Ready is Unknown for 5m. It is being replaced"},
		"When its owner waits it should say for what":             {[]metav1.Condition{sick, owner(metav1.ConditionFalse, "2 of 2 are in flight")}, "Ready is Unknown for 5m. It is to be replaced, and waits: 2 of 2 are in flight"},
		"When its owner says nothing the reason should be enough": {[]metav1.Condition{sick, owner(metav1.ConditionFalse, "")}, "Ready is Unknown for 5m. It is to be replaced, and waits: WaitingForRemediation"},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(unhealthy(c.conditions)).To(Equal(c.want)) })
	}
}
