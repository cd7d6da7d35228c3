package kubevirt

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/clip"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/platform/cluster"
)

const (
	// migratable is the provider's condition of a machine whose virtual machine can move to another host while it runs.
	migratable = "VMLiveMigratable"
	// maxNamed bounds how many machines a message tells of, and maxReason what it repeats of the provider.
	maxNamed, maxReason = 5, 200
)

// MachineKind implements platform.MachineReporter.
func (Platform) MachineKind() schema.GroupVersionKind {
	return groupVersion.WithKind("KubevirtMachine")
}

// MachineConditions implements platform.MachineReporter: whether all virtual machines of a pool can move. A machine that says nothing yet is not counted.
func (Platform) MachineConditions(machines []unstructured.Unstructured) []hyperv1.NodePoolCondition {
	var stuck []string
	for i := range machines {
		conditions, _, _ := unstructured.NestedSlice(machines[i].Object, "status", "conditions")
		for _, c := range conditions {
			of, ok := c.(map[string]any)
			if !ok || of["type"] != migratable || of["status"] != "False" {
				continue
			}
			text, _ := of["message"].(string)
			if text == "" {
				text, _ = of["reason"].(string)
			}
			stuck = append(stuck, fmt.Sprintf("%s: %s", machines[i].GetName(), clip.Over(text, maxReason, "…")))
		}
	}
	c := hyperv1.NodePoolCondition{Type: hyperv1.NodePoolKubeVirtLiveMigratableType, Status: corev1.ConditionTrue, Reason: hyperv1.AsExpectedReason}
	if len(stuck) > 0 {
		c.Status, c.Reason = corev1.ConditionFalse, hyperv1.KubeVirtNodesNotLiveMigratableReason
		c.Message = fmt.Sprintf("%d of %d virtual machines can't move to another host while they run, so that draining a host ends them: %s",
			len(stuck), len(machines), strings.Join(stuck[:min(len(stuck), maxNamed)], "; "))
		if len(stuck) > maxNamed {
			c.Message += "; …"
		}
	}
	return []hyperv1.NodePoolCondition{c}
}

// Conditions implements platform.ConditionReporter: whether virtual machines can move is summed up of what NodePools say. One that says nothing yet is not
// counted.
func (Platform) Conditions(in cluster.Input) (set []metav1.Condition, absent []string) {
	const kind = hyperv1.KubeVirtNodesLiveMigratable
	var stuck []string
	for i := range in.NodePools {
		for _, c := range in.NodePools[i].Status.Conditions {
			if c.Type == hyperv1.NodePoolKubeVirtLiveMigratableType && c.Status == corev1.ConditionFalse {
				stuck = append(stuck, fmt.Sprintf("NodePool %s: %s", in.NodePools[i].Name, c.Message))
			}
		}
	}
	if len(stuck) == 0 {
		return []metav1.Condition{conditions.True(kind, hyperv1.AsExpectedReason, hyperv1.AllIsWellMessage)}, nil
	}
	slices.Sort(stuck)
	text := strings.Join(stuck[:min(len(stuck), maxNamed)], "\n")
	if len(stuck) > maxNamed {
		text += fmt.Sprintf("\nand %d more NodePools", len(stuck)-maxNamed)
	}
	return []metav1.Condition{conditions.False(kind, hyperv1.KubeVirtNodesNotLiveMigratableReason, text)}, nil
}
