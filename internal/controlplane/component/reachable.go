package component

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// HasKubeconfig says whether the hosted cluster can be reached: its administrator's kubeconfig is published, and a Secret of the control plane that
// holds one exists.
func HasKubeconfig(ctx WorkloadContext, secret string) (bool, error) {
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
