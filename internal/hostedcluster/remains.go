package hostedcluster

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/read"
	"hcp.internal/platform/internal/platform"
)

// remains is what of a hosted cluster is still there.
type remains struct {
	hc        *hyperv1.HostedCluster
	hcp       *hyperv1.HostedControlPlane
	namespace *corev1.Namespace
	pools     []hyperv1.NodePool
	pods      []metav1.PartialObjectMetadata // of the namespace, once the control plane is gone
	operator  *appsv1.Deployment             // the control-plane-operator
	cluster   *clusterv1.Cluster
	manager   *appsv1.Deployment // of Cluster API, read when there is a cluster
	provider  *appsv1.Deployment // of machines, read with the manager
	// contained: everything of the cluster lies in its namespace.
	contained bool
}

// remains reads what is left, from the API server itself: a stale read would end a deletion too early.
func (r *Reconciler) remains(ctx context.Context, hc *hyperv1.HostedCluster) (remains, error) {
	left := remains{hc: hc}
	ns := names.NamespaceOf(hc)
	var err error
	if left.pools, err = nodePools(ctx, r.Live, hc); err != nil {
		return left, err
	}
	key := client.ObjectKey{Namespace: ns, Name: hc.Name}
	if left.hcp, err = read.Optional(ctx, r.Live, key, &hyperv1.HostedControlPlane{}); err != nil {
		return left, err
	}
	if left.hcp != nil && left.hcp.Annotations[hyperv1.HostedClusterAnnotation] != names.BackReference(hc) {
		left.hcp = nil // another cluster's, whose namespace has the name that ours would have
	}
	if err := r.remainingCluster(ctx, hc, &left); err != nil {
		return left, err
	}
	if left.namespace, err = read.Optional(ctx, r.Live, client.ObjectKey{Name: ns}, &corev1.Namespace{}); err != nil {
		return left, err
	}
	if left.hcp == nil && left.cluster == nil && len(left.pools) == 0 && left.namespace != nil && left.namespace.Annotations[hyperv1.HostedClusterAnnotation] == names.BackReference(hc) {
		if left.pods, err = r.podsOf(ctx, ns); err != nil {
			return left, err
		}
	}
	if left.hcp != nil {
		if left.operator, err = read.Optional(ctx, r.Live, client.ObjectKey{Namespace: ns, Name: names.ControlPlaneOperator}, &appsv1.Deployment{}); err != nil {
			return left, err
		}
	}
	p, err := platform.For(hc.Spec.Platform.Type)
	if err != nil {
		left.contained = true
		return left, nil //nolint:nilerr // because it was refused, so it has made nothing
	}
	c, ok := p.(platform.Contained)
	left.contained = ok && c.Contained()
	return left, nil
}

// podsOf lists the pods of a control plane that is gone.
func (r *Reconciler) podsOf(ctx context.Context, ns string) ([]metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	if err := r.Live.List(ctx, list, client.InNamespace(ns)); err != nil {
		return nil, fmt.Errorf("listing pods of namespace %s: %w", ns, err)
	}
	return list.Items, nil
}
