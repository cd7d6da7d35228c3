package spot

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// concerns tells whether a Machine may be taken away, has a Node, and nobody has asked for another yet.
func concerns(m *clusterv1.Machine) bool {
	_, interruptible := m.Labels[hyperv1.InterruptibleInstanceLabel]
	_, asked := m.Annotations[hyperv1.SpotInterruptionSignalAnnotation]
	return interruptible && !asked && m.Status.NodeRef.Name != "" && m.DeletionTimestamp.IsZero()
}

// signalOf is the key of the taint by which the termination handler says that a Node goes; empty: it doesn't say so. Of several it is the first by name.
func signalOf(taints []corev1.Taint) string {
	var keys []string
	for _, t := range taints {
		if strings.HasPrefix(t.Key, taintPrefix) {
			keys = append(keys, t.Key)
		}
	}
	if len(keys) == 0 {
		return ""
	}
	return slices.Min(keys)
}

// mark notes the signal on a Machine, and asks for its remediation.
func mark(m *clusterv1.Machine, signal string) {
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	m.Annotations[hyperv1.SpotInterruptionSignalAnnotation] = signal
	m.Annotations[clusterv1.RemediateMachineAnnotation] = ""
}
