package configoperator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// manyNodes is where counting nodes stops: no object differs for more.
	manyNodes = 2
	// nodesToTry bounds how many nodes are looked at for a place that is better.
	nodesToTry = 100
	// dnsLabel and dnsApp select the pods of the cluster's DNS.
	dnsLabel, dnsApp = "k8s-app", "kube-dns"
	// crowdedRecheck is when to look again while both replicas are on one node and no other takes pods yet.
	crowdedRecheck = time.Minute
)

// countNodes tells no node, one, and many apart.
func (r *Reconciler) countNodes(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, objectTimeout)
	defer cancel()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	if err := r.Hosted.List(ctx, list, client.Limit(manyNodes)); err != nil {
		return 0, fmt.Errorf("counting nodes: %w", err)
	}
	return min(len(list.Items), manyNodes), nil
}

// spreadDNS moves one of the replicas of the cluster's DNS when both have come to be on one node, as they do when the other was
// drained. The scheduler places pods once; without this the loss of that node would take the names of the whole cluster. The
// disruption budget is honoured.
func (r *Reconciler) spreadDNS(ctx context.Context, nodes int) (recheck time.Duration, err error) {
	if nodes < manyNodes {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(ctx, objectTimeout)
	defer cancel()
	pods := &corev1.PodList{}
	if err := r.Hosted.List(ctx, pods, client.InNamespace(metav1.NamespaceSystem), client.MatchingLabels{dnsLabel: dnsApp}, client.Limit(10)); err != nil {
		return 0, fmt.Errorf("listing its pods: %w", err)
	}
	pod := crowded(pods.Items)
	if pod == nil {
		return 0, nil
	}
	list := &corev1.NodeList{}
	if err := r.Hosted.List(ctx, list, client.Limit(nodesToTry)); err != nil {
		return 0, fmt.Errorf("listing nodes: %w", err)
	}
	if !slices.ContainsFunc(list.Items, func(n corev1.Node) bool { return n.Name != pod.Spec.NodeName && takesPods(&n) }) {
		return crowdedRecheck, nil
	}
	err = r.Hosted.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))},
	})
	switch {
	case apierrors.IsTooManyRequests(err), apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return crowdedRecheck, nil
	case errors.Is(err, context.DeadlineExceeded):
		// The client waits, as it is told, while nobody has counted for the budget. That is no failure of ours.
		return crowdedRecheck, nil
	case err != nil:
		return 0, fmt.Errorf("evicting pod %s: %w", pod.Name, err)
	}
	ctrl.LoggerFrom(ctx).Info("moved a replica of the cluster's DNS", "pod", pod.Name, "node", pod.Spec.NodeName)
	return crowdedRecheck, nil
}

// crowded gives the younger of two serving pods when they share a node. While a pod comes or goes the picture changes by itself.
func crowded(pods []corev1.Pod) *corev1.Pod {
	if len(pods) != 2 || pods[0].Spec.NodeName == "" || pods[0].Spec.NodeName != pods[1].Spec.NodeName {
		return nil
	}
	for i := range pods {
		if !pods[i].DeletionTimestamp.IsZero() || !ready(&pods[i]) {
			return nil
		}
	}
	if pods[0].CreationTimestamp.After(pods[1].CreationTimestamp.Time) {
		return &pods[0]
	}
	return &pods[1]
}

func ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// takesPods tells whether the scheduler would put a pod without tolerations there.
func takesPods(n *corev1.Node) bool {
	if n.Spec.Unschedulable || !n.DeletionTimestamp.IsZero() {
		return false
	}
	if slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Effect != corev1.TaintEffectPreferNoSchedule }) {
		return false
	}
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
