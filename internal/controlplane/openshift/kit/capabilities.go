package kit

import (
	"slices"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/payload"
	"hcp.internal/platform/internal/controlplane/component"
)

// Capabilities are those that the hosted cluster has, sorted.
func Capabilities(hcp *hyperv1.HostedControlPlane) []string { return payload.Capabilities(hcp) }

// HasCapability says whether the hosted cluster has one.
func HasCapability(hcp *hyperv1.HostedControlPlane, name hyperv1.OptionalCapability) bool {
	return payload.HasCapability(hcp, name)
}

// WithCapability is the predicate of a component, or of a manifest, that goes with a capability.
func WithCapability(name hyperv1.OptionalCapability) component.Predicate {
	return func(ctx component.WorkloadContext) (bool, error) { return HasCapability(ctx.HCP, name), nil }
}

// OnPlatform is the predicate of what exists on some platforms only.
func OnPlatform(platforms ...hyperv1.PlatformType) component.Predicate {
	return func(ctx component.WorkloadContext) (bool, error) {
		return slices.Contains(platforms, ctx.HCP.Spec.Platform.Type), nil
	}
}

// NotOnPlatform is the predicate of what some platforms lack.
func NotOnPlatform(platforms ...hyperv1.PlatformType) component.Predicate {
	return func(ctx component.WorkloadContext) (bool, error) {
		return !slices.Contains(platforms, ctx.HCP.Spec.Platform.Type), nil
	}
}

// OAuthEnabled says whether the hosted cluster has OpenShift's own OAuth server, that is, unless users come from an OIDC provider.
func OAuthEnabled(hcp *hyperv1.HostedControlPlane) bool { return payload.OAuthEnabled(hcp) }

// WithOAuth is OAuthEnabled as a predicate.
func WithOAuth(ctx component.WorkloadContext) (bool, error) { return OAuthEnabled(ctx.HCP), nil }
