package autoscaler

import (
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// differingLabels are different for every node, every zone or every pool. Groups that differ in nothing else are alike.
var differingLabels = []string{
	corev1.LabelHostname, corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion,
	corev1.LabelInstanceType, corev1.LabelInstanceTypeStable,
}

// ownLabels start like this: the name of the pool, and the configuration of the machine.
const ownLabels = hyperv1.NodePoolLabel

// similar tells whether two groups make machines that are alike.
func (p *planner) similar(a, b *corev1.Node) bool {
	for _, pair := range [][2]map[string]string{{a.Labels, b.Labels}, {b.Labels, a.Labels}} {
		for k, v := range pair[0] {
			if pair[1][k] != v && !strings.HasPrefix(k, ownLabels) && !slices.Contains(differingLabels, k) && !slices.Contains(p.o.IgnoredLabels, k) {
				return false
			}
		}
	}
	if !slices.Equal(taintNames(a), taintNames(b)) {
		return false
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		x, y := a.Status.Allocatable[name], b.Status.Allocatable[name]
		if larger := max(x.AsApproximateFloat64(), y.AsApproximateFloat64()); math.Abs(x.AsApproximateFloat64()-y.AsApproximateFloat64()) > larger*p.o.MaxFreeDifference {
			return false
		}
	}
	return true
}

func taintNames(n *corev1.Node) []string {
	var list []string
	for _, t := range n.Spec.Taints {
		list = append(list, t.ToString())
	}
	slices.Sort(list)
	return list
}

// startupTaints are on nodes that are about to serve, or have stopped to.
var startupTaints = []string{
	corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeNetworkUnavailable,
	"node.cluster.x-k8s.io/uninitialized", "node.cloudprovider.kubernetes.io/uninitialized",
}

// serves tells whether the scheduler puts pods on a node, as far as its health is concerned.
func serves(n *corev1.Node) bool {
	if slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return slices.Contains(startupTaints, t.Key) }) {
		return false
	}
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

func isDaemon(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == "DaemonSet"
}

// note keeps the first thing that is said of a group.
func (p *planner) note(g *Group, text string) {
	if p.Notes[g.Name] == "" {
		p.Notes[g.Name] = text
	}
}

// aside is a note for when there is nothing better to say.
func (p *planner) aside(g *Group, text string) {
	if p.asides[g.Name] == "" {
		p.asides[g.Name] = text
	}
}

// maxReasons bounds a message that lists groups.
const maxReasons = 5

func join(list []string, all int) string {
	text := strings.Join(list, "; ")
	if more := all - len(list); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}
