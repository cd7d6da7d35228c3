package hostedcontrolplane

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/releaseimage"
	"hcp.internal/platform/internal/release"
)

// lookupTimeout bounds how long a pass waits for a registry. The provider goes on reading in the background, so that a slow answer is there for a
// later pass.
const lookupTimeout = 30 * time.Second

// Images says which images are used in place of, or besides, those of a release.
type Images struct {
	// Overrides replace any tag.
	Overrides map[string]string
	// Own holds images for tags that a release may lack.
	Own map[string]string
}

// operatorTag is the image of this project's programs as it was when a Kubernetes release was built.
const operatorTag = "controlplane-operator"

// ownTags are the tags of our own programs. A release that has operatorTag has the rest of them in the same image; so an upgrade of the operator
// restarts no control plane.
var ownTags = []string{operatorTag, "hosted-cluster-config-operator", "token-minter", "availability-prober", "socks5-proxy", "controlplane-pki-operator"}

// apply gives a release with these images. r is shared with others and stays as it is.
func (i Images) apply(r *release.Release) *release.Release {
	out := *r
	out.Images = maps.Clone(r.Images)
	if out.Images == nil {
		out.Images = map[string]string{}
	}
	inRelease, hasOperator := r.ImageFor(operatorTag)
	for _, tag := range ownTags {
		if _, ok := out.ImageFor(tag); ok {
			continue
		}
		if image := i.Own[tag]; hasOperator {
			out.Images[tag] = inRelease
		} else if image != "" {
			out.Images[tag] = image
		}
	}
	maps.Copy(out.Images, i.Overrides)
	return &out
}

// releases of one pass.
type releases struct {
	controlPlane, user       *release.Release
	controlPlaneErr, userErr error
}

// lookup reads both releases.
func (r *Reconciler) lookup(ctx context.Context, hcp *hyperv1.HostedControlPlane) releases {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	var out releases
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: hcp.Namespace, Name: names.PullSecret}
	switch err := r.Client.Get(ctx, key, secret); {
	case apierrors.IsNotFound(err):
		out.controlPlaneErr = fmt.Errorf("waiting for pull secret %s, which the hypershift-operator copies from the HostedCluster's", key)
	case err != nil:
		out.controlPlaneErr = fmt.Errorf("reading pull secret %s: %w", key, err)
	}
	if out.controlPlaneErr != nil {
		out.userErr = out.controlPlaneErr
		return out
	}
	pull := secret.Data[corev1.DockerConfigJsonKey]
	provider, err := r.trusting(ctx, hcp)
	if err != nil {
		out.controlPlaneErr, out.userErr = err, err
		return out
	}
	out.controlPlane, out.controlPlaneErr = r.release(ctx, provider, releaseimage.ControlPlane(&hcp.Spec), pull)
	if hcp.Spec.ReleaseImage == releaseimage.ControlPlane(&hcp.Spec) {
		out.user, out.userErr = out.controlPlane, out.controlPlaneErr
		return out
	}
	out.user, out.userErr = r.release(ctx, provider, hcp.Spec.ReleaseImage, pull)
	return out
}

// trusting is the provider of releases with the authorities that the user wants trusted. They may come later than the control plane.
func (r *Reconciler) trusting(ctx context.Context, hcp *hyperv1.HostedControlPlane) (release.Provider, error) {
	return trustingOf(ctx, r, hcp, r.Releases)
}

// trustingOf is trusting for whatever asks registries.
func trustingOf[P any](ctx context.Context, r *Reconciler, hcp *hyperv1.HostedControlPlane, provider P) (P, error) {
	if hcp.Spec.AdditionalTrustBundle == nil {
		return provider, nil
	}
	bundle, key := &corev1.ConfigMap{}, client.ObjectKey{Namespace: hcp.Namespace, Name: hcp.Spec.AdditionalTrustBundle.Name}
	if err := r.Client.Get(ctx, key, bundle); client.IgnoreNotFound(err) != nil {
		return provider, fmt.Errorf("reading the trust bundle %s: %w", key, err)
	}
	return release.WithTrustOf(provider, []byte(bundle.Data["ca-bundle.crt"])), nil
}

func (r *Reconciler) release(ctx context.Context, provider release.Provider, image string, pullSecret []byte) (*release.Release, error) {
	found, err := provider.Lookup(ctx, image, pullSecret)
	if err != nil {
		return nil, fmt.Errorf("reading release %q: %w", image, err)
	}
	return r.Images.apply(found), nil
}
