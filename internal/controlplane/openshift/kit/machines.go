package kit

import (
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
)

// WithMachinesAndKubeconfig is the predicate of what looks after machines and their nodes: WithMachines, and component.HasKubeconfig of a Secret.
func WithMachinesAndKubeconfig(secret func(*hyperv1.HostedControlPlane) string) component.Predicate {
	return func(ctx component.WorkloadContext) (bool, error) {
		if managed, err := WithMachines(ctx); !managed || err != nil {
			return false, err
		}
		return component.HasKubeconfig(ctx, secret(ctx.HCP))
	}
}
