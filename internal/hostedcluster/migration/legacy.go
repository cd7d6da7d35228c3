package migration

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/read"
)

// legacyPeriod is how often it is looked whether that operator still has something to do. Nobody waits for it.
const legacyPeriod = time.Minute

// legacyDone tells that no hosted cluster is left to the operator for those from before private types: each says that it is another's, and none
// is asked back, or was moved so recently that it may be.
func legacyDone(clusters []hyperv1.HostedCluster, now time.Time) bool {
	for i := range clusters {
		a := clusters[i].Annotations
		if MayReturn(a, now) {
			return false
		}
		scope, private := a[hyperv1.HostedClusterScopeAnnotation], a[hyperv1.PrivateCAPITypesAnnotation] == "true"
		moving := a[hyperv1.PrivateCAPIMigrationInProgressAnnotation] == "true"
		if moving || scope == hyperv1.LegacyScope || (scope == "" && !private) {
			return false
		}
	}
	return true
}

// EndLegacy deletes the operator for hosted clusters from before private types once there are none; it looks every minute until ctx ends. The next installation
// leaves out what that operator needed besides: definitions and rights.
func EndLegacy(ctx context.Context, c client.Client, live client.Reader, namespace string) {
	wait.JitterUntilWithContext(ctx, func(ctx context.Context) {
		if err := endLegacyOnce(ctx, c, live, namespace); err != nil && ctx.Err() == nil {
			ctrl.LoggerFrom(ctx).Error(err, "removing the operator for hosted clusters from before private types")
		}
	}, legacyPeriod, 0.1, true)
}

func endLegacyOnce(ctx context.Context, c client.Client, live client.Reader, namespace string) error {
	d, err := read.Optional(ctx, live, client.ObjectKey{Namespace: namespace, Name: LegacyDeployment}, &appsv1.Deployment{})
	if d == nil || err != nil {
		return err
	}
	// Not from a cache: one that misses a hosted cluster would leave it alone.
	list := &hyperv1.HostedClusterList{}
	if err := live.List(ctx, list); err != nil {
		return fmt.Errorf("listing HostedClusters: %w", err)
	}
	if !legacyDone(list.Items, time.Now()) {
		return nil
	}
	if err := c.Delete(ctx, d, client.Preconditions{UID: &d.UID}); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting Deployment %s/%s: %w", namespace, LegacyDeployment, err)
	}
	ctrl.LoggerFrom(ctx).Info("removed the operator for hosted clusters from before private types: there are none left", "deployment", LegacyDeployment)
	return nil
}
