package teardown

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
	"hcp.internal/platform/internal/controlplane/capiprovider"
	"hcp.internal/platform/internal/controlplane/clusterapi"
	"hcp.internal/platform/internal/kube/read"
	"hcp.internal/platform/internal/operator"
	"hcp.internal/platform/internal/platform"
)

// Observed is what of a hosted cluster is still there.
type Observed struct {
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
	// orphanable: the platform knows when machines are left alone.
	orphanable bool
	// beside is what the platform has besides machines, when it is a Dismantler.
	beside     []client.Object
	dismantler platform.Dismantler
}

// Remover takes away what was made for a HostedCluster, move by move.
type Remover struct {
	Client client.Client
	// Live is uncached: a stale read would end a deletion too early.
	Live client.Reader
	// clusterAPI: the management cluster serves the kinds of Cluster API.
	ClusterAPI bool
}

// Observe reads what is left, from the API server itself: a stale read would end a deletion too early.
func (r Remover) Observe(ctx context.Context, hc *hyperv1.HostedCluster) (Observed, error) {
	left := Observed{hc: hc}
	ns := names.NamespaceOf(hc)
	var err error
	if left.pools, err = operator.NodePoolsOf(ctx, r.Live, hc); err != nil {
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
	_, left.orphanable = p.(platform.OrphanDeleter)
	if d, ok := p.(platform.Dismantler); ok && len(left.pools) == 0 && left.namespace != nil {
		left.dismantler = d
		left.beside, err = d.Remaining(ctx, r.Live, hc, ns)
	}
	return left, err
}

// HostedControlPlane is that of the cluster; nil when there is none any more.
func (r Observed) HostedControlPlane() *hyperv1.HostedControlPlane { return r.hcp }

// podsOf lists the pods of a control plane that is gone.
func (r Remover) podsOf(ctx context.Context, ns string) ([]metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	if err := r.Live.List(ctx, list, client.InNamespace(ns)); err != nil {
		return nil, fmt.Errorf("listing pods of namespace %s: %w", ns, err)
	}
	return list.Items, nil
}

// remainingCluster reads the CAPI Cluster and its manager.
func (r Remover) remainingCluster(ctx context.Context, hc *hyperv1.HostedCluster, left *Observed) (err error) {
	if !r.ClusterAPI || hc.Spec.InfraID == "" {
		return nil
	}
	ns := names.NamespaceOf(hc)
	if left.cluster, err = read.Optional(ctx, r.Live, client.ObjectKey{Namespace: ns, Name: hc.Spec.InfraID}, &clusterv1.Cluster{}); err != nil || left.cluster == nil {
		return err
	}
	if left.cluster.Annotations[hyperv1.HostedClusterAnnotation] != names.BackReference(hc) {
		left.cluster = nil
		return nil
	}
	if left.manager, err = read.Optional(ctx, r.Live, client.ObjectKey{Namespace: ns, Name: clusterapi.Name}, &appsv1.Deployment{}); err != nil {
		return err
	}
	left.provider, err = read.Optional(ctx, r.Live, client.ObjectKey{Namespace: ns, Name: capiprovider.Name}, &appsv1.Deployment{})
	return err
}
