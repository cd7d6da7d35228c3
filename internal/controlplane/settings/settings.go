// Package settings reads a HostedControlPlane as the programs of a control plane need it: as flags.
package settings

import (
	"net/netip"
	"slices"
	"strings"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// apiPort is where kube-apiserver listens in its pod when the user does not say. 443 means the default, too: a pod that does
// not run as root cannot have that port, and the Service in front of it can.
const apiPort int32 = 6443

// APIPodPort is the port of kube-apiserver in its pod.
func APIPodPort(hcp *hyperv1.HostedControlPlane) int32 {
	if s := hcp.Spec.Networking.APIServer; s != nil && s.Port != nil && *s.Port != 0 && *s.Port != 443 {
		return *s.Port
	}
	return apiPort
}

// ServiceCIDRs are the ranges of Services in the hosted cluster, ClusterCIDRs those of pods.
func ServiceCIDRs(hcp *hyperv1.HostedControlPlane) []string {
	var cidrs []string
	for _, n := range hcp.Spec.Networking.ServiceNetwork {
		cidrs = append(cidrs, string(n.CIDR))
	}
	return cidrs
}

// ClusterCIDRs are the ranges of pods in the hosted cluster.
func ClusterCIDRs(hcp *hyperv1.HostedControlPlane) []string {
	var cidrs []string
	for _, n := range hcp.Spec.Networking.ClusterNetwork {
		cidrs = append(cidrs, string(n.CIDR))
	}
	return cidrs
}

// OnePerFamily are the first IPv4 and the first IPv6 network of a list, in its order: Kubernetes' programs take no more.
func OnePerFamily(cidrs []string) []string {
	var out []string
	seen := map[bool]bool{}
	for _, cidr := range cidrs {
		prefix, err := netip.ParsePrefix(cidr)
		if err != nil || seen[prefix.Addr().Is4()] {
			continue
		}
		seen[prefix.Addr().Is4()] = true
		out = append(out, cidr)
	}
	return out
}

// IPv6 says whether the hosted cluster's first network is IPv6, so that servers listen on [::].
func IPv6(hcp *hyperv1.HostedControlPlane) bool {
	cidrs := ClusterCIDRs(hcp)
	if len(cidrs) == 0 {
		return false
	}
	prefix, err := netip.ParsePrefix(cidrs[0])
	return err == nil && prefix.Addr().Is6()
}

// defaultIssuer is the issuer of ServiceAccount tokens when the HostedControlPlane names none.
const defaultIssuer = "https://kubernetes.default.svc"

// Issuer is the issuer of ServiceAccount tokens.
func Issuer(hcp *hyperv1.HostedControlPlane) string {
	if hcp.Spec.IssuerURL != "" {
		return hcp.Spec.IssuerURL
	}
	return defaultIssuer
}

// APIServer is spec.configuration.apiServer, never nil.
func APIServer(hcp *hyperv1.HostedControlPlane) *configv1.APIServerSpec {
	if hcp.Spec.Configuration == nil || hcp.Spec.Configuration.APIServer == nil {
		return &configv1.APIServerSpec{}
	}
	return hcp.Spec.Configuration.APIServer
}

// NodePortRange is where ports of Services are chosen from, as in 30000-32767; empty when the user doesn't say.
func NodePortRange(hcp *hyperv1.HostedControlPlane) string {
	if hcp.Spec.Configuration == nil || hcp.Spec.Configuration.Network == nil {
		return ""
	}
	return hcp.Spec.Configuration.Network.ServiceNodePortRange
}

// Authentication is spec.configuration.authentication, never nil.
func Authentication(hcp *hyperv1.HostedControlPlane) *configv1.AuthenticationSpec {
	if hcp.Spec.Configuration == nil || hcp.Spec.Configuration.Authentication == nil {
		return &configv1.AuthenticationSpec{}
	}
	return hcp.Spec.Configuration.Authentication
}

// SchedulerProfile is how pods of the hosted cluster are placed.
func SchedulerProfile(hcp *hyperv1.HostedControlPlane) configv1.SchedulerProfile {
	if hcp.Spec.Configuration == nil || hcp.Spec.Configuration.Scheduler == nil || hcp.Spec.Configuration.Scheduler.Profile == "" {
		return configv1.LowNodeUtilization
	}
	return hcp.Spec.Configuration.Scheduler.Profile
}

// FeatureGates is the flag --feature-gates of Kubernetes' programs, if any: what a user of CustomNoUpgrade names. The other
// feature sets are lists of OpenShift's releases and mean nothing to Kubernetes.
func FeatureGates(hcp *hyperv1.HostedControlPlane) []string {
	if hcp.Spec.Configuration == nil || hcp.Spec.Configuration.FeatureGate == nil {
		return nil
	}
	selection := hcp.Spec.Configuration.FeatureGate.FeatureGateSelection
	if selection.FeatureSet != configv1.CustomNoUpgrade || selection.CustomNoUpgrade == nil {
		return nil
	}
	var gates []string
	for _, name := range selection.CustomNoUpgrade.Enabled {
		gates = append(gates, string(name)+"=true")
	}
	for _, name := range selection.CustomNoUpgrade.Disabled {
		gates = append(gates, string(name)+"=false")
	}
	if len(gates) == 0 {
		return nil
	}
	slices.Sort(gates)
	return []string{"--feature-gates=" + strings.Join(gates, ",")}
}
