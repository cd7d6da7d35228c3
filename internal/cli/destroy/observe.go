package destroy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/progress"
	"hcp.internal/platform/internal/contract/names"
)

// leftovers is what a deletion still has before it.
type leftovers struct {
	hc        *hyperv1.HostedCluster
	nodePools []string
	hcp       *hyperv1.HostedControlPlane // nil: gone
	namespace *corev1.Namespace           // nil: gone, or not of this cluster
}

// released says whether nobody but the CLI holds the HostedCluster, and if not, what deletion waits for.
func released(ctx context.Context, c client.Client, o Options) (progress.State, error) {
	hc := &hyperv1.HostedCluster{}
	err := c.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, hc)
	if apierrors.IsNotFound(err) {
		return progress.Done(), nil
	}
	if err != nil {
		return progress.State{}, err
	}
	if onlyOurs(hc) || hc.DeletionTimestamp.IsZero() {
		return progress.Done(), nil
	}
	left, err := observe(ctx, c, hc)
	if err != nil {
		return progress.State{}, err
	}
	return progress.Waiting("%s", left), nil
}

func observe(ctx context.Context, c client.Client, hc *hyperv1.HostedCluster) (leftovers, error) {
	left := leftovers{hc: hc}
	pools := &hyperv1.NodePoolList{}
	if err := c.List(ctx, pools, client.InNamespace(hc.Namespace), client.Limit(500)); err != nil {
		return left, fmt.Errorf("listing NodePools: %w", err)
	}
	for i := range pools.Items {
		if pools.Items[i].Spec.ClusterName == hc.Name {
			left.nodePools = append(left.nodePools, pools.Items[i].Name)
		}
	}
	namespace, err := controlPlaneNamespace(ctx, c, hc)
	if err != nil || namespace == nil {
		return left, err
	}
	left.namespace = namespace
	hcp := &hyperv1.HostedControlPlane{}
	err = c.Get(ctx, client.ObjectKey{Namespace: namespace.Name, Name: hc.Name}, hcp)
	switch {
	case err == nil:
		left.hcp = hcp
	case !apierrors.IsNotFound(err):
		return left, fmt.Errorf("reading HostedControlPlane %s/%s: %w", namespace.Name, hc.Name, err)
	}
	return left, nil
}

// controlPlaneNamespace reads the namespace of the control plane; nil when there is none, or when it isn't this cluster's:
// two clusters can map to one name, and the loser must not destroy the winner's.
func controlPlaneNamespace(ctx context.Context, c client.Client, hc *hyperv1.HostedCluster) (*corev1.Namespace, error) {
	namespace := &corev1.Namespace{}
	name := names.ControlPlaneNamespace(hc.Namespace, hc.Name)
	if err := c.Get(ctx, client.ObjectKey{Name: name}, namespace); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("reading Namespace %s: %w", name, err)
	}
	if namespace.Annotations[hyperv1.HostedClusterAnnotation] != names.BackReference(hc) {
		return nil, nil
	}
	return namespace, nil
}

// String says what deletion waits for, the innermost first: what is at the front goes before what is behind it can.
func (l leftovers) String() string {
	var parts []string
	if l.hc.Annotations[hyperv1.PrivateCAPIMigrationInProgressAnnotation] == "true" {
		part := "the end of the move of its objects of Cluster API"
		if cond := meta.FindStatusCondition(l.hc.Status.Conditions, hyperv1.PrivateCAPIMigrationProgressing); cond != nil {
			part += " (" + cond.Reason + ": " + cond.Message + ")"
		}
		parts = append(parts, part)
	}
	if len(l.nodePools) > 0 {
		slices.Sort(l.nodePools)
		parts = append(parts, "NodePools "+strings.Join(l.nodePools, ", "))
	}
	if l.hcp != nil {
		part := "HostedControlPlane " + l.hcp.Namespace + "/" + l.hcp.Name
		if cond := meta.FindStatusCondition(l.hc.Status.Conditions, hyperv1.CloudResourcesDestroyed); cond != nil && cond.Status != metav1.ConditionTrue {
			part += " (" + cond.Reason + ": " + cond.Message + ")"
		}
		parts = append(parts, part)
	}
	if l.namespace != nil {
		part := "Namespace " + l.namespace.Name
		for _, cond := range l.namespace.Status.Conditions {
			remains := cond.Type == corev1.NamespaceContentRemaining || cond.Type == corev1.NamespaceFinalizersRemaining || cond.Type == corev1.NamespaceDeletionContentFailure
			if remains && cond.Status == corev1.ConditionTrue {
				part += " (" + cond.Message + ")"
			}
		}
		parts = append(parts, part)
	}
	if cond := meta.FindStatusCondition(l.hc.Status.Conditions, hyperv1.HostedClusterDestroyed); cond != nil {
		part := fmt.Sprintf("%s=%s (%s)", cond.Type, cond.Status, cond.Reason)
		if cond.Status == metav1.ConditionFalse && cond.Message != "" {
			part += ": " + cond.Message
		}
		parts = append(parts, part)
	}
	others := slices.DeleteFunc(slices.Clone(l.hc.Finalizers), func(f string) bool { return f == Finalizer })
	if len(parts) == 0 {
		return "finalizers " + strings.Join(others, ", ")
	}
	return strings.Join(parts, "; ")
}
