package machines_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"hcp.internal/platform/internal/kube/changes"
	"hcp.internal/platform/internal/nodepool/machines"
)

func TestSeen(t *testing.T) {
	ready := func(message string, at int64) []metav1.Condition {
		return []metav1.Condition{{Type: clusterv1.MachineReadyCondition, Status: metav1.ConditionFalse, Reason: "NotReady", Message: message, LastTransitionTime: metav1.NewTime(time.Unix(at, 0))}}
	}
	child := func(change ...func(*clusterv1.MachineSet)) *clusterv1.MachineSet {
		ms := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: "MachineDeployment", Controller: ptr.To(true)}}}}
		for _, c := range change {
			c(ms)
		}
		return ms
	}
	for name, tc := range map[string]struct {
		before, after client.Object
		want          bool
	}{
		"When others put a selector into a MachineSet of theirs it should be no reason": {
			before: child(), after: child(func(ms *clusterv1.MachineSet) { ms.Spec.Selector.MatchLabels = map[string]string{"a": "b"} })},
		"When a MachineSet of others gets machines it should be a reason": {
			before: child(), after: child(func(ms *clusterv1.MachineSet) { ms.Status.AvailableReplicas = ptr.To[int32](1) }), want: true},
		"When somebody changes the selector of a MachineSet of ours it should be a reason": {
			before: &clusterv1.MachineSet{}, after: &clusterv1.MachineSet{Spec: clusterv1.MachineSetSpec{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}}, want: true},
		"When a MachineDeployment counts its revision it should be no reason": {
			before: &clusterv1.MachineDeployment{}, after: &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"machinedeployment.clusters.x-k8s.io/revision": "2"}}}},
		"When somebody pauses a MachineDeployment it should be a reason": {
			before: &clusterv1.MachineDeployment{}, after: &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{machines.PausedAnnotation: "true"}}}, want: true},
		"When only the time of a Machine's condition changes it should be no reason": {
			before: &clusterv1.Machine{Status: clusterv1.MachineStatus{Conditions: ready("booting", 1)}}, after: &clusterv1.Machine{Status: clusterv1.MachineStatus{Conditions: ready("booting", 2)}}},
		"When only the steps of a Machine are counted it should be no reason": {
			before: &clusterv1.Machine{Status: clusterv1.MachineStatus{Conditions: ready("* booting\n* 1 of 5 completed", 1)}}, after: &clusterv1.Machine{Status: clusterv1.MachineStatus{Conditions: ready("* booting\n* 2 of 5 completed", 2)}}},
		"When a Machine says something else it should be a reason": {
			before: &clusterv1.Machine{Status: clusterv1.MachineStatus{Conditions: ready("booting", 1)}}, after: &clusterv1.Machine{Status: clusterv1.MachineStatus{Conditions: ready("failed", 1)}}, want: true},
		"When a MachineHealthCheck counts it should be no reason": {
			before: &clusterv1.MachineHealthCheck{}, after: &clusterv1.MachineHealthCheck{Status: clusterv1.MachineHealthCheckStatus{CurrentHealthy: ptr.To[int32](1)}}},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(changes.Of(machines.Seen).Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after})).To(Equal(tc.want))
		})
	}
}
