package inplace

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// world is what a pass has read.
type world struct {
	Observed
	payload  string // gzip and base64, as the token Secret has it
	release  string // pull spec of the target's
	machines []clusterv1.Machine
}

func (r *Reconciler) observe(ctx context.Context, set *clusterv1.MachineSet) (world, error) {
	w := world{Observed: Observed{
		Target:  set.Annotations[hyperv1.NodePoolTargetConfigVersionAnnotation],
		Current: set.Annotations[hyperv1.NodePoolCurrentConfigVersionAnnotation],
		True:    annotation(set, hyperv1.NodePoolUpgradeInProgressTrueAnnotation), False: annotation(set, hyperv1.NodePoolUpgradeInProgressFalseAnnotation),
		Pods: map[string]corev1.PodPhase{}, DrainTimeout: drainTimeout(set),
	}}
	if w.MaxUnavailable, _ = strconv.Atoi(set.Annotations[hyperv1.NodePoolMaxUnavailableAnnotation]); w.MaxUnavailable < 1 {
		w.MaxUnavailable = 1
	}
	if w.Target == "" || w.Target == w.Current {
		return w, nil
	}
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: set.Namespace, Name: tokenSecret(set.Name, w.Target)}
	if err := r.Management.Get(ctx, key, secret); client.IgnoreNotFound(err) != nil {
		return w, fmt.Errorf("reading Secret %s: %w", key, err)
	}
	w.payload, w.Version, w.release = string(secret.Data[payloadKey]), string(secret.Data[releaseVersionKey]), string(secret.Data[releaseKey])
	if w.Payload = w.payload != ""; !w.Payload {
		return w, nil
	}
	if err := r.observeMachines(ctx, set, &w); err != nil {
		return w, err
	}
	pods := &corev1.PodList{}
	if err := r.Hosted.List(ctx, pods, client.InNamespace(namespaceOf(set.Name)), client.Limit(maxPods)); err != nil {
		return w, fmt.Errorf("listing daemons: %w", err)
	}
	for _, p := range pods.Items {
		if node, ok := strings.CutPrefix(p.Name, daemonPrefix); ok && p.DeletionTimestamp.IsZero() {
			w.Pods[node] = p.Status.Phase
		}
	}
	var err error
	w.Held, w.HeldFor, err = whyHeld(ctx, r.Management, set, r.Hold, r.Clock.Now())
	return w, err
}

// observeMachines reads the set's Machines, and of their Nodes what they say. Nodes are found by the Machines' status.
func (r *Reconciler) observeMachines(ctx context.Context, set *clusterv1.MachineSet, w *world) error {
	list := &clusterv1.MachineList{}
	if err := r.Management.List(ctx, list, client.InNamespace(set.Namespace), client.MatchingLabels(set.Spec.Selector.MatchLabels)); err != nil {
		return fmt.Errorf("listing the Machines of MachineSet %s/%s: %w", set.Namespace, set.Name, err)
	}
	for i := range list.Items {
		m := &list.Items[i]
		if owner := metav1.GetControllerOf(m); owner == nil || owner.UID != set.UID {
			continue
		}
		w.machines = append(w.machines, *m)
		out := Machine{
			Name: m.Name, Leaving: !m.DeletionTimestamp.IsZero(), Node: m.Status.NodeRef.Name,
			Version: m.Annotations[hyperv1.NodePoolReleaseVersionAnnotation],
		}
		if out.Node != "" {
			node := &corev1.Node{} // all of it, for its conditions, as the drainer reads it
			err := r.Hosted.Get(ctx, client.ObjectKey{Name: out.Node}, node)
			if apierrors.IsNotFound(err) {
				out.Leaving = true // somebody deleted it; the health check replaces the machine
			} else if err != nil {
				return fmt.Errorf("reading Node %s: %w", out.Node, err)
			}
			out.hear(node)
		}
		w.Machines = append(w.Machines, out)
	}
	return nil
}

// hear notes what a node says of itself.
func (m *Machine) hear(node *corev1.Node) {
	a := node.Annotations
	m.Born = node.Labels[hyperv1.NodePoolFirstConfigVersionLabel]
	m.Current, m.Desired, m.State, m.Reason = a[currentConfig], a[desiredConfig], a[stateAnnotation], printable(a[reasonAnnotation])
	m.Blocked, m.Ready = printable(a[drainBlocked]), answers(node)
}

func annotation(o client.Object, key string) *string {
	value, ok := o.GetAnnotations()[key]
	if !ok {
		return nil
	}
	return &value
}

// printable cuts what a node says to what may stand in a condition.
func printable(text string) string {
	out := make([]byte, 0, min(len(text), maxReason))
	for i := 0; i < len(text) && len(out) < maxReason; i++ {
		if c := text[i]; c >= ' ' && c <= '~' {
			out = append(out, c)
		}
	}
	return string(out)
}
