package destroy

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/progress"
)

// stripChildren takes finalizers off everything below the HostedCluster that could hold its deletion, and deletes it. What
// the finalizers guarded may be left behind: that is what --force says.
func stripChildren(ctx context.Context, c client.Client, o Options, p *progress.Printer) error {
	hc := &hyperv1.HostedCluster{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, hc); err != nil {
		return client.IgnoreNotFound(err)
	}
	var errs []error
	pools := &hyperv1.NodePoolList{}
	if err := c.List(ctx, pools, client.InNamespace(hc.Namespace), client.Limit(500)); err != nil {
		return fmt.Errorf("listing NodePools: %w", err)
	}
	for i := range pools.Items {
		if pools.Items[i].Spec.ClusterName == hc.Name {
			errs = append(errs, stripAndDelete(ctx, c, p, &pools.Items[i]))
		}
	}
	namespace, err := controlPlaneNamespace(ctx, c, hc)
	if err != nil || namespace == nil {
		return errors.Join(append(errs, err)...)
	}
	planes := &hyperv1.HostedControlPlaneList{}
	errs = append(errs, c.List(ctx, planes, client.InNamespace(namespace.Name), client.Limit(500)))
	for i := range planes.Items {
		errs = append(errs, stripAndDelete(ctx, c, p, &planes.Items[i]))
	}
	deployments := &appsv1.DeploymentList{}
	errs = append(errs, c.List(ctx, deployments, client.InNamespace(namespace.Name), client.Limit(500)))
	for i := range deployments.Items {
		if len(deployments.Items[i].Finalizers) > 0 {
			errs = append(errs, stripAndDelete(ctx, c, p, &deployments.Items[i]))
		}
	}
	if namespace.DeletionTimestamp.IsZero() {
		p.Printf("deleting Namespace %s", namespace.Name)
		errs = append(errs, client.IgnoreNotFound(c.Delete(ctx, namespace, client.Preconditions{UID: &namespace.UID})))
	}
	return errors.Join(errs...)
}

// stripHostedCluster takes the finalizers of others off the HostedCluster: for when there is no operator any more.
func stripHostedCluster(ctx context.Context, c client.Client, o Options, p *progress.Printer) error {
	key := client.ObjectKey{Namespace: o.Namespace, Name: o.Name}
	return retryConflict(ctx, c, key, func(hc *hyperv1.HostedCluster) error {
		if hc.DeletionTimestamp.IsZero() {
			return nil
		}
		before := hc.DeepCopy()
		hc.Finalizers = slices.DeleteFunc(hc.Finalizers, func(f string) bool { return f != Finalizer })
		if len(hc.Finalizers) == len(before.Finalizers) {
			return nil
		}
		p.Printf("taking finalizers %v off HostedCluster %s", before.Finalizers, key)
		return c.Patch(ctx, hc, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
}

// stripAndDelete deletes an object without waiting for whoever has a finalizer on it.
func stripAndDelete(ctx context.Context, c client.Client, p *progress.Printer, obj client.Object) error {
	what := connect.DescribeIn(c.Scheme(), obj)
	uid := obj.GetUID()
	if err := c.Delete(ctx, obj, client.Preconditions{UID: &uid}); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("deleting %s: %w", what, err)
	}
	if len(obj.GetFinalizers()) == 0 {
		return nil
	}
	p.Printf("taking finalizers %v off %s", obj.GetFinalizers(), what)
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		if obj.GetUID() != uid {
			return nil
		}
		before := obj.DeepCopyObject().(client.Object)
		obj.SetFinalizers(nil)
		return c.Patch(ctx, obj, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("taking finalizers off %s: %w", what, err)
	}
	return nil
}

// retryConflict calls f with a fresh HostedCluster until there is no conflict. One that is gone is no error.
func retryConflict(ctx context.Context, c client.Client, key client.ObjectKey, f func(*hyperv1.HostedCluster) error) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		hc := &hyperv1.HostedCluster{}
		if err := c.Get(ctx, key, hc); err != nil {
			return err
		}
		return f(hc)
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("changing HostedCluster %s: %w", key, err)
	}
	return nil
}
