package kit

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
)

// HasKubeconfig says whether the hosted cluster can be reached: its administrator's kubeconfig is published, and a Secret of the control plane that
// holds one exists.
func HasKubeconfig(ctx component.WorkloadContext, secret string) (bool, error) {
	if ctx.HCP.Status.KubeConfig == nil {
		return false, nil
	}
	key := client.ObjectKey{Namespace: ctx.HCP.Namespace, Name: secret}
	err := ctx.Reader.Get(ctx.Context, key, &corev1.Secret{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading Secret %s: %w", key, err)
	}
	return true, nil
}

// WithMachinesAndKubeconfig is the predicate of what looks after machines and their nodes: WithMachines, and HasKubeconfig of a Secret.
func WithMachinesAndKubeconfig(secret func(*hyperv1.HostedControlPlane) string) component.Predicate {
	return func(ctx component.WorkloadContext) (bool, error) {
		if managed, err := WithMachines(ctx); !managed || err != nil {
			return false, err
		}
		return HasKubeconfig(ctx, secret(ctx.HCP))
	}
}
