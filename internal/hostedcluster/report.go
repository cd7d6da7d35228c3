package hostedcluster

import (
	"context"
	"fmt"

	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/hostedcluster/metrics"
	"hcp.internal/platform/internal/hostedcluster/state"
	"hcp.internal/platform/internal/hostedcluster/status"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/patch"
)

// report writes the status, and remembers on the object that it was available once.
func (r *Reconciler) report(ctx context.Context, before, hc *hyperv1.HostedCluster) error {
	if err := patch.Status(ctx, r.Client, before, hc); err != nil {
		return err
	}
	metrics.ObserveTransitions(before, hc)
	status.Tell(r.Events, before, hc)
	if err := r.Journal.Record(ctx, hc, hc.Status.Conditions); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "keeping the journal; the next pass tries again")
	}
	if err := r.endRestoration(ctx, hc); err != nil {
		return err
	}
	if state.HasBeenAvailable(hc) || !state.IsAvailable(hc) {
		return nil
	}
	if err := r.Client.Patch(ctx, hc, patch.Annotation(hyperv1.HasBeenAvailableAnnotation, ptr.To("true"))); err != nil {
		return fmt.Errorf("annotating HostedCluster %s: %w", names.BackReference(hc), err)
	}
	return nil
}

// endRestoration takes the mark of a restoration off, once the hosted cluster was found whole: others treat it as one in an exception.
func (r *Reconciler) endRestoration(ctx context.Context, hc *hyperv1.HostedCluster) error {
	_, restoring := hc.Annotations[hyperv1.HostedClusterRestoredFromBackupAnnotation]
	if !restoring || !conditions.IsTrue(hc.Status.Conditions, hyperv1.HostedClusterRestoredFromBackup) {
		return nil
	}
	if err := r.Client.Patch(ctx, hc, patch.Annotation(hyperv1.HostedClusterRestoredFromBackupAnnotation, nil)); err != nil {
		return fmt.Errorf("annotating HostedCluster %s: %w", names.BackReference(hc), err)
	}
	return nil
}
