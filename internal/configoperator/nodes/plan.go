package nodes

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// Wanted is what a Machine says of its Node.
type Wanted struct {
	Labels map[string]string
	Taints []corev1.Taint
}

// wantedOf reads labels and taints from a Machine. The NodePool's annotation is {namespace}/{name}, its label on a node the
// name alone.
func wantedOf(m *clusterv1.Machine) (Wanted, error) {
	w := Wanted{Labels: map[string]string{}}
	for key, value := range m.Labels {
		if name, ok := strings.CutPrefix(key, labelPrefix); ok && name != "" {
			w.Labels[name] = value
		}
	}
	if pool := m.Annotations[hyperv1.NodePoolAnnotation]; pool != "" {
		w.Labels[hyperv1.NodePoolLabel] = pool[strings.LastIndexByte(pool, '/')+1:]
	}
	text := m.Annotations[hyperv1.NodePoolTaintsAnnotation]
	if text == "" {
		return w, nil
	}
	if len(text) > maxTaintBytes {
		return w, fmt.Errorf("annotation %s has %d bytes; at most %d are allowed", hyperv1.NodePoolTaintsAnnotation, len(text), maxTaintBytes)
	}
	if err := json.Unmarshal([]byte(text), &w.Taints); err != nil {
		return w, fmt.Errorf("annotation %s is no list of taints: %w", hyperv1.NodePoolTaintsAnnotation, err)
	}
	if len(w.Taints) > maxTaints {
		return w, fmt.Errorf("annotation %s has %d taints; at most %d are allowed", hyperv1.NodePoolTaintsAnnotation, len(w.Taints), maxTaints)
	}
	return w, nil
}

// synced reports whether a Node has got its labels before.
func synced(node *corev1.Node) bool {
	return node.Annotations[hyperv1.NodePoolLabelsSyncedAnnotation] == "true"
}

// complete adds what is wanted to a Node and marks it. Taints of the same key and effect are replaced, others stay.
func complete(node *corev1.Node, w Wanted) {
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	maps.Copy(node.Labels, w.Labels)
	for _, taint := range w.Taints {
		same := func(t corev1.Taint) bool { return t.Key == taint.Key && t.Effect == taint.Effect }
		if i := slices.IndexFunc(node.Spec.Taints, same); i >= 0 {
			node.Spec.Taints[i].Value = taint.Value
		} else {
			node.Spec.Taints = append(node.Spec.Taints, taint)
		}
	}
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	node.Annotations[hyperv1.NodePoolLabelsSyncedAnnotation] = "true"
}
