package inplace

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// report writes the annotations of the MachineSet, when they differ, in one patch for the version that was read: the target may
// have changed meanwhile, and must not be noted as reached then.
func (r *Reconciler) report(ctx context.Context, set *clusterv1.MachineSet, w world, plan Plan) error {
	before := set.DeepCopy()
	want := map[string]*string{
		hyperv1.NodePoolUpgradeInProgressTrueAnnotation:  plan.True,
		hyperv1.NodePoolUpgradeInProgressFalseAnnotation: plan.False,
	}
	if plan.Complete {
		want[hyperv1.NodePoolCurrentConfigVersionAnnotation] = &w.Target
	}
	changed := false
	for key, value := range want {
		have := annotation(set, key)
		switch {
		case value == nil && have != nil:
			delete(set.Annotations, key)
			changed = true
		case value != nil && (have == nil || *have != *value):
			metav1.SetMetaDataAnnotation(&set.ObjectMeta, key, *value)
			changed = true
		}
	}
	if !changed {
		return nil
	}
	if err := r.Management.Patch(ctx, set, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("reporting progress: %w", err)
	}
	if plan.Complete {
		ctrl.LoggerFrom(ctx).Info("machines are changed", "machineSet", klog.KObj(set), "version", w.Target)
	}
	return nil
}
