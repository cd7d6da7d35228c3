package kit

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
)

// Certificate is for a Secret that the control plane's PKI makes, and that is listed among the objects of a component all the same: it is left as it is
// found. A preview without certificates shows it without any.
func Certificate() []component.ManifestOption {
	return []component.ManifestOption{
		component.SkipWhen(func(ctx component.WorkloadContext) (bool, error) {
			_, disabled := ctx.HCP.Annotations[hyperv1.DisablePKIReconciliationAnnotation]
			return disabled, nil // somebody else makes it
		}),
		component.Locked(),
		component.AdaptManifest(func(ctx component.WorkloadContext, secret *corev1.Secret) error {
			live := &corev1.Secret{}
			err := ctx.Reader.Get(ctx.Context, client.ObjectKeyFromObject(secret), live)
			switch {
			case err == nil:
				secret.ResourceVersion, secret.Labels, secret.Annotations, secret.OwnerReferences = live.ResourceVersion, live.Labels, live.Annotations, live.OwnerReferences
				secret.Type, secret.Data = live.Type, live.Data
				return nil
			case apierrors.IsNotFound(err) && ctx.Preview():
				return nil
			case apierrors.IsNotFound(err):
				return fmt.Errorf("waiting for Secret %s, which the control plane's PKI makes", client.ObjectKeyFromObject(secret))
			}
			return fmt.Errorf("reading Secret %s: %w", client.ObjectKeyFromObject(secret), err)
		}),
	}
}
