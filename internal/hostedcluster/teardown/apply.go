package teardown

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane/kubeapiserver"
	"hcp.internal/platform/internal/hostedcluster/sources"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/platform"
)

// Apply carries a plan out.
func (r Remover) Apply(ctx context.Context, left Observed, next Plan) error {
	var errs []error
	if next.annotateCleanup {
		before := left.hcp.DeepCopy()
		left.hcp.Annotations[hyperv1.CleanupCloudResourcesAnnotation] = "true"
		if err := r.Client.Patch(ctx, left.hcp, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("asking HostedControlPlane %s to clean up cloud resources: %w", client.ObjectKeyFromObject(left.hcp), err)
		}
	}
	if next.unpauseCluster {
		if err := unpause(ctx, r.Client, left.cluster); err != nil {
			return err
		}
	}
	remove := func(obj client.Object, opts ...client.DeleteOption) {
		// The UID keeps us from deleting a successor of the same name.
		uid := obj.GetUID()
		err := r.Client.Delete(ctx, obj, append(opts, client.Preconditions{UID: &uid})...)
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			errs = append(errs, fmt.Errorf("deleting %T %s: %w", obj, client.ObjectKeyFromObject(obj), err))
		}
	}
	if next.empty && !left.contained {
		errs = append(errs, r.empty(ctx, left.namespace.Name, nil))
	}
	for _, obj := range next.delete {
		remove(obj)
	}
	if next.empty && left.contained && len(errs) == 0 {
		// The namespace is being deleted by now, so its controller's delay runs, and nobody makes anything new in it. Where somebody refuses that, pods that
		// end would be made anew.
		errs = append(errs, r.empty(ctx, left.namespace.Name, []client.DeleteAllOfOption{client.GracePeriodSeconds(podGrace)}))
		next.hurry = nil // they were told
	}
	for _, pod := range next.hurry {
		remove(pod, client.GracePeriodSeconds(podGrace))
	}
	if next.poke {
		poked := patch.Annotation(pokedAnnotation, ptr.To("true"))
		errs = append(errs, client.IgnoreNotFound(r.Client.Patch(ctx, left.namespace, poked)))
	}
	if next.stripFinalizers {
		if err := kubeapiserver.End(ctx, r.Client, left.hcp.Namespace); err != nil { // as the control-plane-operator would have
			ctrl.LoggerFrom(ctx).Error(err, "the control plane takes longer to go")
		}
		ctrl.LoggerFrom(ctx).Info("removing the finalizers of a HostedControlPlane that its operator does not remove", "finalizers", left.hcp.Finalizers)
		errs = append(errs, patch.RemoveFinalizer(ctx, r.Client, left.hcp, hyperv1.HostedControlPlaneFinalizer))
	}
	if next.orphans {
		errs = append(errs, r.deleteOrphans(ctx, left.hc))
	}
	for _, s := range next.strip {
		ctrl.LoggerFrom(ctx).Info("removing a finalizer that nobody else removes", "object", client.ObjectKeyFromObject(s.obj), "finalizer", s.finalizer)
		errs = append(errs, patch.RemoveFinalizer(ctx, r.Client, s.obj, s.finalizer))
	}
	if next.stripCluster {
		ctrl.LoggerFrom(ctx).Info("removing the finalizer of a Cluster that its manager does not remove")
		errs = append(errs, patch.RemoveFinalizer(ctx, r.Client, left.cluster, clusterv1.ClusterFinalizer))
	}
	return errors.Join(errs...)
}

// empty deletes what makes pods in a namespace, and what takes a while to go: volumes, load balancers. Whoever makes them anew is gone, or
// goes with it.
//
// Where nobody is served any more, pods are told first, and how little time they have (soon): once a kubelet waits for the 135 s of a
// kube-apiserver, which the collector of garbage would tell it, it hears of no shorter time. What a workload made meanwhile is told after
// it.
func (r Remover) empty(ctx context.Context, namespace string, soon []client.DeleteAllOfOption) error {
	var errs []error
	all := func(kind client.Object, opts ...client.DeleteAllOfOption) {
		opts = append(opts, client.InNamespace(namespace), client.PropagationPolicy(metav1.DeletePropagationBackground))
		if err := r.Client.DeleteAllOf(ctx, kind, opts...); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("deleting every %T of namespace %s: %w", kind, namespace, err))
		}
	}
	if len(soon) > 0 {
		all(&corev1.Pod{}, soon...)
	} else if err := r.Client.Create(ctx, noPods(namespace)); err != nil && !apierrors.IsAlreadyExists(err) {
		// Somebody may make workloads for ever: the operator of packages does, for an add-on beside the control plane.
		errs = append(errs, fmt.Errorf("closing namespace %s for new pods: %w", namespace, err))
	}
	for _, kind := range []client.Object{&appsv1.Deployment{}, &appsv1.StatefulSet{}, &batchv1.CronJob{}, &batchv1.Job{}, &appsv1.ReplicaSet{}} {
		all(kind)
	}
	all(&corev1.Pod{}, soon...)
	all(&corev1.Service{})
	all(&corev1.PersistentVolumeClaim{})
	return errors.Join(errs...)
}

// noPods is a quota that no new pod passes.
func noPods(namespace string) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "no-pods-while-destroyed"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}},
	}
}

// Sweep removes what the namespace does not take with it: cluster-scoped objects, things of the platform, and our annotations on the user's
// objects.
func (r Remover) Sweep(ctx context.Context, hc *hyperv1.HostedCluster) error {
	var errs []error
	if p, err := platform.For(hc.Spec.Platform.Type); err == nil {
		errs = append(errs, p.DeleteCredentials(ctx, r.Client, hc, names.NamespaceOf(hc)))
		if k, ok := p.(platform.PolicyKeeper); ok {
			errs = append(errs, k.DropPolicy(ctx, r.Live, hc, names.NamespaceOf(hc), time.Now()))
		}
	}
	owned := client.MatchingLabels{names.OwnerNamespaceLabel: hc.Namespace, names.OwnerNameLabel: hc.Name}
	for _, obj := range []client.Object{&rbacv1.ClusterRoleBinding{}, &rbacv1.ClusterRole{}} {
		errs = append(errs, r.deleteOwned(ctx, obj, owned))
	}
	return errors.Join(append(errs, sources.Unmark(ctx, r.Client, r.Live, hc))...)
}

// deleteOwned deletes all objects of a kind with the labels, one by one: install grants no right to delete collections.
func (r Remover) deleteOwned(ctx context.Context, obj client.Object, labels client.MatchingLabels) error {
	gvk, err := r.Client.GroupVersionKindFor(obj)
	if err != nil {
		return err
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk)
	if err := r.Live.List(ctx, list, labels); err != nil {
		return fmt.Errorf("listing %ss of %v: %w", gvk.Kind, labels, err)
	}
	var errs []error
	for i := range list.Items {
		item := &list.Items[i]
		if err := r.Client.Delete(ctx, item, client.Preconditions{UID: &item.UID}); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			errs = append(errs, fmt.Errorf("deleting %s %s: %w", gvk.Kind, item.Name, err))
		}
	}
	return errors.Join(errs...)
}

// unpause lets Cluster API work on a cluster again.
func unpause(ctx context.Context, c client.Client, cluster *clusterv1.Cluster) error {
	body := []byte(`{"spec":{"paused":false}}`)
	if err := c.Patch(ctx, cluster.DeepCopy(), client.RawPatch(types.MergePatchType, body), client.FieldOwner(names.HypershiftOperator)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("unpausing Cluster %s: %w", client.ObjectKeyFromObject(cluster), err)
	}
	return nil
}

// deleteOrphans lets the platform take the finalizers off machines.
func (r Remover) deleteOrphans(ctx context.Context, hc *hyperv1.HostedCluster) error {
	p, err := platform.For(hc.Spec.Platform.Type)
	if err != nil || !r.ClusterAPI {
		return nil //nolint:nilerr // because a platform that was refused has made no machines
	}
	orphans, ok := p.(platform.OrphanDeleter)
	if !ok {
		return nil
	}
	return orphans.DeleteOrphanedMachines(ctx, r.Client, hc, names.NamespaceOf(hc))
}
