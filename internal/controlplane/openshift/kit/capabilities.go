package kit

import (
	"slices"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
)

// standardCapabilities are what a hosted cluster has when spec.capabilities says nothing: those of a current payload without what hosted clusters
// have no use for (baremetal, ClusterAPI, CompatibilityRequirements).
var standardCapabilities = []string{
	"Build", "CSISnapshot", "CloudControllerManager", "CloudCredential", "Console", "DeploymentConfig", "ImageRegistry", "Ingress", "Insights", "MachineAPI",
	"NodeTuning", "OperatorLifecycleManager", "OperatorLifecycleManagerV1", "Storage", "marketplace", "openshift-samples",
}

// Capabilities are those that the hosted cluster has, sorted.
func Capabilities(hcp *hyperv1.HostedControlPlane) []string {
	set := slices.Clone(standardCapabilities)
	if c := hcp.Spec.Capabilities; c != nil {
		set = slices.DeleteFunc(set, func(name string) bool { return slices.Contains(c.Disabled, hyperv1.OptionalCapability(name)) })
		for _, name := range c.Enabled {
			set = append(set, string(name))
		}
	}
	slices.Sort(set)
	return slices.Compact(set)
}

// HasCapability says whether the hosted cluster has one.
func HasCapability(hcp *hyperv1.HostedControlPlane, name hyperv1.OptionalCapability) bool {
	return slices.Contains(Capabilities(hcp), string(name))
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
func OAuthEnabled(hcp *hyperv1.HostedControlPlane) bool {
	c := hcp.Spec.Configuration
	return c == nil || c.Authentication == nil || c.Authentication.Type != configv1.AuthenticationTypeOIDC
}

// WithOAuth is OAuthEnabled as a predicate.
func WithOAuth(ctx component.WorkloadContext) (bool, error) { return OAuthEnabled(ctx.HCP), nil }
