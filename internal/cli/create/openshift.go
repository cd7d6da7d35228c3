package create

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"

	"hcp.internal/platform/internal/cli/install"
	"hcp.internal/platform/internal/cli/version"
)

// dualClusterCIDRs and dualServiceCIDRs are the default networks of clusters with both address families.
func dualClusterCIDRs() []string { return []string{"10.132.0.0/14", "fd01::/48"} }
func dualServiceCIDRs() []string { return []string{"172.31.0.0/16", "fd02::/112"} }

// Bounds of the MTU that the API has.
const (
	leastMTU = 576
	mostMTU  = 9216
)

// capabilities of OpenShift that can be switched.
var capabilities = []hyperv1.OptionalCapability{
	hyperv1.ImageRegistryCapability, hyperv1.OpenShiftSamplesCapability, hyperv1.InsightsCapability, hyperv1.BaremetalCapability,
	hyperv1.ConsoleCapability, hyperv1.NodeTuningCapability, hyperv1.IngressCapability,
}

// openShiftTag is a tag of an OpenShift release, such as 4.18.3-x86_64 or 5.0.0-rc.1; releases of Kubernetes begin with 1.
var openShiftTag = regexp.MustCompile(`:([4-9]|[1-9][0-9]+)\.[0-9]+\.[0-9][^/:]*$`)

// isOpenShift says whether a release image has the tag of an OpenShift release. Without such a tag only its content tells.
func isOpenShift(image string) bool {
	image, _, _ = strings.Cut(image, "@")
	return openShiftTag.MatchString(image)
}

// validateOpenShift checks what only OpenShift releases know.
func (o Options) validateOpenShift() []error {
	var errs []error
	sets := []configv1.FeatureSet{configv1.Default, configv1.TechPreviewNoUpgrade, configv1.DevPreviewNoUpgrade, configv1.CustomNoUpgrade, configv1.OKD}
	if !slices.Contains(sets, o.FeatureSet) {
		errs = append(errs, fmt.Errorf("--feature-set %q: must be one of %v", o.FeatureSet, sets[1:]))
	}
	for flag, names := range map[string][]string{"enable": o.EnabledCapabilities, "disable": o.DisabledCapabilities} {
		for _, name := range names {
			if !slices.Contains(capabilities, hyperv1.OptionalCapability(name)) {
				errs = append(errs, fmt.Errorf("--%s-cluster-capabilities %q: must be some of %v", flag, name, capabilities))
			}
			if flag == "enable" && slices.Contains(o.DisabledCapabilities, name) {
				errs = append(errs, fmt.Errorf("--enable-cluster-capabilities %q: it is also in --disable-cluster-capabilities: remove it from one of the two", name))
			}
		}
	}
	placements := []hyperv1.OLMCatalogPlacement{"", hyperv1.ManagementOLMCatalogPlacement, hyperv1.GuestOLMCatalogPlacement}
	if !slices.Contains(placements, o.OLMCatalogPlacement) {
		errs = append(errs, fmt.Errorf("--olm-catalog-placement %q: must be one of %v", o.OLMCatalogPlacement, placements[1:]))
	}
	if o.OVNKubernetesMTU != 0 && (o.OVNKubernetesMTU < leastMTU || o.OVNKubernetesMTU > mostMTU) {
		errs = append(errs, fmt.Errorf("--ovn-kubernetes-mtu %d: must be from %d to %d", o.OVNKubernetesMTU, leastMTU, mostMTU))
	}
	return errs
}

// openShift fills in what only OpenShift releases know.
func openShift(o Options, spec *hyperv1.HostedClusterSpec) {
	spec.OLMCatalogPlacement = o.OLMCatalogPlacement
	if len(o.EnabledCapabilities)+len(o.DisabledCapabilities) > 0 {
		spec.Capabilities = &hyperv1.Capabilities{Enabled: optional(o.EnabledCapabilities), Disabled: optional(o.DisabledCapabilities)}
	}
	if o.FeatureSet != configv1.Default || o.OLMDisableDefaultSources {
		spec.Configuration = &hyperv1.ClusterConfiguration{}
	}
	if o.FeatureSet != configv1.Default {
		spec.Configuration.FeatureGate = &configv1.FeatureGateSpec{FeatureGateSelection: configv1.FeatureGateSelection{FeatureSet: o.FeatureSet}}
	}
	if o.OLMDisableDefaultSources {
		spec.Configuration.OperatorHub = &configv1.OperatorHubSpec{DisableAllDefaultSources: true}
	}
	if o.DisableMultiNetwork || o.OVNKubernetesMTU != 0 {
		operator := &hyperv1.ClusterNetworkOperatorSpec{}
		if o.DisableMultiNetwork {
			operator.DisableMultiNetwork = ptr.To(true)
		}
		if o.OVNKubernetesMTU != 0 {
			operator.OVNKubernetesConfig = &hyperv1.OVNKubernetesConfig{MTU: ptr.To(o.OVNKubernetesMTU)}
		}
		spec.OperatorConfiguration = &hyperv1.OperatorConfiguration{ClusterNetworkOperator: operator}
	}
}

func optional(names []string) []hyperv1.OptionalCapability {
	var list []hyperv1.OptionalCapability
	for _, name := range names {
		list = append(list, hyperv1.OptionalCapability(name))
	}
	return list
}

// checkVersion refuses an operator of another version than this tool. The operator is looked for in its default namespace.
func checkVersion(ctx context.Context, c client.Client) error {
	server, err := version.OfServer(ctx, c, install.DefaultNamespace)
	if err != nil {
		return fmt.Errorf("--version-check: %w", err)
	}
	if client := version.ThisClient(); server.Commit != client.Commit {
		return fmt.Errorf("--version-check: the operator is of commit %s, this tool of %s: use the tool of the operator's version", server.Commit, client.Commit)
	}
	return nil
}
