package fleet

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	schedulingv1alpha1 "hcp.internal/api/scheduling/v1alpha1"
	"hcp.internal/platform/internal/contract/scope"
	"hcp.internal/platform/internal/kube/read"
	"hcp.internal/platform/internal/pause"
	"hcp.internal/platform/internal/sizing"
)

// configuration reads the sizes. ok is false when there are none that make sense: everything stays as it is then.
func configuration(ctx context.Context, c client.Reader) (spec *schedulingv1alpha1.ClusterSizingConfigurationSpec, ok bool, err error) {
	spec, problem, err := sizes(ctx, c)
	return spec, spec != nil && problem == nil, err
}

// sizes reads them, and what is wrong with them; nil: there are none yet.
func sizes(ctx context.Context, c client.Reader) (spec *schedulingv1alpha1.ClusterSizingConfigurationSpec, problem, err error) {
	config, err := read.Optional(ctx, c, client.ObjectKey{Name: sizing.ConfigurationName}, &schedulingv1alpha1.ClusterSizingConfiguration{})
	if err != nil || config == nil {
		return nil, nil, err
	}
	return &config.Spec, sizing.Check(&config.Spec), nil
}

// hosted reads a HostedCluster that may be changed: not another operator's, not one that is paused, being deleted, or gone. again is when a pause ends.
func hosted(ctx context.Context, c client.Reader, key client.ObjectKey, identity scope.Identity, now time.Time) (hc *hyperv1.HostedCluster, again time.Duration, err error) {
	hc = &hyperv1.HostedCluster{}
	if err := c.Get(ctx, key, hc); apierrors.IsNotFound(err) {
		return nil, 0, nil
	} else if err != nil {
		return nil, 0, fmt.Errorf("reading HostedCluster %s: %w", key, err)
	}
	if !hc.DeletionTimestamp.IsZero() || identity.Owns(hc.Annotations) != scope.Ours {
		return nil, 0, nil
	}
	if p := pause.At(hc.Spec.PausedUntil, now); p.Active {
		return nil, p.Left(now), nil
	}
	return hc, 0, nil
}
