package hostedcluster

import (
	"context"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/hostedcluster/state"
	"hcp.internal/platform/internal/pause"
	"hcp.internal/platform/internal/platform"
)

// domainRecheck is when a base domain that could not be found is looked for again.
const domainRecheck = 10 * time.Second

// findDomain stores the base domain that the platform finds for a HostedCluster without one, or notes for the conditions why there is none. Only OpenShift payloads
// have a router that could serve it, and one that has come up without goes on without.
func (r *Reconciler) findDomain(ctx context.Context, obs *state.Observed) error {
	hc := obs.HC
	finder, ok := obs.Platform.(platform.DomainFinder)
	if !ok || hc.Spec.DNS.BaseDomain != "" || !obs.Payload() || state.HasBeenAvailable(hc) || pause.At(hc.Spec.PausedUntil, r.Clock.Now()).Active {
		return nil
	}
	domain, err := finder.BaseDomain(ctx, r.Client, r.Live, hc)
	if obs.DomainErr = err; err != nil || domain == "" {
		return nil //nolint:nilerr // because a condition says it
	}
	before := hc.DeepCopy()
	hc.Spec.DNS.BaseDomain = hyperv1.BaseDomain(domain)
	if err := r.Client.Patch(ctx, hc, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("giving HostedCluster %s its base domain: %w", names.BackReference(hc), err)
	}
	ctrl.LoggerFrom(ctx).Info("found the base domain of a hosted cluster", "baseDomain", domain)
	return nil
}
