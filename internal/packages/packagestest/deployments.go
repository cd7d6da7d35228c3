package packagestest

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// RunDeployments says of every Deployment that its pods run, in place of controllers and nodes, until the test ends.
func (w *World) RunDeployments(t testing.TB) {
	t.Helper()
	go func() {
		_ = wait.PollUntilContextCancel(t.Context(), 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			list := &appsv1.DeploymentList{}
			if w.Client.List(ctx, list, client.Limit(500)) != nil {
				return false, nil //nolint:nilerr // because it is tried again
			}
			for i := range list.Items {
				d := &list.Items[i]
				if d.Status.ObservedGeneration == d.Generation || d.DeletionTimestamp != nil {
					continue
				}
				n := *d.Spec.Replicas
				d.Status = appsv1.DeploymentStatus{
					ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
					Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}},
				}
				_ = w.Client.Status().Update(ctx, d) // whoever changed it meanwhile is seen the next time
			}
			return false, nil
		})
	}()
}
