package kubevirt

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/platform/cluster"
)

// told is a machine that says of itself whether it can move; an empty status says nothing.
func told(name, status, message string) unstructured.Unstructured {
	u := unstructured.Unstructured{Object: map[string]any{}}
	u.SetName(name)
	if status != "" {
		u.Object["status"] = map[string]any{"conditions": []any{
			map[string]any{"type": "Ready", "status": "False", "message": "another"}, map[string]any{"type": migratable, "status": status, "reason": "DisksNotLiveMigratable", "message": message},
		}}
	}
	return u
}

func TestMachineConditions(t *testing.T) {
	many := []unstructured.Unstructured{}
	for i := range 9 {
		many = append(many, told(fmt.Sprint("m", i), "False", "x"))
	}
	for name, tc := range map[string]struct {
		machines []unstructured.Unstructured
		status   corev1.ConditionStatus
		reason   string
		message  string
	}{
		"When there are no machines it should be as expected":         {nil, corev1.ConditionTrue, "AsExpected", ""},
		"When all machines can move it should be as expected":         {[]unstructured.Unstructured{told("a", "True", "")}, corev1.ConditionTrue, "AsExpected", ""},
		"When a machine says nothing yet it should be as expected":    {[]unstructured.Unstructured{told("a", "", "")}, corev1.ConditionTrue, "AsExpected", ""},
		"When a machine can't move it should be named, with its text": {[]unstructured.Unstructured{told("a", "True", ""), told("b", "False", "its volume is not shared")}, corev1.ConditionFalse, hyperv1.KubeVirtNodesNotLiveMigratableReason, "1 of 2 virtual machines can't move to another host while they run, so that draining a host ends them: b: its volume is not shared"},
		"When a machine gives no text it should be named by reason":   {[]unstructured.Unstructured{told("b", "False", "")}, corev1.ConditionFalse, hyperv1.KubeVirtNodesNotLiveMigratableReason, "1 of 1 virtual machines can't move to another host while they run, so that draining a host ends them: b: DisksNotLiveMigratable"},
		"When many can't move some should be named":                   {many, corev1.ConditionFalse, hyperv1.KubeVirtNodesNotLiveMigratableReason, "9 of 9 virtual machines can't move to another host while they run, so that draining a host ends them: m0: x; m1: x; m2: x; m3: x; m4: x; …"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got := Platform{}.MachineConditions(tc.machines)
			g.Expect(got).To(HaveLen(1))
			g.Expect(got[0].Status).To(Equal(tc.status))
			g.Expect(got[0].Reason).To(Equal(tc.reason))
			g.Expect(got[0].Message).To(Equal(tc.message))
		})
	}
}

func TestConditions(t *testing.T) {
	pool := func(name string, status corev1.ConditionStatus, message string) hyperv1.NodePool {
		return hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: hyperv1.NodePoolStatus{Conditions: []hyperv1.NodePoolCondition{
			{Type: hyperv1.NodePoolReadyConditionType, Status: corev1.ConditionFalse, Message: "another"},
			{Type: hyperv1.NodePoolKubeVirtLiveMigratableType, Status: status, Message: message},
		}}}
	}
	many := []hyperv1.NodePool{}
	for i := range 7 {
		many = append(many, pool(fmt.Sprint("p", 6-i), corev1.ConditionFalse, "x"))
	}
	for name, tc := range map[string]struct {
		pools []hyperv1.NodePool
		want  string
	}{
		"When there are no NodePools it should be as expected":          {nil, "True/AsExpected: All is well"},
		"When machines of all NodePools can move it should be expected": {[]hyperv1.NodePool{pool("a", corev1.ConditionTrue, "")}, "True/AsExpected: All is well"},
		"When a NodePool says nothing yet it should be as expected":     {[]hyperv1.NodePool{{}}, "True/AsExpected: All is well"},
		"When a NodePool's machines can't move it should be repeated": {[]hyperv1.NodePool{pool("a", corev1.ConditionTrue, ""), pool("b", corev1.ConditionFalse, "1 of 2 can't")},
			"False/KubeVirtNodesNotLiveMigratable: NodePool b: 1 of 2 can't"},
		"When many can't some should be named, in order": {many,
			"False/KubeVirtNodesNotLiveMigratable: NodePool p0: x\nNodePool p1: x\nNodePool p2: x\nNodePool p3: x\nNodePool p4: x\nand 2 more NodePools"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			set, absent := Platform{}.Conditions(cluster.Input{NodePools: tc.pools})
			g.Expect(absent).To(BeEmpty())
			g.Expect(set).To(HaveLen(1))
			g.Expect(set[0].Type).To(Equal(hyperv1.KubeVirtNodesLiveMigratable))
			g.Expect(fmt.Sprintf("%s/%s: %s", set[0].Status, set[0].Reason, set[0].Message)).To(Equal(tc.want))
		})
	}
}
